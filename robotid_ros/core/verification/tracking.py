"""How well a robot tracked a motion, in some runs and in others."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from .. import model  # whose functions come with Pinocchio: who reads results needs none
from ..arrays import Array, ReadOnlyArrays
from ..excitation.trajectory import Trajectory
from ..model.robot import Robot

# What the root mean square of a tracking error differs by from run to run at least, as noise and
# friction are never the same: simulated arms repeat theirs to some 0.3 %.
REPEATABILITY = 0.01


@dataclasses.dataclass(frozen=True)
class Tracking(ReadOnlyArrays):
    """Errors (N, n), wanted minus measured position [rad or m], at times (N,) of a run [s]."""

    joints: tuple[str, ...]
    time: Array
    error: Array

    @property
    def rms(self) -> Array:
        """Root mean square per joint, (n,) [rad or m]."""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))

    @property
    def peak(self) -> Array:
        """Largest absolute value per joint, (n,) [rad or m]."""
        return np.asarray(np.abs(self.error).max(axis=0))


def tracks_better(before: Sequence[Tracking], after: Sequence[Tracking]) -> bool:
    """
    Whether the joints together have a smaller error, and none a larger one, in later runs.

    By more than the runs before, and those after, differ among themselves.
    """
    both = [np.array([run.rms for run in runs]) for runs in (before, after)]
    means = [np.maximum(rms.mean(axis=0), 1e-300) for rms in both]
    spreads = [np.ptp(rms, axis=0) / mean for rms, mean in zip(both, means, strict=True)]
    spread, ratio = np.maximum(np.max(spreads, axis=0), REPEATABILITY), means[1] / means[0]
    together = float(np.exp(np.mean(np.log(ratio))))
    return bool((ratio <= 1.0 + spread).all() and together < 1.0 - spread.max())


# Speed at which the model's friction counts as that of a joint about to stop [rad/s or m/s]: steps
# have their full height there, Stribeck's part nearly so, and viscous friction is next to none.
CREEP = 0.01


@dataclasses.dataclass(frozen=True)
class JointStatics:
    """What the postures say of one joint [N·m or N]."""

    joint: str
    unit: str  # 'N·m' or 'N'
    gravity: float  # root mean square of the effort that holds it
    gravity_error: float  # of measured minus predicted
    gravity_worst: float  # the largest one, with its sign
    stiction: float  # mean of half the difference of both sides
    predicted_stiction: float  # the same of the model: its friction of joints about to stop


def static_postures(motion: Trajectory, robot: Robot, count: int, distance: float) -> list[Array]:
    """Choose postures (n,), evenly in time, from which joints can go a distance either way."""
    t = motion.period * (np.arange(count) + 0.5) / count
    lower, upper = robot.limits.lower + distance, robot.limits.upper - distance
    return [np.clip(q, lower, upper) for q in motion.sample(t).q]


def evaluate_postures(
    robot: Robot, chi: Array, rests: Sequence[Array]
) -> tuple[JointStatics, ...]:
    """
    Compare what holds the robot with standard parameters (p,).

    Of each posture mean position [rad or m] and effort [N·m or N] at rest, (2, 2, n): first where
    the joints came from below, with rising positions, then from above.
    """
    # Side, posture, joint.
    q, effort = np.array(rests).transpose(2, 1, 0, 3)
    still = np.zeros_like(q[0])
    held, creeping = (
        np.array(
            [model.inverse_dynamics(robot, chi, *x, still) for x in zip(q, speeds, strict=True)]
        )
        for speeds in ((still, still), (still + CREEP, still - CREEP))
    )
    gravity, error = effort.mean(axis=0), (effort - held).mean(axis=0)
    worst = error[np.abs(error).argmax(axis=0), np.arange(robot.n)]
    sides = (0.5 * (x[0] - x[1]).mean(axis=0) for x in (effort - held, creeping - held))
    sizes = (np.sqrt(np.mean(x**2, axis=0)) for x in (gravity, error))
    return tuple(
        JointStatics(joint, unit, *map(float, figures))
        for (joint, (_, unit)), *figures in zip(
            robot.units.items(), *sizes, worst, *sides, strict=True
        )
    )
