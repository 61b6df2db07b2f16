"""Why given parameters predict a recording badly."""

import numpy as np

from ..arrays import Array
from ..regression.goodness_of_fit import Validation

# Residual of a joint from which its prediction deserves a word; from the second on, nothing is
# predicted.
LARGE_RESIDUAL, NOTHING = 0.1, 1.0
# A factor or an offset is the reason when no more than this share of the residual is left without
# it; factors nearer to 1 than this are none.
REMAINING, MIN_DEVIATION = 0.5, 0.05


def prediction_warnings(validation: Validation) -> list[str]:
    """Name the joints whose efforts are predicted badly in motion, with the likely reason."""
    warnings = []
    for j, joint in enumerate(validation.joints):
        rows = validation.valid[:, j]
        rows = rows if rows.any() else np.ones_like(rows)
        measured, predicted = validation.measured[rows, j], validation.predicted[rows, j]
        residual = _share(measured - predicted, measured)
        if residual > LARGE_RESIDUAL:
            warnings.append(
                f'{100 * residual:.0f} % of the effort of {joint} is not predicted: '
                f'{_reason(measured, predicted, residual)}'
            )
    return warnings


def _reason(measured: Array, predicted: Array, residual: float) -> str:
    both = np.column_stack([predicted, np.ones(predicted.size)])
    factor, offset = np.linalg.lstsq(both, measured, rcond=None)[0]
    if _share(measured - both @ [factor, offset], measured) < REMAINING * residual:
        if abs(factor - 1.0) > MIN_DEVIATION:
            return (
                f'what was measured is {factor:.3g} times the prediction, check its unit and '
                'sign, and robot.drive_gain'
            )
        return f'what was measured is {offset:.3g} beside it, check the zero of its sensor'
    if residual >= NOTHING:
        return 'check that the parameters are of this robot, units, signs and zeros of the joints'
    return (
        'check payload, friction (temperature), delay, and that the parameters are of this robot'
    )


def _share(error: Array, signal: Array) -> float:
    return float(np.linalg.norm(error) / max(float(np.linalg.norm(signal)), 1e-300))
