"""
An open comparison of methods: accuracy, honesty of σ, cost, start, failures.

    python benchmarks/studies/methods.py [--cases NAME …] [--methods NAME …] [--draws N] [--check]

What is identified: `methods_cases.py`. Each method has the package's default settings, the same in
every case: nothing is chosen, and nothing is known of noise or truth. To add one, write a function
of a recording and a robot that returns base parameters and their σ, (b,) each in the order of
`base_parameters`, and give it an entry in METHODS, as `description` below. A method runs in a
process of its own with a limit of CPU time.

Columns: median over the draws of `error`, see `Draw`, in percent; share of the true base
parameters within 3 σ, and the median of error over σ, as a share of that of a normal distribution
(1: σ are honest); CPU time; how many draws failed. `--starts` adds from how many of three starts
(the solution of the measured positions, the description, the regular one) an iterative method
arrives at the same result.
"""

from collections.abc import Callable, Iterable
from functools import partial
import multiprocessing
from multiprocessing.connection import Connection
import resource
import sys
import time
from typing import NamedTuple

import _benchmarks  # noqa: F401
from common import command_line, verdict
from methods_cases import CASES, Draw
import numpy as np

from robotid_ros.core.identification_settings import IdentificationSettings, ReplaySettings
from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.signals.recording import Recording

# Base parameters and their σ, (b,) each.
Found = tuple[np.ndarray, np.ndarray]
STARTS = ('idim', 'prior', 'regular')
# Results of two starts are the same where no parameter differs by more σ than this.
SAME = 1.0
HEADS = ('error [%]', 'in 3 σ [%]', 'error/σ', 'CPU [s]', 'failed', 'same from')
# WLS leaves at most so much of a wrong description's error (of that of a log, less than all), and
# so many truths are within 3 σ, but where encoders hide the motion, or springs the joints.
IMPROVED, INSIDE = 0.2, 0.8
HARD = ('scara, bad encoders', 'tx40, bad encoders', 'elastic 2r')
# Median of the absolute value of a standard normal.
NORMAL = 0.6745


def description(recording: Recording, robot: Robot) -> Found:
    """Take the robot description as it is: what a method has to improve."""
    base = base_parameters(robot.elastic or robot)
    value = base.of((robot.elastic or robot).prior)
    return value, np.full_like(value, np.nan)


def by_package(recording: Recording, robot: Robot, *, method: str, start: str = 'auto') -> Found:
    """Estimate by a method of the package."""
    settings = IdentificationSettings(
        method=method, model='plain', replay=ReplaySettings(start=start)
    )
    model = robot.elastic or robot
    base = base_parameters(model)
    found = estimate_base_parameters(recording, model, base, settings, lambda _: None).estimate
    return found.value, found.sigma


METHODS: dict[str, Callable[[Recording, Robot], Found]] = {
    'description': description,
    **{
        name: partial(by_package, method=name)
        for name in ('ols', 'wls', 'irls', 'tls', 'mle', 'iv', 'didim', 'clie', 'cloe', 'oe')
    },
}
# Those that start somewhere.
ITERATIVE = ('didim', 'clie', 'cloe', 'oe')


class Outcome(NamedTuple):
    """Base parameters and σ, None where a method fails; CPU time [s]; why it failed."""

    found: Found | None
    seconds: float
    said: str = ''


class Row(NamedTuple):
    """A line of the table: one method in one case; NaN where there is no truth, or no result."""

    error: float
    inside: float
    honest: float
    seconds: float
    failed: int
    same: int
    draws: int

    def line(self, name: str) -> str:
        """Format it; what is not known is left out."""
        numbers = (100.0 * self.error, 100.0 * self.inside, self.honest, self.seconds)
        cells = [
            f'{x:.{d}f}' if x == x else '' for x, d in zip(numbers, (2, 1, 2, 1), strict=True)
        ]
        cells.append(f'{self.failed} of {self.draws}' if self.failed else '')
        cells.append(f'{self.same} of {len(STARTS)}' if self.same >= 0 else '')
        return cells_of(name, cells)


def cells_of(name: str, cells: Iterable[str]) -> str:
    """Return a line of the table."""
    return f'  {name:12s}{"".join(f"{cell:>11s}" for cell in cells)}'.rstrip()


def attempt(method: Callable[[Recording, Robot], Found], draw: Draw, limit: float) -> Outcome:
    """Run a method in a process of its own."""
    fork = multiprocessing.get_context('fork')
    receiving, sending = fork.Pipe(duplex=False)
    process = fork.Process(target=_work, args=(sending, method, draw, limit))
    process.start()
    sending.close()
    try:
        outcome = Outcome(*receiving.recv())
    except EOFError:
        outcome = Outcome(None, float('nan'), f'no end within {limit:g} s')
    process.join()
    return outcome


def _work(
    connection: Connection,
    method: Callable[[Recording, Robot], Found],
    draw: Draw,
    limit: float,
) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (round(limit), round(limit)))
    begin, found, said = time.process_time(), None, ''
    try:
        found = method(draw.recording, draw.robot)
    # Whatever stops a method of anyone is a failure of it.
    except Exception as error:
        said = f'{type(error).__name__}: {error}'
    connection.send((found, time.process_time() - begin, said))


def same_results(name: str, draw: Draw, limit: float) -> int:
    """Return from how many starts a method arrives at what it does by itself."""
    best, count = attempt(METHODS[name], draw, limit).found, 0
    for start in STARTS if best else ():
        found = attempt(partial(METHODS[name], start=start), draw, limit).found
        count += found is not None and bool(np.all(np.abs(found[0] - best[0]) <= SAME * best[1]))
    return count


def judge(draws: list[Draw], outcomes: list[Outcome], same: int) -> Row:
    """Summarise what a method made of some draws."""
    pairs = [(d, o.found) for d, o in zip(draws, outcomes, strict=True) if o.found]
    errors = [draw.error(found[0]) for draw, found in pairs]
    scores = [(f[0] - d.true) / f[1] for d, f in pairs if d.true is not None]
    off = np.abs(np.concatenate(scores)) if scores else np.full(1, np.nan)
    known = not np.isnan(off).any()
    return Row(
        error=float(np.median(errors)) if errors else float('nan'),
        inside=float(np.mean(off <= 3.0)) if known else float('nan'),
        honest=float(np.median(off)) / NORMAL,
        seconds=float(np.median([o.seconds for o in outcomes])),
        failed=sum(o.found is None for o in outcomes),
        same=same,
        draws=len(draws),
    )


def compare(
    name: str, methods: list[str], count: int, limit: float, starts: bool
) -> dict[str, Row]:
    """Print the table of one case."""
    draws = [CASES[name](seed) for seed in range(1 if name.endswith('log') else count)]
    known = draws[0].true is not None
    print(f'\n{name}: {len(draws)} draws' if known else f'\n{name}')
    print(cells_of('', HEADS))
    rows = {}
    for method in methods:
        outcomes = [attempt(METHODS[method], draw, limit) for draw in draws]
        same = same_results(method, draws[0], limit) if starts and method in ITERATIVE else -1
        rows[method] = judge(draws, outcomes, same)
        said = sorted({o.said.splitlines()[0][:90] for o in outcomes if o.said})
        print(rows[method].line(method), *(f'\n    {text}' for text in said), flush=True)
    return rows


def missed_bounds(found: dict[str, dict[str, Row]]) -> list[str]:
    """Return where WLS, the default, does not do what docs/studies/methods.md says of it."""
    missed = []
    for case, rows in found.items():
        if case in HARD or not {'description', 'wls'} <= rows.keys():
            continue
        left, before = rows['wls'], rows['description'].error
        share = 1.0 if case.endswith('log') else IMPROVED
        if left.failed or left.error > share * before:
            missed.append(f'{case}: wls leaves {left.error:.2%} of {before:.2%}')
        if left.inside < INSIDE:
            missed.append(f'{case}: {left.inside:.0%} of the truths within 3 σ of wls')
    return missed


def main() -> int:
    """Compare."""
    parser = command_line(__doc__)
    parser.add_argument('--cases', nargs='+', choices=tuple(CASES), default=list(CASES))
    parser.add_argument('--methods', nargs='+', choices=tuple(METHODS), default=list(METHODS))
    parser.add_argument('--draws', type=int, default=5, help='of each simulated robot')
    parser.add_argument('--limit', type=float, default=600.0, help='CPU time of one run [s]')
    parser.add_argument(
        '--starts', action='store_true', help='try three starts on each first draw'
    )
    given = parser.parse_args()
    found = {
        name: compare(name, given.methods, given.draws, given.limit, given.starts)
        for name in given.cases
    }
    return verdict(missed_bounds(found), given.check)


if __name__ == '__main__':
    sys.exit(main())
