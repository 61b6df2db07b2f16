"""Which motion to run: trajectories, criteria, constraints, design, and the last check."""

from .constraints.motion_limits import motion_limits
from .constraints.trajectory_check import check
from .design.design import design
from .results import Design, Progress, Usage
from .settings import ExcitationSettings
from .trajectories.trajectory import Basis, Motion, Trajectory
from .trajectories.waypoints import move, Waypoints, waypoints

__all__ = [
    'Basis',
    'Design',
    'ExcitationSettings',
    'Motion',
    'Progress',
    'Trajectory',
    'Usage',
    'Waypoints',
    'check',
    'design',
    'motion_limits',
    'move',
    'waypoints',
]
