"""Which motion to run: trajectories, criteria, constraints, design, and the last check."""

from .design import Design, design
from .limits import check_trajectory, motion_limits, Usage
from .search import Progress
from .settings import ExcitationSettings
from .trajectory import CubicWaypoints, Motion, point_to_point, Trajectory, Waypoints, waypoints

__all__ = [
    'CubicWaypoints',
    'Design',
    'ExcitationSettings',
    'Motion',
    'Progress',
    'Trajectory',
    'Usage',
    'Waypoints',
    'check_trajectory',
    'design',
    'motion_limits',
    'point_to_point',
    'waypoints',
]
