"""Measured and fitted torques of the joints, by cause: friction, offset, links and rotor."""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array, rms
from ..model.base_parameters import BaseParameters
from ..model.friction import SHRUNK
from ..model.robot import Robot
from ..regression.goodness_of_fit import OFFSET, rigid_and_offset
from ..regression.observation_system import Rows
from ..signals.samples import STANDSTILL

# Effort over rounding: what is smaller than this share of a joint's effort is no part of it.
NOTHING = 1e-3
BEYOND_PLAIN = 'beyond plain friction'


class FittedModel(NamedTuple):
    """A robot, its base parameters, the systems of the fit, and the values (b,) that it gave."""

    robot: Robot
    base: BaseParameters
    systems: Sequence[Rows]
    value: Array


@dataclasses.dataclass(frozen=True)
class JointTorques:
    """
    Torques of one joint on the rows that were fitted.

    Attributes
    ----------
    joint : its number
    time : (N,) [s]
    W : (N, b)
    measured, error : (N,) torque, and what the fit leaves of it [N·m or N]
    rigid : (N,) of links, rotor and spring, as fitted
    friction : {parameter's symbol: (N,)}, as fitted; the offset is `OFFSET`, the sum of what a
        mixed model shrinks `BEYOND_PLAIN`

    """

    joint: int
    time: Array
    W: Array
    measured: Array
    error: Array
    rigid: Array
    friction: dict[str, Array]

    @property
    def size(self) -> float:
        """Root mean square of the measured torque."""
        return rms(self.measured)

    @property
    def residual(self) -> float:
        """‖error‖/‖measured‖."""
        return rms(self.error) / max(self.size, 1e-300)


def joint_torques(fitted: FittedModel) -> list[JointTorques]:
    """
    Take the torques apart that were fitted to systems in memory.

    Where viscous friction tells the speed, rows at standstill are left out.
    """
    (robot, base, systems, value), result = fitted, list[JointTorques]()
    shrunk = np.array([robot.parameters[k].symbol in SHRUNK for k in base.columns])
    rigid, offset = rigid_and_offset(robot, base.columns)
    for j in range(robot.n):
        parts = []
        for system in systems:
            rows = _moving(robot, base, system, j)
            parts.append((system.W[j][rows], system.Y[j][rows], system.time[rows]))
        W, Y, time = (np.concatenate(each) for each in zip(*parts, strict=True))
        friction = dict[str, Array]()
        beyond = W[:, shrunk & ~rigid] @ value[shrunk & ~rigid]
        if rms(beyond) > NOTHING * rms(Y):
            friction[BEYOND_PLAIN] = beyond
        for column in np.flatnonzero(~rigid & ~shrunk):
            torque = W[:, column] * value[column]
            if rms(torque) > NOTHING * rms(Y):
                friction[OFFSET if offset[column] else base.names[column]] = torque
        own = W[:, rigid] @ value[rigid]
        result.append(JointTorques(j, time, W, Y, Y - W @ value, own, friction))
    return result


def _moving(robot: Robot, base: BaseParameters, system: Rows, joint: int) -> npt.NDArray[np.bool_]:
    """Return the usable rows where a joint moves, as far as its columns tell."""
    for column, standard in enumerate(base.columns):
        parameter = robot.parameters[standard]
        if parameter.symbol == 'Fv' and parameter.joint == robot.joints[joint]:
            return np.asarray(
                system.valid[joint] & (np.abs(system.W[joint][:, column]) >= STANDSTILL)
            )
    return system.valid[joint]
