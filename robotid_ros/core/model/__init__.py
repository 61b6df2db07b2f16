"""
What is known of a robot: joints, limits, standard parameters, friction, dynamics.

The names below are imported when they are first used: who only asks a description for its joints
does without Pinocchio, whose import takes longer than that.
"""

from importlib import import_module
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from .dynamics import inverse_dynamics, mass_matrix, model_with, regressor
    from .parameters import Parameter
    from .robot import Coupling, ElasticRobot, Limits, Robot
    from .robot_builder import build_robot
    from .settings import CoupledMotorSettings, RobotSettings

_NAMES = {
    'dynamics': ('inverse_dynamics', 'mass_matrix', 'model_with', 'regressor'),
    'parameters': ('Parameter',),
    'robot': ('Coupling', 'ElasticRobot', 'Limits', 'Robot'),
    'robot_builder': ('build_robot',),
    'settings': ('CoupledMotorSettings', 'RobotSettings'),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    'CoupledMotorSettings',
    'Coupling',
    'ElasticRobot',
    'Limits',
    'Parameter',
    'Robot',
    'RobotSettings',
    'build_robot',
    'inverse_dynamics',
    'mass_matrix',
    'model_with',
    'regressor',
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f'.{_MODULES[name]}', __name__), name)
