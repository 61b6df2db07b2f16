"""
DIDIM beside the methods it is compared with: cost, dependence on the start, σ and truth.

    python benchmarks/studies/didim_methods.py [--check] [--draws N] [--duration SECONDS]

IDIM by least squares and by instruments of the simulated motion; DIDIM, and the closed-loop input
error (CLIE) that it simplifies; output error of the position in closed (CLOE) and open loop (OE).
All of them through `identify`, from recordings of the SCARA of DIDIM's section V on fast loops
(`scara_plant.py`, which shares nothing with the package), torque noise of 8 %. Once the recorded
positions have the noise of good encoders, once that of bad ones.

For each: steps and CPU time, deviation of the five parameters that matter (largest of their root
mean squares over the draws), median of their σ over DIDIM's, root mean square of deviation over σ
of all eight (1: σ are honest), and from which starts it arrives at the same.
"""

import sys
import time

import _benchmarks  # noqa: F401
from common import command_line, configured, verdict
from methods_cases import recording_of
import numpy as np
from scara_plant import Data, experiment, NOMINAL, QUICK, RATE
from scara_tables import MATTER, PER_PAPER

from robotid_ros.core.identification_settings import IdentificationSettings, ReplaySettings
from robotid_ros.core.pipeline.identification import Identification, identify
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.exceptions import RobotIdError

METHODS = ('wls', 'iv', 'didim', 'clie', 'cloe', 'oe')
STARTS = ('idim', 'prior', 'regular')
SIMULATED = METHODS[2:]
# Noise of the recorded positions [rad], and the filter of IDIM [Hz].
ENCODERS = {'good encoders, 0.02 mrad': (0.0, 20.0), 'bad encoders, 1 mrad': (1e-3, 20.0)}
GOOD, BAD = ENCODERS
# Results of two starts are the same when no parameter differs by more σ than this.
SAME = 1.0
# Bounds: largest deviation with good encoders, of DIDIM and CLIE with any; how much nearer to the
# truth than least squares instruments are with bad ones; CLIE's σ over DIDIM's.
DEVIATION, NEARER, ALIKE = 0.03, 0.3, (0.8, 1.25)


def run(
    recording: Recording, method: str, start: str, cutoff: float
) -> tuple[Identification | None, float]:
    """Return an identification, None where it fails, and its CPU time [s]."""
    settings = IdentificationSettings(
        method=method,
        essential=False,
        model='plain',
        covariance='residuals',
        signals=SignalSettings(cutoff=cutoff, decimation=10),
        replay=ReplaySettings(start=start, step=1.0 / RATE),
    )
    begin = time.process_time()
    try:
        found = identify(recording, configured('scara')[1], settings)
    except RobotIdError as error:
        print(f'    {method} from {start}: {str(error)[:120]}')
        return None, time.process_time() - begin
    return found, time.process_time() - begin


def steps_of(found: Identification | None) -> str:
    """Return the steps of an iteration, '-' without any."""
    if found is None:
        return 'fails'
    return '-' if found.history is None else str(found.history.steps)


def starts_of(recording: Recording, method: str, cutoff: float, best: Identification) -> str:
    """Say how many steps a method takes from each start, and whether it ends at the same."""
    if method not in SIMULATED:
        return ''
    texts = []
    for start in STARTS:
        found, _ = run(recording, method, start, cutoff)
        text = steps_of(found)
        if found is not None:
            gap = np.abs(found.estimate.value - best.estimate.value) / best.estimate.sigma
            text += '' if gap.max() <= SAME else f' (off by {gap.max():.1f} σ)'
        texts.append(f'{start} {text}')
    return ', '.join(texts)


def compare(title: str, draws: list[Data]) -> dict[str, tuple[float, float, str]]:
    """Print the table of one encoder; return deviation, σ over DIDIM's, and the starts."""
    true, (noise, cutoff) = NOMINAL / PER_PAPER, ENCODERS[title]
    print(f'\n{title}\n  method steps   CPU  deviation  σ/DIDIM  dev./σ  steps from each start')
    recordings, results = [recording_of(data, noise) for data in draws], {}
    found = {m: [run(each, m, 'auto', cutoff) for each in recordings] for m in METHODS}
    estimates = {m: [f.estimate for f, _ in pairs if f] for m, pairs in found.items()}
    reference = np.median([e.sigma for e in estimates['didim']], axis=0)
    for method, pairs in found.items():
        value, sigma = (np.array([getattr(e, x) for e in estimates[method]])
                        for x in ('value', 'sigma'))  # fmt: skip
        off = float(np.sqrt(np.mean(((value - true) / true) ** 2, axis=0))[MATTER].max())
        ratio = float(np.median((np.median(sigma, axis=0) / reference)[MATTER]))
        score = float(np.sqrt(np.mean(((value - true) / sigma) ** 2)))
        first, used = pairs[0][0], np.median([seconds for _, seconds in pairs])
        starts = 'fails' if first is None else starts_of(recordings[0], method, cutoff, first)
        print(
            f'  {method:6s} {steps_of(first):>5s} {used:5.1f} {100 * off:8.2f} % {ratio:8.2f} '
            f'{score:7.2f}  {starts}',
            flush=True,
        )
        results[method] = off, ratio, starts
    return results


def missed_bounds(good: dict[str, tuple], bad: dict[str, tuple]) -> list[str]:
    """Return what the two tables do not keep."""
    missed = [f'{GOOD}: {m} is off by {r[0]:.3f}' for m, r in good.items() if r[0] > DEVIATION]
    missed += [f'{BAD}: {m} is off' for m in ('didim', 'clie') if bad[m][0] > DEVIATION]
    if bad['iv'][0] > NEARER * bad['wls'][0]:
        missed.append(f'{BAD}: instruments {bad["iv"][0]:.3f}, least squares {bad["wls"][0]:.3f}')
    if not ALIKE[0] <= good['clie'][1] <= ALIKE[1]:
        missed.append(f'σ of CLIE over that of DIDIM: {good["clie"][1]:.2f}')
    if not good['cloe'][1] < 1.0 < bad['cloe'][1]:
        missed.append('σ of CLOE does not grow with the noise of the positions')
    for title, results in ((GOOD, good), (BAD, bad)):
        lost = [m for m, (*_, starts) in results.items() if 'off' in starts or 'fails' in starts]
        missed += [f'{title}: {m} does not arrive from every start' for m in lost]
    return missed


def main() -> int:
    """Draw the experiments and compare."""
    parser = command_line(__doc__)
    parser.add_argument('--draws', type=int, default=2, help='of the noise')
    parser.add_argument('--duration', type=float, default=15.0, help='of the motion [s]')
    arguments = parser.parse_args()
    draws = [experiment(arguments.duration, seed + 1, QUICK) for seed in range(arguments.draws)]
    good, bad = (compare(title, draws) for title in (GOOD, BAD))
    return verdict(missed_bounds(good, bad), arguments.check)


if __name__ == '__main__':
    sys.exit(main())
