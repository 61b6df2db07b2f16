"""What is known of a robot: joints, limits, standard parameters, friction, dynamics."""

from .dynamics import inverse_dynamics, mass_matrix, model_with, regressor
from .elastic_robot import elastic_robot
from .parameters import Parameter
from .robot import Coupling, ElasticRobot, Limits, Robot
from .robot_builder import build_robot
from .settings import CouplingSettings, RobotSettings

__all__ = [
    'Coupling',
    'CouplingSettings',
    'ElasticRobot',
    'Limits',
    'Parameter',
    'Robot',
    'RobotSettings',
    'build_robot',
    'elastic_robot',
    'inverse_dynamics',
    'mass_matrix',
    'model_with',
    'regressor',
]
