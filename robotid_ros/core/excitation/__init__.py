"""Which motion to run: trajectories, criteria, constraints, design, and the last check."""

from .check import check
from .design import design
from .limits import motion_limits
from .results import Design, Progress, Usage
from .settings import ExcitationSettings
from .trajectories import Basis, Motion, Trajectory
from .waypoints import move, Waypoints, waypoints

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
