"""Parameters of a controller on trial: they stay only if somebody says so."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import numpy as np

from ....core.arrays import Array
from ....core.excitation import Waypoints
from ....core.model import mass_matrix, Robot
from ....exceptions import ControllerError, RobotIdError, RobotStateError
from ....files.verification.verification_file import GAINS_BEFORE
from ....node_settings import GainSettings
from ...common.controller_client import ControllerClient
from ...identification.gain_proposal import JointGains, propose_gains
from ..supervision.guardian import Guardian

Gains = dict[str, JointGains]
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
    poses = motion.q[:: max(1, len(motion.q) // MAX_POSES)]
    inertia = np.max([np.diag(mass_matrix(robot, chi, q)) for q in poses], axis=0)
    if not (inertia > 0.0).all():
        raise ControllerError(
            'the results hold no physically consistent parameters, from which gains follow: '
            'identify again'
        )
    old = {}
    for joint, value, drive in zip(robot.joints, inertia, robot.drive_gain, strict=True):
        p, i, d = (float(present.get(joint, {}).get(name, 0.0)) for name in 'pid')
        old[joint] = JointGains(p, i, d, float(value / abs(drive)))
    return old, {joint: propose_gains(gains, settings) for joint, gains in old.items()}


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
