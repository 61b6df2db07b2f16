"""Share of the designed speed at which a controller runs its trajectory; no ROS in here."""

from typing import Any

from ....exceptions import RobotStateError
from .silence import Silence

# A slower session says little: accelerations go with the square of the speed. Waits for the end of
# a motion become longer by no more than its inverse.
MIN_SPEED = 0.1
# How long a robot may be slower on its way, as while somebody stands near it [s].
MAX_PAUSE = 5.0
# Rounding of a factor that a driver hands on as a percentage.
ROUNDING = 1e-6


class SpeedScaling:
    """
    Reads and checks the speed scaling of a controller's states.

    Controllers of old leave it at 0, so that 0 counts as 1 until something else was seen.

    Parameters
    ----------
    now : when it begins [s, any monotonic clock]

    """

    def __init__(self, now: float = 0.0):
        self._known = False
        self._pause = Silence(now)

    def read(self, message: Any) -> float:
        """Return the factor of a controller's state."""
        factor = max(0.0, message.speed_scaling_factor)
        self._known = self._known or factor > 0.0
        return factor if self._known else 1.0

    def check(self, message: Any, now: float, max_pause: float = MAX_PAUSE) -> None:
        """
        Check that the robot is neither faster than the design nor slow for long.

        Raises
        ------
        RobotStateError : the factor, and what to do

        """
        factor = self.read(message)
        if factor > 1.0 + ROUNDING:
            raise RobotStateError(
                f'the speed scaling is {factor:.0%}: limits were checked for 100 %, lower it'
            )
        pause = self._pause.update(now, heard=factor >= MIN_SPEED)
        if factor < MIN_SPEED and pause >= max_pause:
            raise RobotStateError(
                f'the speed scaling is {factor:.1%}: raise it to {MIN_SPEED:.0%} at least, at the '
                "robot's speed slider, and let its program run"
            )
