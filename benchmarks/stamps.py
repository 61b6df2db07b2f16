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
"""

from collections.abc import Iterator
import dataclasses
import sys

from common import command_line, configured, ROOT, verdict
import numpy as np
from plant_session import follow, REST

from robotid_ros.core.excitation import waypoints
from robotid_ros.core.model import build_robot, Robot
from robotid_ros.core.model.base_parameters import base_parameters, BaseParameters
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.signals.recording import Controller, Recording, Reference
from robotid_ros.core.signals.samples import SignalSettings
from robotid_ros.core.timing.delay_compensation import (
    hold_delay,
    prepare_without_delay,
    remove_delay,
)
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.plant.physics.mujoco_physics import Physics
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


def session(name: str, rate: float) -> Session:
    """Run a robot along its trajectory at an update rate [Hz]."""
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
    columns = follow(robot, settings, points, PERIODS * period)
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
    _, system, delays, _ = prepare_without_delay(recording, run.robot, run.base, signals)
    found = fit(system, 'wls')
    error, sigma = found.value - run.truth, found.sigma
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


def main() -> int:
    """Print the table."""
    arguments = command_line(__doc__).parse_args()
    print('robot   rate age[ms] delay  as stamped | hold taken back | estimated too')
    missed = []
    for line, miss in rows():
        print(line, flush=True)
        missed += [miss] if miss else []
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
