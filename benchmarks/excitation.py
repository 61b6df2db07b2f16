"""
Excitation: criterion against CPU time on one thread, families compared.

    python benchmarks/excitation.py [ur10] [seconds] [arm7] [gradient] [families] [feasible]
        [collision] [meshes] [tx40] [arms] [limit] [--robots FOLDER] [--check]

Without names, all of them; with --check, what is slower or worse than its bound is an error.
`arms` and `limit` need the arms of example-robot-data: the folder that holds it is --robots.
"""

from dataclasses import replace
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import time

# Before NumPy is imported.
os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')

from common import command_line, configured, ROOT, verdict
from excitation_robots import arm7, ARMS, configuration_of, ur10, with_meshes
from measure import busy, CALLS, yardstick
import numpy as np

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import Design, design, Progress
from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.problem import Problem
from robotid_ros.core.excitation.settings import (
    ExcitationSettings,
    Margins,
    ValidationSettings,
    Workspace,
)
from robotid_ros.core.findings import render
from robotid_ros.core.model import build_robot, Robot, RobotSettings

# Largest figures, by row: condition number, and CPU time [yardsticks]; or the one of the row.
BOUNDS = {
    'UR10 rigid, raw': (9.0, 6.0),
    'UR10 Fv Fc Ia off, raw': (27.0, 6.0),
    'UR10 Fv Fc Ia off, normalised': (5.5, 6.0),
    'UR10 rigid, raw, self-collision': (17.6, 34.0),
    'UR10 rigid, raw, self-collision of meshes': (17.6, 34.0),
    '7-DoF, Fv Fc off, raw': (60.0, 12.0),
    'TX-40 as configured': (45.0, 17.0),
}
LARGEST_SHARE, LARGEST_STEP = 1.0 + 1e-9, 8.0  # of any limit; of value and gradient
# CPU times of the families' table [s]; starts and iterations that fill them.
MARKS = (1, 2, 5, 10, 30)
# Largest condition number, median over seeds, after so many yardsticks.
SECONDS = {1.0: 8.0, 5.0: 7.2}
# Share of this time for the search (its end needs the rest), its starts and iterations.
SEARCHES = {1.0: (0.8, 1, 240), 5.0: (0.95, 3, 600)}
# Largest CPU time of a whole design [yardsticks]; wall time of a limited one over its limit [s].
ARM_TIME, LIMIT, LIMIT_SHARE = 17.0, 20.0, 1.1
STARTS, ITERATIONS = 8, 200
missed: list[str] = []
robots: Path
FREE = Workspace(self_collision=False)
PLAIN = {
    'margins': Margins(0.0, 0.0, 0.0, 0.0, 0.0),
    'validation': ValidationSettings(kind='none'),
    'workspace': FREE,
    'time_limit': 1e6,
}


def timed(robot: Robot, settings: ExcitationSettings) -> tuple[Design, float]:
    """Design, and the CPU time it took [s]."""
    begin = time.process_time()
    result = design(robot, settings)
    return result, time.process_time() - begin


def bound(label: str, value: float, largest: float) -> None:
    """Note what is above its bound."""
    if not value <= largest:
        missed.append(f'{label}: {value:.3f} is above {largest:g}')


def line(label: str, result: Design, seconds: float) -> None:
    """Print one row."""
    if label in BOUNDS:
        kind = 'normalised' if label.endswith('normalised') else 'raw'
        bound(label, result.condition_numbers[kind], BOUNDS[label][0])
        bound(f'{label}, yardsticks', seconds / yardstick(), BOUNDS[label][1])
    numbers = result.condition_numbers
    print(
        f'{label:44s} {len(result.columns):3d} columns  raw {numbers["raw"]:7.2f}  '
        f'normalised {numbers["normalised"]:6.2f}  CPU {seconds:6.2f} s  '
        f'{result.evaluations} evaluations'
    )


def bench_ur10() -> None:
    """Condition numbers on the UR10, 24 s, no margins."""
    base = ExcitationSettings(period=24.0, order=12, starts=1, iterations=500, **PLAIN)
    line('UR10 rigid, raw', *timed(ur10(False), replace(base, order=10, iterations=300)))
    line('UR10 Fv Fc Ia off, raw', *timed(ur10(), base))
    normalised = replace(base, criterion='normalised_condition', starts=1, iterations=200)
    line('UR10 Fv Fc Ia off, normalised', *timed(ur10(), normalised))


def bench_seconds() -> None:
    """Condition number of the UR10 after so many seconds, counted in calls of the regressor."""
    robot = ur10(False)
    for seconds, largest in SECONDS.items():
        share, starts, iterations = SEARCHES[seconds]
        values, costs = [], []
        for seed in range(5):
            unit = yardstick()
            settings = ExcitationSettings(
                period=24.0, order=10, starts=starts, iterations=iterations, seed=seed, **PLAIN
            )
            begin = time.process_time()
            end = begin + share * seconds * unit
            result = design(robot, settings, lambda _, end=end: time.process_time() > end)
            costs.append((time.process_time() - begin) / unit)
            values.append(result.condition_numbers['raw'])
        cells = ' '.join(f'{v:.2f} ({c:.2f})' for v, c in zip(values, costs, strict=True))
        of = f'{seconds:g} yardsticks of {CALLS} calls ({unit:.2f} s)'
        print(f'UR10 rigid, 36 columns, {of}: {cells}')
        bound(
            f'UR10 rigid, median after {seconds:g} yardsticks', float(np.median(values)), largest
        )
        bound(f'UR10 rigid, {seconds:g} yardsticks', float(np.median(costs)), 1.05 * seconds)


def bench_arms() -> None:
    """Whole designs of real arms: meshes, self-collision, ground, validation motion."""
    for name in ARMS:
        with tempfile.TemporaryDirectory() as folder:
            configuration, robot = configured(configuration_of(name, robots, Path(folder)))
            result, seconds = timed(robot, replace(configuration.excitation, time_limit=1e6))
        line(name, result, seconds)
        bound(f'{name}, yardsticks', seconds / yardstick(), ARM_TIME)
        bound(f'{name}, shortcomings', len(result.shortcomings), 0)


def bench_limit() -> None:
    """Wall time of `robotid design --time-limit`, beside two busy loops."""
    with busy(2):
        for name in ARMS:
            with tempfile.TemporaryDirectory() as folder:
                path = configuration_of(name, robots, Path(folder))
                command = [sys.executable, '-m', 'robotid_ros.cli', 'design', str(path)]
                options = ['--time-limit', f'{LIMIT:g}', '-o', f'{folder}/trajectory.yaml']
                begin = time.monotonic()
                code = subprocess.run([*command, *options], capture_output=True).returncode
                seconds = time.monotonic() - begin
            print(
                f'{name}: {seconds:.1f} s of {LIMIT:g} s beside two busy loops, exit code {code}'
            )
            bound(f'{name}, limited', seconds, LIMIT_SHARE * LIMIT)
            bound(f'{name}, limited, exit code', code, 0)


def bench_collision() -> None:
    """Design with self-collision avoidance on the URDF's shapes."""
    apart('UR10 rigid, raw, self-collision', ur10(False), Workspace(distance=0.01))


def apart(label: str, robot: Robot, workspace: Workspace) -> None:
    """Design with self-collision avoidance."""
    base = ExcitationSettings(
        period=24.0, order=8, starts=2, iterations=120, **{**PLAIN, 'workspace': workspace}
    )
    result, seconds = timed(robot, base)
    line(label, result, seconds)
    print(f'    smallest distance {result.usage.distance:.4f} m')
    for note in result.notes:
        print(f'    {render(note)}')


def bench_meshes() -> None:
    """Do the same with every cylinder as a mesh of 256 triangles."""
    with tempfile.TemporaryDirectory() as folder:
        robot = with_meshes(ur10(False), Path(folder))
        apart('UR10 rigid, raw, self-collision of meshes', robot, Workspace(distance=0.01))


def bench_tx40() -> None:
    """Design what the demo designs, with its validation, to the end of its budget."""
    configuration, robot = configured('tx40')
    line(
        'TX-40 as configured',
        *timed(robot, replace(configuration.excitation, time_limit=1e6)),
    )


def bench_arm7() -> None:
    """Seven joints, 10 s."""
    settings = ExcitationSettings(period=10.0, order=5, starts=3, iterations=200, **PLAIN)
    line('7-DoF, Fv Fc off, raw', *timed(arm7(), settings))


def bench_gradient() -> None:
    """CPU time of one evaluation with its gradient, UR10, 100 samples, 58 columns."""
    robot = ur10()
    for criterion in ('condition', 'normalised_condition', 'frobenius', 'd_optimal', 'smallest'):
        settings = ExcitationSettings(criterion=criterion, period=24.0, order=10, **PLAIN)
        problem = Problem(robot, settings, CollisionScene(robot, FREE))
        points = [problem.random_point(np.random.default_rng(k)) for k in range(20)]
        durations = []
        for x in points:
            begin = time.process_time()
            problem.evaluate(x)
            durations.append(time.process_time() - begin)
        steps = 1e3 * float(np.median(durations)) / yardstick()
        bound(f'value and gradient of {criterion} [yardsticks/1000]', steps, LARGEST_STEP)
        print(
            f'UR10 value and gradient, {criterion:22s} {len(problem.bases[0])} samples, '
            f'{len(problem.columns)} columns: median {1e3 * np.median(durations):5.2f} ms, '
            f'least {1e3 * min(durations):5.2f} ms'
        )


def convergence(robot: Robot, settings: ExcitationSettings) -> tuple[list[float], Design]:
    """Design, and note the best value at each of `MARKS`; infinity where there is none yet."""
    begin, best = time.process_time(), [float('inf')] * len(MARKS)

    def note(state: Progress) -> None:
        now = time.process_time() - begin
        for k, mark in enumerate(MARKS):
            if now <= mark and state.criterion is not None:
                best[k] = state.criterion

    result = design(robot, settings, note)
    seconds = time.process_time() - begin
    return [result.value if seconds <= m else b for m, b in zip(MARKS, best, strict=True)], result


def bench_families() -> None:
    """Every family: the best value after so much CPU time."""
    robot = ur10()
    print(f'best condition of the search after CPU time [s] {"":9s}', *(f'{m:7g}' for m in MARKS))
    for family in ('mfs', 'ffs', 'bspline', 'quintic'):
        settings = ExcitationSettings(
            family=family,
            period=24.0,
            order={'bspline': 16, 'quintic': 6}.get(family, 8),
            starts=STARTS,
            iterations=ITERATIONS,
            **PLAIN,
        )
        values, result = convergence(robot, settings)
        cells = ' '.join(f'{v:7.1f}' for v in values)
        final = result.condition_numbers['raw']
        print(f'UR10, 58 columns: {family:37s} {cells}  raw, densely {final:6.1f}')


def bench_feasible() -> None:
    """Re-check 100 random designs of three robots at 1 kHz."""
    rng, count, worst = np.random.default_rng(0), 0, 0.0
    for name in ('scara', 'arm3', 'tx40'):
        robot = build_robot((ROOT / 'urdf' / f'{name}.urdf').read_text(), RobotSettings())
        for _ in range(34 if name == 'scara' else 33):
            settings = ExcitationSettings(
                family=str(rng.choice(['mfs', 'bspline', 'quintic'])),
                period=float(rng.uniform(3.0, 20.0)),
                order=int(rng.integers(3, 8)),
                seed=int(rng.integers(1 << 30)),
                starts=1,
                iterations=10,
                **PLAIN,
            )
            usage = check_trajectory(robot, design(robot, settings).trajectory, settings)
            quantities = ('position', 'velocity', 'acceleration', 'jerk', 'effort')
            worst = max(worst, *(max(getattr(usage, q)) for q in quantities))
            count += 1
    bound('largest share of any limit', worst, LARGEST_SHARE)
    print(f'{count} random designs at 1 kHz: largest share of any limit {worst:.6f}')


BENCHES = {
    'ur10': bench_ur10,
    'seconds': bench_seconds,
    'arm7': bench_arm7,
    'gradient': bench_gradient,
    'families': bench_families,
    'feasible': bench_feasible,
    'collision': bench_collision,
    'meshes': bench_meshes,
    'tx40': bench_tx40,
    'arms': bench_arms,
    'limit': bench_limit,
}


def main() -> int:
    """Run what is named."""
    parser = command_line(__doc__)
    parser.add_argument('names', nargs='*', metavar='NAME', help=', '.join(BENCHES))
    parser.add_argument('--robots', type=Path, metavar='FOLDER', help='of example-robot-data')
    options = parser.parse_args()
    foreign = {'arms', 'limit'}
    names = options.names or [n for n in BENCHES if options.robots or n not in foreign]
    if unknown := sorted({*names} - {*BENCHES}):
        parser.error(f'no benchmark {unknown[0]!r}: choose of {", ".join(BENCHES)}')
    if not options.robots and foreign & {*names}:
        parser.error('arms and limit need --robots FOLDER, that of example-robot-data')
    global robots
    robots = options.robots
    print('columns: the first independent ones in Pinocchio order, then rotors and friction')
    for name in names:
        BENCHES[name]()
    return verdict(missed, options.check)


if __name__ == '__main__':
    sys.exit(main())
