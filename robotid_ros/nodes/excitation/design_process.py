"""The design of a session and its page: in processes of their own, the page at leisure."""

from collections.abc import Callable
from dataclasses import replace
import os
from pathlib import Path
import threading
import time

from rclpy.impl.rcutils_logger import RcutilsLogger

from ...core.excitation import Design, design, Progress
from ...core.model import build_robot, RobotSettings
from ...exceptions import RobotIdError, TrajectoryError
from ...files.configuration import Configuration
from ...files.report.page import page_beside, write_design_page
from ...node_settings import ExcitationNodeSettings
from ..common.messages import one_line
from ..common.worker_process import run_in_process

# How long a design that does not keep its time limit may go on before it is killed [s].
GRACE = 60.0
# How long its page may take on a machine that does other things first, and how it gives way.
PAGE_LIMIT, LOWEST_PRIORITY = 600.0, 19


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


def write_page(
    file: Path, plan: Design, urdf: str, configuration: Configuration, log: RcutilsLogger
) -> None:
    """
    Write the page of a saved design beside it, while whoever called goes on.

    Parameters
    ----------
    file : of the design; a page that is there stays
    plan, urdf, configuration : see `write_design_page`
    log : where to say that it is there, or why it is not

    """
    page = page_beside(file)
    if page.exists():
        return

    def wait() -> None:
        try:
            run_in_process(
                _draw_page, *(page, plan, urdf, configuration),
                stop=threading.Event(), time_limit=PAGE_LIMIT,
            )  # fmt: skip
        except RobotIdError as error:
            log.warning(f'the design has no page: {one_line(error)}')
        else:
            log.info(f"the arm along its motion: '{page}'")

    threading.Thread(target=wait, daemon=True).start()


def _draw_page(page: Path, plan: Design, urdf: str, configuration: Configuration) -> None:
    """Draw with what the robot and its guards leave of the machine."""
    os.nice(LOWEST_PRIORITY)
    write_design_page(
        page, plan, build_robot(urdf, configuration.robot), configuration, overwrite=False
    )
