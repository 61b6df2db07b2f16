"""What is known of a robot, imported as it is used: a description is asked without Pinocchio."""

from importlib import import_module
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from .dynamics import (
        inverse_dynamics as inverse_dynamics,
        mass_matrix as mass_matrix,
        model_with as model_with,
        regressor as regressor,
    )
    from .robot import Robot as Robot
    from .robot_builder import build_robot as build_robot
    from .settings import (
        CoupledMotorSettings as CoupledMotorSettings,
        RobotSettings as RobotSettings,
    )

_MODULES = {
    **dict.fromkeys(('inverse_dynamics', 'mass_matrix', 'model_with', 'regressor'), 'dynamics'),
    **dict.fromkeys(('CoupledMotorSettings', 'RobotSettings'), 'settings'),
    'Robot': 'robot',
    'build_robot': 'robot_builder',
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f'.{_MODULES[name]}', __name__), name)
