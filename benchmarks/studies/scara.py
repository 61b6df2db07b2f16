"""
The SCARA study of DIDIM (Gautier, Janot, Vandanjon): its tables 1 to 9 beside ours.

    python benchmarks/studies/scara.py [--check] [--plots DIR] [--duration SECONDS] [--seed N]

The robot is integrated by `scara_plant.py`, which shares nothing with the package. Loops: PD,
ζ = 1, ω_n = 2π·1 and 2π·10 rad/s, at 200 Hz on the true state. Recorded: position with noise of
2e-5 rad, torque with white noise of 8 % of its RMS (the paper's residual without filtering).
Reference: sums of three sines a joint, from rest, slow against ω_n.

Tables 8 and 9 (a wrong bandwidth) are run in two readings of the paper. ω_n is wrong and ζ right,
as section VI.E says: then k_p is wrong, and a simulated robot of half the bandwidth lags twice as
much. Or k_p, a number in the controller, is right and k_v g_τ/J wrong: then ω_n and ζ are wrong by
the same factor, as eq. 60 says, and the lag 1/k_p stays. Only with the second can the simulated
motion stay as close to the actual one as the paper's figure 14 has it.
"""

from pathlib import Path
import sys

import _benchmarks  # noqa: F401
from common import command_line
import numpy as np
from scara_bandwidth import bandwidths, half_bandwidth, shares
from scara_plant import Data, differentiated, experiment, NOMINAL, QUICK, RATE, SLOW
from scara_problem import idim, idim_of_package, problem
from scara_tables import Claims, deviation, iterations, losses, MATTER, PER_PAPER, percent, table

from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.replay.didim import didim, History
from robotid_ros.core.replay.replay_problem import bandwidth, ReplayProblem

# With good data: largest residual of IDIM over DIDIM's, and difference of a parameter in σ.
ALIKE, APART = 1.1, 3.0


def good_data(data: Data, claims: Claims) -> tuple[ReplayProblem, History]:
    """Tables 1 to 4: filtered data, from the IDIM solution and from the regular start."""
    case = problem(data, 20)
    kept, known = idim(case, data, 20.0), idim_of_package(case, data, 20.0, 20)
    near, _, first = didim(case, case.standard_parameters(known.value))
    far, _, second = didim(case, case.initial_parameters('regular'))
    other, _, third = didim(case, case.initial_parameters('prior'))
    table(
        'Table 1, IDIM start; "all rows": of IDIM with those at standstill, where sign(dq) of a '
        'measured speed is noise',
        {'all rows': kept, 'IDIM': known, 'DIDIM': near},
        ('1 IDIM', '1 DIDIM'),
    )
    table('Table 2, regular start', {'DIDIM': far}, ('2 DIDIM',))
    iterations('Table 3, figures 11 and 12', case, second, '3')
    print('\nTable 4, figure 13: parameters at each iteration')
    for record in second.iterations:
        print(f'  {record.number}: ' + ' '.join(f'{x:8.4f}' for x in record.value * PER_PAPER))
    claims(f'IDIM start: 2 steps ({first.steps})', first.steps <= 2)
    alike(known, near, claims)
    claims(f'regular start: 3 steps, as in the paper ({second.steps})', second.steps <= 3)
    gap = np.abs(far.value - near.value) / far.sigma
    claims(f'both starts agree within 1 sigma ({gap.max():.2f})', bool(gap.max() <= 1.0))
    claims(
        f'so does a start from CAD ({third.steps} steps)',
        bool(np.all(np.abs(other.value - near.value) <= near.sigma)),
    )
    return case, second


def alike(idim: Estimate, didim: Estimate, claims: Claims) -> None:
    """Claim the paper's conclusion: with good data DIDIM gives what IDIM gives."""
    ratio = idim.total_residual / didim.total_residual
    claims(f'good data: residual of IDIM over DIDIM at most {ALIKE} ({ratio:.3f})', ratio <= ALIKE)
    apart = np.abs(idim.value - didim.value) / np.hypot(idim.sigma, didim.sigma)
    claims(f'good data: IDIM and DIDIM within {APART} σ ({apart.max():.1f})', apart.max() <= APART)
    for name, found in (('IDIM', idim), ('DIDIM', didim)):
        off = np.abs(found.value * PER_PAPER - NOMINAL) / (found.sigma * PER_PAPER)
        claims(
            f'good data: {name} within {APART} σ of nominal ({off.max():.1f})', off.max() <= APART
        )


def low_rate(data: Data, claims: Claims) -> None:
    """Tables 5 and 6: sampled at 0.5 Hz without anti-alias filter."""
    stride = round(RATE / 0.5)
    case = problem(data, 1, stride)
    known = idim(case, data, 0.0, stride)
    found, _, history = didim(case, case.initial_parameters('regular'))
    table('Table 5, 0.5 Hz', {'IDIM': known, 'DIDIM': found}, ('5 IDIM', '5 DIDIM'))
    fine = (x[::stride] for x in differentiated(data.q, RATE, 0.5))
    coarse = differentiated(data.q[::stride], RATE / stride, 0.0)
    errors = [
        np.linalg.norm(a - b, axis=0) / np.linalg.norm(a, axis=0)
        for a, b in zip(fine, coarse, strict=True)
    ]
    losses(np.array(errors[1:]), stride / RATE)
    off = np.abs(deviation(found))[MATTER]
    sure = np.abs(found.value * PER_PAPER - NOMINAL) <= 3.0 * found.sigma * PER_PAPER
    claims(
        f'0.5 Hz: DIDIM within 5 % or 3 sigma ({percent(off)}, {history.steps} steps)',
        bool(np.all((off <= 0.05) | sure[MATTER])),
    )
    wrong = np.abs(deviation(known))[MATTER]
    claims(f'0.5 Hz: IDIM fails ({percent(wrong)})', bool(wrong.max() > 0.2))


def no_filter(data: Data, claims: Claims) -> None:
    """Table 7: sampled at 200 Hz, without any filter."""
    case = problem(data, 1)
    known = idim(case, data, 0.0)
    found, _, history = didim(case, case.initial_parameters('regular'))
    table('Table 7, 200 Hz without filter', {'IDIM': known, 'DIDIM': found}, ('7 IDIM', '7 DIDIM'))
    off, wrong = np.abs(deviation(found))[MATTER], np.abs(deviation(known))[MATTER]
    claims(
        f'no filter: DIDIM within 3 % ({percent(off)}, {history.steps} steps)',
        bool(np.all(off <= 0.03)),
    )
    claims(f'no filter: IDIM fails ({percent(wrong)})', bool(wrong.max() > 0.2))


def main() -> int:
    """Run the study."""
    parser = command_line(__doc__)
    parser.add_argument('--plots', type=Path, help='folder for figures 11 to 15')
    parser.add_argument('--duration', type=float, default=400.0, help='of the experiment [s]')
    parser.add_argument('--seed', type=int, default=1, help='of the noise')
    arguments = parser.parse_args()
    data = experiment(arguments.duration, arguments.seed, SLOW)
    ratio = SLOW.omega / bandwidth(data.reference[1], RATE)
    print(
        f"{arguments.duration:.0f} s at {RATE:.0f} Hz, ω_n over the motion's bandwidth "
        f'{ratio[0]:.1f} and {ratio[1]:.1f}, torque RMS '
        + ' and '.join(f'{x:.2f}' for x in data.tau.std(axis=0))
        + ' N·m'
    )
    claims = Claims()
    full = good_data(data, claims)
    low_rate(data, claims)
    no_filter(data, claims)
    quick = experiment(arguments.duration / QUICK.speed, arguments.seed, QUICK)
    half = half_bandwidth(data, claims)
    shares(data, quick, claims)
    bandwidths(data)
    if arguments.plots:
        from scara_figures import draw

        draw(arguments.plots, full, half)
    return int(arguments.check and claims.failed > 0)


if __name__ == '__main__':
    sys.exit(main())
