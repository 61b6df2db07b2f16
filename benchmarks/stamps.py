"""
What efforts and positions that are not of one instant do to friction, and what is done about it.

    python benchmarks/stamps.py [--check]

Robots of `config/` under the simulated joint_trajectory_controller, by MuJoCo, along their shipped
trajectories. Stamps are those of a joint_state_broadcaster: of its own cycle and some ten
microseconds late, with messages missing as on a busy machine. The effort is the command of the
update before, which acted for one period: it belongs half a period before its stamp. What a real
robot adds to that is in no message: positions are `age` older than their stamps where the hardware
reads them from a bus or another thread, and newer where a coarse integrator moves them first.

The table shows the largest error of viscous and of Coulomb friction, in % and in σ, over joints
where σ is less than `KNOWN`: with the efforts as they are stamped, with the hold
taken back, and by default, where what is left is estimated too.

A second table is of a busy machine: updates begin late, stamps are taken later still, 2 % of the
messages are lost. Robots move on with the time (`real`), or by one period an update whenever that
is (`even`, as simulated hardware). It shows the largest errors of viscous friction in % and σ with
the stamps as recorded, and by default, and the share of all parameters within 3 σ in all draws.
"""

from collections.abc import Iterator
import dataclasses
import itertools
import sys

from common import command_line, configured, ROOT, verdict
import numpy as np
from plant_session import follow, REST

from robotid_ros.core.excitation.trajectory import waypoints
from robotid_ros.core.model import build_robot, Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.regression.delays import hold_delay, prepare_without_delay, remove_delay
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.model_error import count_model_error
from robotid_ros.core.signals.recording import Controller, Recording, Reference, SignalSettings
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import StribeckSettings

ROBOTS = ('arm3', 'ur10')
# Update rates [Hz] and the share of messages that a real broadcaster lost at them.
RATES = {500.0: 0.01, 1000.0: 0.023}
AGES = (-1e-3, -0.5e-3, 0.0, 0.5e-3, 1e-3)
# Of the stamps [s]: σ of a cycle's start, and how much later the broadcaster takes the time.
JITTER, BROADCASTER = 50e-6, (20e-6, 40e-6)
PERIODS = 3
SIGNALS = SignalSettings(cutoff=10.0, rows='moving')
KNOWN = 0.01
# Of a busy machine: standard deviations by which updates begin late, and stamps are late besides
# [s]; longest lateness, as share of a period; messages lost; draws of each.
BUSY = ((0.0, 0.0), (50e-6, 0.0), (200e-6, 0.0), (500e-6, 0.0), (200e-6, 200e-6))
LATEST, LOST, DRAWS = 0.9, 0.02, 4
# Least share of parameters within 3 σ by default.
COVERED = 0.97
# Largest errors by default: of the delay [s], of which some six σ stay, and of both frictions, or
# else three σ.
LATE, WRONG = 0.6e-3, 0.015


@dataclasses.dataclass(frozen=True)
class Session:
    """What one motion gave: the robot, its true base parameters, and columns of each update."""

    robot: Robot
    base: BaseParameters
    truth: np.ndarray
    rate: float
    columns: tuple[np.ndarray, ...]


def session(
    name: str, rate: float, late: np.ndarray | None = None, in_time: bool = True
) -> Session:
    """Run a robot along its trajectory at an update rate [Hz]; see `follow`."""
    configuration, _ = configured(name)
    terms = {'default': ('viscous', 'coulomb', 'offset')}
    robot_settings = dataclasses.replace(configuration.robot, friction=terms)
    robot = build_robot(configured(name)[1].urdf, robot_settings)
    settings = dataclasses.replace(
        configuration.simulation, update_rate=rate, stribeck=StribeckSettings()
    )
    plan = waypoints(read_design(ROOT / 'config/trajectories' / f'{name}.yaml').trajectory, 50.0)
    period = float(plan.time[-1])
    points = [
        (k * period + t, *row)
        for k in range(PERIODS)
        for t, *row in list(zip(plan.time, plan.q, plan.dq, plan.ddq, strict=True))[bool(k) :]
    ]
    columns = follow(robot, settings, points, PERIODS * period, late=late, in_time=in_time)
    links = Physics(robot.urdf, settings, robot.joints).true_parameters()
    known = {link.name: link.values for link in links}
    chi = [known.get(p.joint, {}).get(p.symbol, 0.0) for p in robot.parameters]
    base = base_parameters(robot)
    return Session(robot, base, base.of(np.array(chi)), rate, columns)


def recorded(run: Session, age: float) -> Recording:
    """Return what a recorder keeps of it where positions are `age` older than stamps [s]."""
    rng, rate, joints = np.random.default_rng(5), run.rate, run.robot.joints
    q, dq, tau, *desired, _ = run.columns
    updates = np.arange(len(q)) / rate - REST
    cycle = updates + np.abs(JITTER * rng.normal(size=len(q)))
    states, commands = rng.random((2, len(q))) >= RATES[rate]
    states &= updates >= 0.0
    q = np.column_stack([np.interp(updates - age, updates, column) for column in q.T])
    stamps = cycle + rng.uniform(*BROADCASTER, len(q))
    # The hardware reports a command one update after it was given.
    command = np.roll(tau, -1, axis=0)
    return Recording(
        joints, stamps[states], q[states], tau[states], dq[states],
        reference=Reference(cycle[commands], *(x[commands] for x in (*desired, command))),
        controller=Controller('arm', 'joint_trajectory_controller', rate, joints, ('effort',)),
    )  # fmt: skip


def errors(run: Session, recording: Recording, align: bool) -> tuple[dict[str, str], float, bool]:
    """Return the largest error of each friction as text, the delay found, and if all is well."""
    signals = dataclasses.replace(SIGNALS, time_offset=align)
    found = prepare_without_delay(recording, run.robot, run.base, signals)
    system, delays = found.system, found.delays
    estimate = fit(system, 'wls')
    error, sigma = estimate.value - run.truth, estimate.sigma
    texts, good = {}, True
    for symbol in ('Fv', 'Fc'):
        rows = [k for k, name in enumerate(run.base.names) if name.startswith(symbol)]
        rows = [k for k in rows if sigma[k] < KNOWN * abs(run.truth[k])]
        worst = max(rows, key=lambda k: abs(error[k] / run.truth[k]))
        share, times = error[worst] / abs(run.truth[worst]), error[worst] / sigma[worst]
        texts[symbol] = f'{run.base.names[worst]:>4s} {100 * share:+6.2f} % {times:+6.1f} σ'
        good &= abs(share) < WRONG or abs(times) < 3.0
    return texts, float(np.mean(list(delays.values()) or [0.0])), good


def rows() -> Iterator[tuple[str, str]]:
    """Yield the lines of the table and what each misses, '' where nothing."""
    for name in ROBOTS:
        for rate in RATES:
            run = session(name, rate)
            for age in AGES:
                recording = recorded(run, age)
                held = hold_delay(recording) or 0.0
                before = errors(run, recording, False)[0]
                hold = errors(run, remove_delay(recording, held), False)[0]
                after, delay, good = errors(run, recording, True)
                late = abs(delay - (0.5 / rate - age))
                where = f'{name:5s} {rate:6.0f} {1e3 * age:+6.1f} {1e3 * delay:+7.2f}'
                cells = (f'{t["Fv"]} {t["Fc"]}' for t in (before, hold, after))
                missed = '' if good and late < LATE else where
                yield f'{where}  ' + ' | '.join(cells), missed


def busy_rows() -> Iterator[tuple[str, str]]:
    """Yield the lines of the second table and what each misses, '' where nothing."""
    for name, in_time, (late, later) in itertools.product(ROBOTS, (True, False), BUSY):
        found = [busy_draw(name, in_time, late, later, seed) for seed in range(DRAWS)]
        recorded_as, default = zip(*found, strict=True)
        cells = []
        for each in (recorded_as, default):
            share, times, inside = (np.array(x) for x in zip(*each, strict=True))
            worst = np.unravel_index(np.argmax(np.abs(share)), share.shape)
            cells.append(
                f'{100 * share[worst]:+6.2f} % {np.abs(times).max():5.1f} σ '
                f'{100 * inside.mean():6.1f} %'
            )
        where = f'{name:5s} {"real" if in_time else "even"} {1e3 * late:5.2f} {1e3 * later:5.2f}'
        yield f'{where}  ' + ' | '.join(cells), where if inside.mean() < COVERED else ''


def busy_draw(
    name: str, in_time: bool, late: float, later: float, seed: int
) -> tuple[tuple[np.ndarray, np.ndarray, float], ...]:
    """Return errors of Fv, relative and in σ, and the share within 3 σ: as recorded, default."""
    rate = 500.0
    rng = np.random.default_rng([seed, 7])
    wake, stamp = (x * rng.exponential(size=40_000) for x in (late, later))
    wake = np.minimum(wake, LATEST / rate)
    run = session(name, rate, wake, in_time)
    q, dq, tau, *desired, command = run.columns
    cycle = np.arange(len(q)) / rate - REST + wake[: len(q)]
    stamps = cycle + np.minimum(rng.uniform(*BROADCASTER, len(q)) + stamp[: len(q)], LATEST / rate)
    states, commands = rng.random((2, len(q))) >= LOST
    states &= (cycle >= 0.0) & (stamps > np.maximum.accumulate(np.append(-np.inf, stamps[:-1])))
    log = Recording(
        run.robot.joints, stamps[states], q[states], tau[states], dq[states],
        reference=Reference(cycle[commands], *(x[commands] for x in (*desired, command))),
        controller=Controller(
            'arm', 'joint_trajectory_controller', rate, run.robot.joints, ('effort',)
        ),
    )  # fmt: skip
    result = []
    for kind in ('recorded', 'auto'):
        signals = dataclasses.replace(SIGNALS, stamps=kind)
        found = prepare_without_delay(log, run.robot, run.base, signals)
        samples, system = found.samples, found.system
        estimate = fit(count_model_error(samples, system, run.robot, run.base), 'wls')
        error = estimate.value - run.truth
        times = error / estimate.sigma
        fv = [k for k, symbol in enumerate(run.base.names) if symbol.startswith('Fv')]
        result.append((error[fv] / run.truth[fv], times[fv], float(np.mean(np.abs(times) <= 3.0))))
    return tuple(result)


def main() -> int:
    """Print the table."""
    arguments = command_line(__doc__).parse_args()
    print('robot   rate age[ms] delay  as stamped | hold taken back | estimated too')
    missed = []
    for line, miss in rows():
        print(line, flush=True)
        missed += [miss] if miss else []
    print('robot moves  late, stamped later [ms]  stamps as recorded | by default')
    for line, miss in busy_rows():
        print(line, flush=True)
        missed += [miss] if miss else []
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
