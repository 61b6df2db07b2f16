"""Which motion to run: trajectories, criteria, constraints, design, and the last check."""

from .constraints.motion_limits import motion_limits
from .constraints.trajectory_check import check_trajectory
from .design.design import design
from .results import Design, Progress, Usage
from .settings import ExcitationSettings
from .trajectories.trajectory import Motion, Trajectory
from .trajectories.waypoints import point_to_point, Waypoints, waypoints

__all__ = [
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
