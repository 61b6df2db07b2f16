"""Iterations of a closed-loop identification, as numbers for reports, topics and progress."""

from collections.abc import Iterable
import dataclasses
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..findings import Finding


class MotionError(NamedTuple):
    """Relative distances `‖x_ddm − x‖/‖x‖` of the simulated motion, (n,) each."""

    position: Array
    velocity: Array
    acceleration: Array


@dataclasses.dataclass(frozen=True)
class Iteration:
    """One simulation, and the errors of the parameters it was run with."""

    number: int  # 0 for the initial parameters
    value: Array  # (b,) base parameters
    torque_error: Array  # (n,) ‖Y_j − W_j χ_k‖/‖Y_j‖ with W from this simulation
    to_reference: MotionError  # of the simulated motion relative to the reference
    to_measured: MotionError | None  # and to the measured motion, where there is one
    inertia: Array  # (n,) J_j [kg·m² or kg]
    gain_scale: Array  # (n,) of the simulated gains, Ĵ/J_ap
    # Share of the full step that was taken to get here, less than 1 after step control, 0 where
    # the nearest bodies stood in for the fit, with gains scaled to them.
    step_length: float


@dataclasses.dataclass(frozen=True)
class History:
    """The iterations of an identification."""

    columns: tuple[str, ...]  # names of the b base parameters
    joints: tuple[str, ...]
    iterations: tuple[Iteration, ...]  # from the initial parameters to the result
    natural_frequency: Array  # (n,) of the simulated loops with the last estimate [rad/s]
    damping: Array  # (n,) of them [1]
    bandwidth: Array  # (n,) of the motion, angular [rad/s]
    findings: tuple[Finding, ...] = ()  # reasons to doubt the result, with remedies

    @property
    def steps(self) -> int:
        """Number of least-squares steps from the initial parameters to the result."""
        return len(self.iterations) - 1

    def row(self, record: Iteration) -> dict[str, float]:
        """Return one iteration as named numbers: torque and motion errors, parameters."""
        result = {'share': record.step_length}
        series = [('torque error', record.torque_error)]
        for what, error in (('reference', record.to_reference), ('measured', record.to_measured)):
            if error is not None:
                series += [(f'{name} to {what}', x) for name, x in error._asdict().items()]
        for name, values in series:
            result |= {f'{name} {j}': float(v) for j, v in zip(self.joints, values, strict=True)}
        return result | {c: float(v) for c, v in zip(self.columns, record.value, strict=True)}


def relative_motion_error(simulated: Iterable[Array], other: Iterable[Array]) -> MotionError:
    """Compare two motions `(q, dq, ddq)` of (N, n), relative to the second."""
    parts = zip(simulated, other, strict=True)
    sizes = ([np.linalg.norm(x, axis=0) for x in (a - b, b)] for a, b in parts)
    return MotionError(*(distance / np.maximum(size, 1e-300) for distance, size in sizes))
