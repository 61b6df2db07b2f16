"""Parameters of a controller on trial: they stay only if somebody says so."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from ....core.arrays import Array
from ....core.excitation import Waypoints
from ....core.model import Robot
from ....exceptions import ControllerError, RobotIdError, RobotStateError
from ....files.verification import GAINS_BEFORE
from ....node_settings import GainSettings
from ...common.controller_client import ControllerClient
from ...identification.gain_proposal import Gains, largest_inertia, propose_for_joints
from ..supervision.guardian import Guardian

# Configurations of a motion at which the mass matrix is evaluated.
MAX_POSES = 200


def gains_for_motion(
    robot: Robot,
    chi: Array,
    motion: Waypoints,
    present: Mapping[str, Mapping[str, float]],
    settings: GainSettings,
) -> tuple[Gains, Gains]:
    """
    Return present gains, and those that fit the largest inertia of each joint on a motion.

    Parameters
    ----------
    robot, chi : model and physically consistent standard parameters (p,)
    motion : that will be run
    present : gains of the controller, by joint
    settings : of the proposal

    Raises
    ------
    ControllerError : the parameters are those of no bodies

    """
    inertia = largest_inertia(robot, chi, motion.q, MAX_POSES)
    if not (inertia > 0.0).all():
        raise ControllerError(
            'the results hold no physically consistent parameters, from which gains follow: '
            'identify again'
        )
    return propose_for_joints(robot, inertia, present, settings)


@contextmanager
def on_trial(
    guardian: Guardian,
    controller: ControllerClient,
    old: Mapping[str, float],
    new: Mapping[str, float],
) -> Iterator[Callable[[], None]]:
    """
    Set parameters of a controller, and set them back at the end unless what is yielded was called.

    The guardian does that should this process die, or not get an answer.

    Parameters
    ----------
    guardian, controller : of the robot that is moved
    old, new : values by name

    Raises
    ------
    ControllerError : refused, or not set back; says what was not

    """
    kept = False

    def keep() -> None:
        nonlocal kept
        guardian.release()
        kept = True

    guardian.protect(old)
    try:
        controller.set(new)
        yield keep
    except RobotIdError as error:
        _set_back(guardian, controller, old)
        raise RobotStateError(f'{error}; the old gains are set again') from error
    except BaseException:
        _set_back(guardian, controller, old)
        raise
    if not kept:
        _set_back(guardian, controller, old)


def _set_back(guardian: Guardian, controller: ControllerClient, old: Mapping[str, float]) -> None:
    try:
        controller.set(old)
    except ControllerError as error:
        raise ControllerError(
            f"the controller's gains may not be back ({error}): set them by hand, "
            f"'{GAINS_BEFORE}' beside the results holds them"
        ) from error
    # It has ended, and set them back itself, where it had to cancel the motion.
    with suppress(ControllerError):
        guardian.release()
