"""What predicted efforts consist of: inertia, gravity, friction, offset; and the motion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays
from ..model.base_parameters import BaseParameters
from ..model.dynamics import inverse_dynamics
from ..model.friction import OF_POSITION
from ..model.parameters import INERTIAL
from ..model.robot import ElasticRobot, Robot
from ..signals.samples import Samples
from .observation_system import decimate, System

OFFSET = 'offset'
RIGID = (*INERTIAL, 'Ia', *OF_POSITION)


@dataclasses.dataclass(frozen=True)
class EffortParts(ReadOnlyArrays):
    """
    Motion of predicted efforts, and their parts, which add up to them; (N, n) each.

    Attributes
    ----------
    position, velocity : [rad or m, rad/s or m/s]
    inertia : of links and rotors, with Coriolis' and centrifugal torques [N·m or N]
    gravity, friction, offset : likewise; the torque of a counterbalance counts as gravity

    """

    position: Array
    velocity: Array
    inertia: Array
    gravity: Array
    friction: Array
    offset: Array

    def at(self, rows: npt.NDArray[np.bool_]) -> EffortParts:
        """Return the parts of some rows (N,)."""
        return EffortParts(*(getattr(self, f.name)[rows] for f in dataclasses.fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[EffortParts | None]) -> EffortParts | None:
        """Concatenate the parts of one motion; None where one is missing."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in known]) for name in names))


def rigid_and_offset(
    robot: Robot, columns: Iterable[int]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Tell which standard parameters are of links, rotors or counterbalances; which offsets."""
    symbols = [robot.parameters[column].symbol for column in columns]
    offset = [symbol.startswith('off') for symbol in symbols]
    return np.array([symbol in RIGID for symbol in symbols]), np.array(offset)


def parts_of_samples(
    samples: Samples, robot: Robot, chi: Array, predicted: Array
) -> EffortParts | None:
    """
    Take apart what standard parameters (p,) predict of samples; None for robots with springs.

    Parameters
    ----------
    predicted : (N, n) efforts at the samples' full rate

    Returns
    -------
    The parts, decimated as `validate_samples` decimates the efforts.

    """
    if isinstance(robot, ElasticRobot):
        return None
    rigid, offset = rigid_and_offset(robot, range(robot.p))
    still = np.zeros_like(samples.q)
    links = np.where(rigid, chi, 0.0)
    gravity = inverse_dynamics(robot, links, samples.q, still, still)
    inertial = inverse_dynamics(robot, links, samples.q, samples.dq, samples.ddq) - gravity
    constant = inverse_dynamics(robot, np.where(offset, chi, 0.0), *([still] * 3))
    # What is left depends on the direction of motion: friction that grows with the load, too.
    rest = predicted - gravity - inertial - constant
    keep = samples.decimation
    parts = decimate(np.stack([inertial, gravity, rest, constant]), keep)
    return EffortParts(samples.q[::keep], samples.dq[::keep], *parts)


def parts_of_system(
    system: System, robot: Robot, base: BaseParameters, value: Array
) -> EffortParts | None:
    """Take apart what base parameters (b,) predict; None where the motion is not known."""
    if isinstance(robot, ElasticRobot) or system.q is None or system.dq is None:
        return None
    if system.W.shape[2] != len(base.columns) or len(system.q) != system.W.shape[1]:
        return None
    rigid, offset = rigid_and_offset(robot, base.columns)
    chi, still = np.zeros(robot.p), np.zeros_like(system.q)
    chi[base.columns[rigid]] = value[rigid]
    gravity = inverse_dynamics(robot, chi, system.q, still, still)
    links, constant, friction = (
        (system.W[:, :, chosen] @ value[chosen]).T for chosen in (rigid, offset, ~rigid & ~offset)
    )
    return EffortParts(system.q, system.dq, links - gravity, gravity, friction, constant)
