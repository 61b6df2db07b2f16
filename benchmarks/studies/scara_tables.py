"""Tables of the SCARA study: the paper's figures, and how ours are printed beside them."""

from collections.abc import Mapping, Sequence

import _benchmarks  # noqa: F401
from common import published
import numpy as np
from scara_plant import COMPONENTS, LENGTH, NAMES, NOMINAL
from scara_problem import closeness
from scipy.optimize import brentq

from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.replay.didim import History
from robotid_ros.core.replay.replay_problem import ReplayProblem

# Parameters that the claims are about.
MATTER = [0, 2, 3, 4, 7]
# Our base parameters hold MX2 and MY2 where the paper's hold L times them.
PER_PAPER = np.array([1.0, 1.0, 1.0, 1.0, LENGTH, LENGTH, 1.0, 1.0])
# What the paper prints, by table and method as '1 IDIM', and quantity: estimate, %σ.
PAPER = {
    (f'{row["table"]} {row["method"]}', row['quantity']): [float(row[name]) for name in NAMES]
    for row in published('scara')
}
# Torque errors of joints 1 and 2 at each iteration, table 3 and 9.
PAPER_ERRORS = {
    '3': ([0.42, 0.036, 0.02, 0.018], [3.20, 0.110, 0.02, 0.022]),
    '9': ([0.6, 0.05, 0.06, 0.04, 0.025, 0.02, 0.02], [3.0, 0.11, 0.05, 0.02, 0.025, 0.02, 0.02]),
}


# Table 6: loss of velocity and acceleration of joints 1 and 2 by central differences.
PAPER_LOSS = ((0.39, 0.80), (0.73, 0.81))


class Claims:
    """What the paper claims, and whether it holds here."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, text: str, holds: bool) -> None:
        """Print one claim."""
        self.failed += not holds
        print(f'{"holds " if holds else "FAILS "} {text}')


def percent(values: np.ndarray) -> str:
    """Print shares as percentages."""
    return ' '.join(f'{100 * x:.1f}' for x in values) + ' %'


def deviation(estimate: Estimate) -> np.ndarray:
    """Return the relative deviation from nominal, (8,)."""
    return np.asarray(estimate.value * PER_PAPER / NOMINAL - 1.0)


def table(
    title: str,
    columns: Mapping[str, Estimate],
    paper: tuple[str, ...],
    why: Sequence[str] = ('',) * len(NAMES),
) -> None:
    """Print estimates with σ and %σ beside the paper's, and why they differ."""
    print(f'\n{title}')
    print(
        f'{"":6s}{"nominal":>9s}'
        + ''.join(f'{n:>12s} 2sigma   %sig' for n in columns)
        + ''.join(f'{"paper " + n:>16s}   %sig' for n in paper)
    )
    for i, name in enumerate(NAMES):
        ours = ''.join(
            f'{e.value[i] * PER_PAPER[i]:12.4f} {2 * e.sigma[i] * PER_PAPER[i]:6.4f} '
            f'{min(e.relative_sigma[i], 9999):6.1f}'
            for e in columns.values()
        )
        theirs = ''.join(
            f'{PAPER[n, "estimate"][i]:16.3f} {PAPER[n, "%σ"][i]:6.1f}' for n in paper
        )
        print(f'{name:6s}{NOMINAL[i]:9.3f}{ours}{theirs}  {why[i]}'.rstrip())
    errors = (
        f'{n} {e.total_residual:.3f} ({", ".join(f"{r:.3f}" for r in e.residual)})'
        for n, e in columns.items()
    )
    print('relative error ' + ', '.join(errors))


def iterations(
    title: str, case: ReplayProblem, history: History, paper: str,
    why: tuple[str, str] = ('', ''),
) -> None:  # fmt: skip
    """Print torque error and closeness of the motion at the start and at every iteration."""
    print(
        f'\n{title}: torque error of joints 1, 2 (paper), closeness of position, velocity, '
        'acceleration to actual / to reference [%]'
    )
    theirs = PAPER_ERRORS[paper]
    for record in history.iterations:
        k = record.number
        text = ' '.join(f'{t[k]:.3f}' for t in theirs) if k < len(theirs[0]) else '-'
        actual, wanted = (
            ' '.join(f'{100 * x:5.2f}' for x in close.ravel())
            for close in closeness(case, record).values()
        )
        error = ' '.join(f'{x:.3f}' for x in record.torque_error)
        print(f'  {k}: {error} ({text})   {actual}  /  {wanted}   {why[k > 0]}'.rstrip())


def losses(errors: np.ndarray, period: float) -> None:
    """
    Print table 6: errors (2, 2) of velocity and acceleration, of joints 1 and 2.

    Central differences over samples `period` [s] apart leave sin(ωT)/(ωT) of the velocity of a
    sine, and the square of it of its acceleration: what is lost tells how fast the motion is.
    """
    print('\nTable 6, what IDIM loses at 0.5 Hz [%]: paper, ours, and why they differ')
    for order, quantity in enumerate(('velocity', 'acceleration'), start=1):
        for j, sines in enumerate(COMPONENTS):
            theirs, ours = PAPER_LOSS[order - 1][j], errors[order - 1, j]
            a, w = np.array([(a * w**order, w) for a, w, _ in sines]).T
            predicted = np.linalg.norm(a * _lost(w * period, order)) / np.linalg.norm(a)
            alike = brentq(lambda x, y=theirs, n=order: _lost(x, n) - y, 1e-3, np.pi) / period
            print(
                f'  {quantity:12s} of joint {j + 1}: {100 * theirs:4.0f} {100 * ours:6.1f}   '
                f"the paper's is lost by a sine of {alike:.2f} rad/s; ours are of "
                f'{w.min():.2f} to {w.max():.2f}, which lose {100 * predicted:.1f}'
            )


def _lost(x: np.ndarray, order: int) -> np.ndarray:
    return 1.0 - (np.sin(x) / x) ** order
