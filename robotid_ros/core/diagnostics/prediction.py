"""Why given parameters predict a recording badly."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..regression.goodness_of_fit import Validation
from .trials import compare, Trial

# Residual of a joint from which its prediction deserves a word; from the second on, nothing is
# predicted.
LARGE_RESIDUAL, NOTHING = 0.1, 1.0
# A factor or an offset is the reason when without it the squared error falls to a quarter, on
# blocks of time that it was not fitted to; factors nearer to 1 than this are none.
LEAST, BLOCKS, MIN_DEVIATION = 4.0, 8, 0.05


@dataclasses.dataclass(frozen=True)
class Deviation:
    """
    What a joint's efforts are beside their prediction: factor · prediction + offset.

    Attributes
    ----------
    factor, offset : of the whole recording
    trial : what is left with both, on blocks of time that these were not fitted to

    """

    factor: float
    offset: float
    trial: Trial

    @classmethod
    def of(cls, measured: Array, predicted: Array) -> 'Deviation':
        """Fit both to all blocks but one, which is judged, in turn."""
        both = np.column_stack([predicted, np.ones(predicted.size)])
        block = np.arange(len(measured)) * BLOCKS // max(len(measured), 1)
        errors, powers = [], []
        for k in range(BLOCKS):
            inside = block == k
            gains = np.linalg.lstsq(both[~inside], measured[~inside], rcond=None)[0]
            left = measured[inside] - both[inside] @ gains
            errors.append([np.sum((measured - predicted)[inside] ** 2), left @ left])
            powers.append([measured[inside] @ measured[inside]])
        before, after = np.array(errors).T[:, :, None]
        trial = compare(before, after, np.array(powers), np.ones(1))
        factor, offset = np.linalg.lstsq(both, measured, rcond=None)[0]
        return cls(float(factor), float(offset), trial)


def prediction_warnings(validation: Validation) -> list[Finding]:
    """Name the joints whose efforts are predicted badly in motion, with what explains it."""
    warnings = []
    for j, joint in enumerate(validation.joints):
        rows = validation.valid[:, j]
        rows = rows if rows.any() else np.ones_like(rows)
        measured, predicted = validation.measured[rows, j], validation.predicted[rows, j]
        signal = max(float(np.linalg.norm(measured)), 1e-300)
        residual = float(np.linalg.norm(measured - predicted) / signal)
        if residual > LARGE_RESIDUAL:
            warnings.append(_described(joint, Deviation.of(measured, predicted), residual))
    return warnings


def _described(joint: str, found: Deviation, residual: float) -> Finding:
    if not found.trial.is_better(LEAST):
        name = 'nothing_predicted' if residual >= NOTHING else 'effort_not_predicted'
        return finding(name, [joint], residual=residual)
    scaled = abs(found.factor - 1.0) > MIN_DEVIATION
    return finding(
        'effort_scaled' if scaled else 'effort_shifted', [joint],
        residual=residual, factor=found.factor, offset=found.offset,
        **found.trial.values(joint, 'factor and offset'),
    )  # fmt: skip
