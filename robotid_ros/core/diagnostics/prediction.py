"""Why given parameters predict a recording badly."""

import numpy as np

from ..finding_codes import finding
from ..findings import Finding
from ..regression.goodness_of_fit import Validation
from .trials import compare

# Residual of a joint from which its prediction deserves a word; from the second on, nothing is
# predicted.
LARGE_RESIDUAL, NOTHING = 0.1, 1.0
# A factor or an offset is the reason when without it the squared error falls to a quarter, on
# blocks of time that it was not fitted to; factors nearer to 1 than this are none.
LEAST, BLOCKS, MIN_DEVIATION = 4.0, 8, 0.05


def prediction_warnings(validation: Validation) -> list[Finding]:
    """
    Name the joints whose efforts are predicted badly in motion, with what explains it.

    That is a factor on the prediction and an offset, each fitted to all blocks of time but one,
    which is judged, in turn.
    """
    warnings = []
    for j, joint in enumerate(validation.joints):
        rows = validation.valid[:, j]
        rows = rows if rows.any() else np.ones_like(rows)
        measured, predicted = validation.measured[rows, j], validation.predicted[rows, j]
        signal = max(float(np.linalg.norm(measured)), 1e-300)
        residual = float(np.linalg.norm(measured - predicted) / signal)
        if residual <= LARGE_RESIDUAL:
            continue
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
        if trial.is_better(LEAST):
            factor, offset = np.linalg.lstsq(both, measured, rcond=None)[0].tolist()
            name = 'effort_scaled' if abs(factor - 1.0) > MIN_DEVIATION else 'effort_shifted'
            values = {'factor': factor, 'offset': offset}
            values |= trial.values(joint, 'factor and offset')
            warnings.append(finding(name, [joint], residual=residual, **values))
        else:
            name = 'nothing_predicted' if residual >= NOTHING else 'effort_not_predicted'
            warnings.append(finding(name, [joint], residual=residual))
    return warnings
