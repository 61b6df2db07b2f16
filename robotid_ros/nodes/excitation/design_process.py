"""The design of a session: in a process of its own, within its time, and good enough to run."""

from collections.abc import Callable
from dataclasses import replace
import threading
import time

from ...core.excitation import Design, design, Progress
from ...core.model import build_robot, RobotSettings
from ...exceptions import TrajectoryError
from ...node_settings import ExcitationNodeSettings
from ..common.worker_process import run_in_process

# How long a design that does not keep its time limit may go on before it is killed [s].
GRACE = 60.0


def design_in_process(
    urdf: str,
    robot: RobotSettings,
    settings: ExcitationNodeSettings,
    progress: Callable[[Progress], None],
    stop: threading.Event,
) -> Design:
    """
    Design in a process of its own; its start counts.

    Raises
    ------
    RobotIdError : what `design` raises, or it was stopped

    """
    end = time.monotonic() + settings.time_limit
    return run_in_process(
        _design_until,
        *(urdf, robot, settings, end),
        progress=progress,
        stop=stop,
        time_limit=settings.time_limit + GRACE,
    )


def _design_until(
    urdf: str,
    robot: RobotSettings,
    settings: ExcitationNodeSettings,
    end: float,
    progress: Callable[[Progress], None],
) -> Design:
    """Design until `end`, on the clock that all processes of a machine share."""
    built = build_robot(urdf, robot)
    remaining = max(0.0, end - time.monotonic())
    return design(built, replace(settings, time_limit=remaining), progress)


def check_design(plan: Design) -> None:
    """
    Refuse to run a poor design.

    Raises
    ------
    TrajectoryError : says what is poor

    """
    if plan.shortcomings:
        raise TrajectoryError(f'the design is poor: {"; ".join(plan.shortcomings)}')
