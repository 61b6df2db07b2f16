"""
What an identification costs: CPU time and memory, each in a process of its own, on one thread.

    python benchmarks/identification.py [FOLDER] [--scratch DIR] [--minutes 1 5 20 60]
        [--hours 24] [--check]

FOLDER holds the TX-40's published log. The long recording, 1 kHz, seven joints, is made in DIR
and removed at the end; shorter ones are its first minutes. That of --hours is made while it is
identified, and never stored. Bounds of time are multiples of the yardstick of `measure`; seconds
are printed beside them.
"""

import argparse
from collections.abc import Iterator
import itertools
from pathlib import Path
import sys
import tempfile
import time

from common import command_line, ROOT, verdict
from measure import imports, measure, yardstick
import numpy as np

SAMPLES, TIMES, REPEATS = 10_000, 10, 3  # rows of the regressor, how often; of all else
# Largest CPU time [yardsticks] and memory [MB] of each; for the regressor the time of the call
# alone, over the same number of bare calls; of a day, memory alone.
BOUNDS = {
    'regressor': (0.6, 200.0),
    'inspect': (0.5, 150.0),
    'tx40': (4.0, 300.0),
    'tx40_files': (3.0, 500.0),
    'ur10_files': (4.2, 500.0),
    'hour': (32.0, 800.0),
    'day': (float('inf'), 1000.0),
}
# What the defaults may cost, over the same identification with nothing to choose (decision 9).
CHOICE = 3.0
PEERS = {
    'regressor': 'figaroh 0.14-0.20 s, 355-400 MB; bare Pinocchio loop 0.04-0.05 s',
    'inspect': 'no peer has it',
    'tx40': 'figaroh 3.2 s, 790 MB',
    'tx40_files': 'no peer writes a page',
    'ur10_files': 'no peer writes a page',
    'hour': 'no peer reads it',
    'day': 'no peer reads it',
}
EPOCH = 1_700_000_000_000_000_000
JOINTS, RATE, PERIOD = 7, 1000, 20.0


def work_regressor() -> None:
    """Print CPU times of the observation matrix of a UR10, all columns, and of bare calls [s]."""
    import pinocchio

    from robotid_ros.core.model import build_robot, regressor
    from robotid_ros.core.model.settings import RobotSettings

    robot = build_robot((ROOT / 'urdf/ur10.urdf').read_text(), RobotSettings())
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (SAMPLES, 3, robot.n))
    data, costs = robot.model.createData(), []
    for _ in range(TIMES):  # in turn: a machine may be busy for a while
        marks = [time.process_time()]
        regressor(robot, *states.swapaxes(0, 1))
        marks.append(time.process_time())
        for q, dq, ddq in states:
            pinocchio.computeJointTorqueRegressor(robot.model, data, q, dq, ddq)
        costs.append(np.diff([*marks, time.process_time()]))
    print(*np.min(costs[1:], axis=0))


def work_yardstick() -> None:
    """Print the yardstick."""
    print(yardstick())


def work_bag(folder: str, scratch: str) -> None:
    """Write the bag of the TX-40 and print its path."""
    from datasets import tx40

    print(tx40(Path(folder), Path(scratch)))


def work_identify(bag: str, model: str) -> None:
    """Identify the TX-40 from its bag, without writing anything; prints what it took in parts."""
    from dataclasses import replace

    from robotid_ros.core.pipeline.identification import identify
    from robotid_ros.files.identification_input import open_input, split

    imported = time.process_time()
    session = open_input([bag], str(ROOT / 'config/tx40.yaml'))
    fitted, other = split(session.recording)
    read = time.process_time()
    settings = replace(session.configuration.identification, model=model)
    found = identify(fitted, session.robot, settings, other)
    done = time.process_time()
    parts = f'imports {imported:.2f}, reading {read - imported:.2f}, identify {done - read:.2f} s'
    print(f'{done - read:.3f} {parts}; rank {found.base.rank}', end='')
    print(f', residual {100 * found.estimate.total_residual:.2f} %')


def work_hour(bag: str, minutes: str) -> None:
    """Identify the arm with seven joints from the first minutes of its bag."""
    from robotid_ros.core.identification_settings import IdentificationSettings
    from robotid_ros.core.model import build_robot, RobotSettings
    from robotid_ros.core.pipeline.identification import identify
    from robotid_ros.files.bags import open_recording

    robot = build_robot(arm(), RobotSettings())
    pieces = itertools.islice(open_recording(bag, robot.joints, max_samples=0), int(minutes))
    report(identify(pieces, robot, IdentificationSettings()))


def work_day(hours: str) -> None:
    """Identify the arm with seven joints from a recording that is made meanwhile."""
    from robotid_ros.core.identification_settings import IdentificationSettings
    from robotid_ros.core.model import build_robot, RobotSettings
    from robotid_ros.core.pipeline.identification import identify
    from robotid_ros.core.signals.recording import Recording

    robot = build_robot(arm(), RobotSettings())
    rng, shown, taken = np.random.default_rng(0), period(robot), 0.0
    sigmas = np.array([2e-5, 0.0, 0.02])[:, None] * np.ones(JOINTS)
    sigmas[2] *= shown[2].std(axis=0)

    def pieces() -> Iterator[Recording]:
        nonlocal taken
        length = 3 * len(shown[0])
        for number in range(round(60.0 * float(hours))):
            began = time.process_time()
            q, effort = (
                np.tile(shown[k], (3, 1)) + sigmas[k] * rng.normal(size=(length, JOINTS))
                for k in (0, 2)
            )
            clock = (number * length + np.arange(length)) / RATE
            taken += time.process_time() - began
            yield Recording(robot.joints, clock, q, effort, source='a day')

    found = identify(pieces(), robot, IdentificationSettings())
    print(f'{taken:.1f} s of it to make the recording, ', end='')
    report(found)


def report(found) -> None:
    """Print how many rows were used, and how far from the truth the estimate is."""
    truth = found.base.of(friction(found.robot))
    error = np.abs(found.estimate.value - truth) / found.estimate.sigma
    print(f'{found.estimate.rows.sum()} rows, largest error {error.max():.1f} σ')


def arm() -> str:
    """Describe an arm with seven joints, turning about z and y in turn."""
    text = '<robot name="arm7"><link name="link_0"/>'
    for k in range(JOINTS):
        mass, axis = 4.0 - 0.4 * k, '0 0 1' if k % 2 == 0 else '0 1 0'
        text += (
            f'<link name="link_{k + 1}"><inertial><origin xyz="0.02 0.03 0.1"/>'
            f'<mass value="{mass}"/><inertia ixx="{0.02 * mass}" iyy="{0.02 * mass}" '
            f'izz="{0.01 * mass}" ixy="0.001" ixz="0.0005" iyz="-0.0008"/></inertial></link>'
            f'<joint name="joint_{k + 1}" type="revolute"><parent link="link_{k}"/>'
            f'<child link="link_{k + 1}"/><origin xyz="0 0 0.2"/><axis xyz="{axis}"/>'
            '<limit lower="-2.8" upper="2.8" velocity="3" effort="200"/></joint>'
        )
    return text + '</robot>'


def friction(robot) -> np.ndarray:
    """Return the true standard parameters: those of the description, and friction."""
    chi = robot.prior.copy()
    for symbol, value in (('Ia', 0.3), ('Fv', 2.0), ('Fc', 1.5), ('off', 0.2)):
        for joint in range(1, robot.n + 1):
            chi[robot.column(f'{symbol}{joint}')] = value / joint
    return chi


def period(robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one period of motion and torque, (K, n) each: position, velocity, effort."""
    from robotid_ros.core.model import inverse_dynamics

    rng = np.random.default_rng(3)
    w = 2.0 * np.pi / PERIOD * np.arange(1, 11)
    a, b = rng.normal(size=(2, len(w), JOINTS)) * 0.25
    phase = np.outer(np.arange(round(PERIOD * RATE)) / RATE, w)
    s, c = np.sin(phase), np.cos(phase)
    q, dq, ddq = s @ a + c @ b, c * w @ a - s * w @ b, -(s * w**2) @ a - c * w**2 @ b
    return q, dq, inverse_dynamics(robot, friction(robot), q, dq, ddq)


def payloads(minutes: int) -> Iterator[tuple[int, bytes]]:
    """Serialize joint states with fresh noise, period by period."""
    from messages import header, JOINT_STATE, store

    from robotid_ros.core.model import build_robot, RobotSettings

    robot = build_robot(arm(), RobotSettings())
    clean, rng = period(robot), np.random.default_rng(0)
    zeros = np.zeros(JOINTS)
    message = store().types[JOINT_STATE](header(EPOCH), list(robot.joints), zeros, zeros, zeros)
    template = np.frombuffer(bytes(store().serialize_cdr(message, JOINT_STATE)), np.uint8)
    length = len(clean[0])
    sigmas = np.array([0.0, 0.0, 0.02])[:, None] * clean[2].std(axis=0)
    sigmas[:2] = [[2e-5], [1e-3]]
    # Lengths of 4 bytes and padding to 8 stand before each of the three arrays at the end.
    width = 8 * JOINTS
    ends = len(template) - np.array([2 * (width + 8), width + 8, 0])
    for number in range(round(minutes * 60.0 / PERIOD)):
        rows = np.tile(template, (length, 1))
        for end, values, sigma in zip(ends, clean, sigmas, strict=True):
            noisy = values + sigma * rng.normal(size=values.shape)
            rows[:, end - width : end] = np.ascontiguousarray(noisy).view(np.uint8)
        stamps = EPOCH + 10**9 // RATE * (number * length + np.arange(length))
        clock = np.column_stack([stamps // 10**9, stamps % 10**9]).astype('<u4')
        rows[:, 4:12] = np.ascontiguousarray(clock).view(np.uint8)
        yield from zip(stamps.tolist(), map(bytes, rows), strict=True)


def long_bag(folder: Path, minutes: int) -> Path:
    """Write the long recording."""
    from messages import JOINT_STATE

    from robotid_ros.files.bags import BagWriter

    with BagWriter(folder, 'hour') as bag:
        bag.add_topic('/joint_states', JOINT_STATE)
        for stamp, data in payloads(minutes):
            bag.write('/joint_states', data, stamp)
    return bag.path


def row(
    name: str, label: str, seconds: float, unit: float, megabytes: float, note: str
) -> list[str]:
    """Print one measurement beside its bounds and the peers; return what falls short."""
    most, ratio = BOUNDS[name], seconds / unit
    print(f'{label:34s} {ratio:7.2f} yardsticks (at most {most[0]:g}), {seconds:.3f} s  ', end='')
    print(f'{megabytes:5.0f} MB (at most {most[1]:g})  {note}')
    print(f'{"":34s} {PEERS[name]}')
    return [
        f'{label}: {value:.3g} {of} exceeds {bound:g}'
        for value, bound, of in ((ratio, most[0], 'yardsticks'), (megabytes, most[1], 'MB'))
        if not value <= bound
    ]


def measured_yardstick() -> float:
    """Return the yardstick as measured in a process of its own: this one stays light."""
    return float(measure([Path(__file__), '--work', 'yardstick']).output)


def regressor_row() -> list[str]:
    """Measure the observation matrix, beside a bare loop over Pinocchio."""
    cost = measure([Path(__file__), '--work', 'regressor'])
    seconds, unit = map(float, cost.output.split())
    note = f'a bare loop here {unit:.3f} s'
    label = f'observation matrix, {SAMPLES} × UR10'
    return row('regressor', label, seconds, unit, cost.megabytes, note)


def inspect_row(bag: Path, unit: float) -> list[str]:
    """Measure `robotid inspect`, which is mostly imports."""
    costs = [measure(['-m', 'robotid_ros.cli', 'inspect', bag]) for _ in range(REPEATS)]
    least = min(costs, key=lambda cost: cost.seconds)
    return row('inspect', 'TX-40, robotid inspect', least.seconds, unit, least.megabytes, '')


def tx40_row(bag: Path, unit: float) -> list[str]:
    """
    Measure the identification of the TX-40, without files.

    The peer chooses nothing; what the mixed model costs is a row of its own.
    """
    short, seconds = [], []
    for model in ('plain', 'mixed'):
        command = [Path(__file__), '--work', 'identify', bag, model]
        costs = [measure(command) for _ in range(REPEATS)]
        best = min(costs, key=lambda cost: cost.seconds)
        seconds.append(min(float(cost.output.split()[0]) for cost in costs))
        if model == 'plain':
            note = best.output.split(maxsplit=1)[1].strip()
            note += f'; NumPy, SciPy, Pinocchio alone {imports():.2f} s'
            label = 'TX-40, whole process'
            short += row('tx40', label, best.seconds, unit, best.megabytes, note)
    share = seconds[1] / seconds[0]
    print(f'{"":34s} the mixed model: identify × {share:.2f} (at most {CHOICE:g})')
    short += [f'TX-40: the mixed model × {share:.2f}'] if share > CHOICE else []
    return short


def files_row(name: str, bag: Path, scratch: Path, unit: float) -> list[str]:
    """Measure `robotid identify` of a log, with all files and the report."""
    verb = ['-m', 'robotid_ros.cli', 'identify', bag, '-c', ROOT / f'config/{name}.yaml']
    whole = [measure([*verb, '-o', scratch / f'{name}_{k}']) for k in range(REPEATS)]
    least = min(whole, key=lambda cost: cost.seconds)
    label = f'{name}, files and report'
    return row(f'{name}_files', label, least.seconds, unit, least.megabytes, '')


def hour_rows(scratch: Path, minutes: list[int], unit: float) -> list[str]:
    """Measure how time and memory grow with the length of a recording."""
    bag, short = long_bag(scratch, max(minutes)), []
    for length in sorted(minutes):
        cost = measure([Path(__file__), '--work', 'hour', bag, str(length)])
        label, note = f'{length} min, 1 kHz, {JOINTS} joints, reading', cost.output.strip()
        note += f', {cost.wall:.1f} s wall'
        short += row('hour', label, cost.seconds, unit, cost.megabytes, note)
    urdf = scratch / 'arm7.urdf'
    urdf.write_text(arm())
    cost = measure(['-m', 'robotid_ros.cli', 'identify', bag, '--urdf', urdf])
    label, note = f'{max(minutes)} min, robotid identify', f'files, report, {cost.wall:.1f} s wall'
    return short + row('hour', label, cost.seconds, unit, cost.megabytes, note)


def day_row(hours: float, unit: float) -> list[str]:
    """Measure a recording that would not fit on a disk."""
    cost = measure([Path(__file__), '--work', 'day', str(hours)])
    label, note = f'{hours:g} h, 1 kHz, {JOINTS} joints', cost.output.strip()
    note += f', {cost.wall:.1f} s wall'
    return row('day', label, cost.seconds, unit, cost.megabytes, note)


def main() -> int:
    """Measure, compare with the bounds."""
    parser = command_line(__doc__, datasets=True)
    parser.add_argument('--scratch', type=Path, help='where recordings are made')
    parser.add_argument('--minutes', type=int, nargs='*', default=[1, 5, 20, 60])
    parser.add_argument('--hours', type=float, default=0.0, help='of a recording made meanwhile')
    parser.add_argument('--work', nargs='+', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        name, *rest = arguments.work
        globals()[f'work_{name}'](*rest)
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        short, unit = regressor_row(), measured_yardstick()
        # In a process of its own: the largest size of a child counts that of this one.
        made = measure([Path(__file__), '--work', 'bag', arguments.folder, folder])
        bag = Path(made.output.strip())
        short += inspect_row(bag, unit)
        short += tx40_row(bag, unit)
        short += files_row('tx40', bag, Path(folder), unit)
        ur10 = Path(arguments.folder) / 'ur10/ur10_exciting_trajectory.db3'
        short += files_row('ur10', ur10, Path(folder), unit)
        if arguments.minutes:
            short += hour_rows(Path(folder), arguments.minutes, measured_yardstick())
        if arguments.hours:
            short += day_row(arguments.hours, measured_yardstick())
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
