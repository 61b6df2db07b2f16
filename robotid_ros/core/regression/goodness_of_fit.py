"""How well predicted efforts agree with measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

import numpy as np

from ..arrays import Array, Mask, ReadOnlyArrays
from ..model.dynamics import inverse_dynamics, spring_torque
from ..model.friction import OF_POSITION
from ..model.robot import BaseParameters, ElasticRobot, INERTIAL, Robot
from ..signals.recording import Samples
from .estimate import ResultTable
from .observation_system import decimate, Rows

OFFSET = 'offset'
RIGID = (*INERTIAL, 'Ia', *OF_POSITION)
COLUMNS = ('time', 'measured', 'predicted', 'valid')  # of a `Validation`, by sample


@dataclasses.dataclass(frozen=True)
class EffortParts(ReadOnlyArrays):
    """Motion of predicted efforts, and their parts, which add up to them; (N, n) each."""

    position: Array  # [rad or m]
    velocity: Array  # [rad/s or m/s]
    inertia: Array  # of links and rotors, with Coriolis' and centrifugal torques [N·m or N]
    gravity: Array  # the torque of a counterbalance, too
    friction: Array
    offset: Array

    def at(self, rows: Mask) -> EffortParts:
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


def rigid_and_offset(robot: Robot, columns: Iterable[int]) -> tuple[Mask, Mask]:
    """Tell which standard parameters are of links, rotors or counterbalances; which offsets."""
    symbols = [robot.parameters[column].symbol for column in columns]
    offset = [symbol.startswith('off') for symbol in symbols]
    return np.array([symbol in RIGID for symbol in symbols]), np.array(offset)


@dataclasses.dataclass(frozen=True)
class Validation(ReadOnlyArrays):
    """
    Measured and predicted efforts on one motion.

    Attributes
    ----------
    joints : names
    time : (N,) [s]
    measured, predicted : (N, n) [N·m or N], filtered and decimated alike
    valid : (N, n) rows where the joint moves
    parts : what the predicted efforts consist of, and the motion, or None

    """

    joints: tuple[str, ...]
    time: Array
    measured: Array
    predicted: Array
    valid: Mask
    parts: EffortParts | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[Validation]) -> Validation:
        """Concatenate the parts of one motion."""
        columns = {n: np.concatenate([getattr(part, n) for part in parts]) for n in COLUMNS}
        known = EffortParts.concatenate([part.parts for part in parts])
        return cls(parts[0].joints, parts=known, **columns)

    @property
    def relative_residual(self) -> Array:
        """‖measured − predicted‖/‖measured‖ per joint, all rows, (n,)."""
        return self._residual(np.ones_like(self.valid), axis=0)

    @property
    def moving_residual(self) -> Array:
        """The same on the rows where the joint moves, (n,)."""
        return self._residual(self.valid, axis=0)

    @property
    def moving_effort(self) -> Array:
        """Root mean square of the measured efforts where the joint moves, (n,) [N·m or N]."""
        squares = np.sum(self.measured**2, axis=0, where=self.valid)
        return np.asarray(np.sqrt(squares / np.maximum(self.valid.sum(axis=0), 1)))

    def total_residual(self, moving: bool = False) -> float:
        """Return the relative residual of all joints together."""
        return float(self._residual(self.valid if moving else np.ones_like(self.valid)))

    def _residual(self, rows: Mask, axis: int | None = None) -> Array:
        parts = self.measured - self.predicted, self.measured
        error, size = (np.sqrt(np.sum(np.where(rows, x**2, 0.0), axis=axis)) for x in parts)
        return np.asarray(error / np.maximum(size, 1e-300))

    @property
    def rms(self) -> Array:
        """Root mean square of the residual per joint, (n,) [N·m or N]."""
        return np.asarray(np.sqrt(np.mean((self.measured - self.predicted) ** 2, axis=0)))

    @property
    def r2(self) -> Array:
        """Coefficient of determination per joint, (n,)."""
        deviation = self.measured - self.measured.mean(axis=0)
        error = np.sum((self.measured - self.predicted) ** 2, axis=0)
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.asarray(1.0 - error / np.sum(deviation**2, axis=0))

    def __repr__(self) -> str:
        return (
            f'<{100.0 * self.total_residual():.2f} % of the efforts of {len(self.joints)} joints '
            f'left over {np.ptp(self.time):.4g} s>'
        )

    def table(self) -> ResultTable:
        """Lay out how well each joint is predicted: shares of its effort, and N·m or N."""
        columns = {'residual': self.relative_residual, 'moving': self.moving_residual}
        return ResultTable('joint', self.joints, {**columns, 'r2': self.r2, 'rms': self.rms})

    def to_pandas(self) -> Any:
        """Return `table` as a `pandas.DataFrame`."""
        return self.table().to_pandas()

    def _repr_html_(self) -> str:
        return self.table().to_html()


def validate_samples(samples: Samples, robot: Robot, chi: Array) -> Validation:
    """Predict the torques of samples with standard parameters (p,)."""
    q, dq, ddq, keep, measured = samples.q, samples.dq, samples.ddq, samples.decimation, None
    tau = inverse_dynamics(robot, chi, q, dq, ddq, successive=True)
    pair, parts = np.stack([samples.tau, tau]), None
    if isinstance(robot, ElasticRobot):  # which counts as the measured one at a link
        pair += spring_torque(robot, chi, q)
    else:
        rigid, offset = rigid_and_offset(robot, range(robot.p))
        still, links = np.zeros_like(q), np.where(rigid, chi, 0.0)
        gravity = inverse_dynamics(robot, links, q, still, still)
        inertial = inverse_dynamics(robot, links, q, dq, ddq) - gravity
        constant = inverse_dynamics(robot, np.where(offset, chi, 0.0), still, still, still)
        # What is left depends on the direction of motion: friction that grows with the load, too.
        rest = tau - gravity - inertial - constant
        each = decimate(np.stack([inertial, gravity, rest, constant]), keep)
        parts = EffortParts(q[::keep], dq[::keep], *each)
    tau, predicted = decimate(pair, keep)
    moving, time = samples.moving[::keep], samples.time[::keep]
    if samples.measured is not None:
        measured = samples.measured[::keep]
    return _trim(Validation(samples.joints, time, tau, predicted, moving, parts), measured)


def validate_system(system: Rows, robot: Robot, base: BaseParameters, value: Array) -> Validation:
    """Compare the torques of a system's rows with those of its base parameters (b,)."""
    valid, parts = (system.valid if system.moving is None else system.moving).T, None
    own = system.W.shape[2] == len(base.columns) and not isinstance(robot, ElasticRobot)
    if own and system.q is not None and system.dq is not None:
        rigid, offset = rigid_and_offset(robot, base.columns)
        chi, still = np.zeros(robot.p), np.zeros_like(system.q)
        chi[base.columns[rigid]] = value[rigid]
        gravity = inverse_dynamics(robot, chi, system.q, still, still)
        links, constant, friction = (
            (system.W[:, :, own] @ value[own]).T for own in (rigid, offset, ~rigid & ~offset)
        )
        parts = EffortParts(system.q, system.dq, links - gravity, gravity, friction, constant)
    pair = system.Y.T, system.predict(value).T
    return _trim(Validation(system.joints, system.time, *pair, valid, parts), system.measured)


def _trim(found: Validation, counted: Mask | None) -> Validation:
    """Leave out what lies before the first and after the last row that is used, and in gaps."""
    rows = np.ones(len(found.time), dtype=bool) if counted is None else counted.copy()
    moving = np.flatnonzero(found.valid.any(axis=1))
    if moving.size:
        rows[: moving[0]] = rows[moving[-1] + 1 :] = False
    columns = {name: getattr(found, name)[rows] for name in COLUMNS}
    parts = None if found.parts is None else found.parts.at(rows)
    return dataclasses.replace(found, parts=parts, **columns)
