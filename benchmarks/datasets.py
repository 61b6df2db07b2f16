"""
Identify real robots from their published logs and compare with the figures known for them.

    python benchmarks/datasets.py [FOLDER] [--output DIR] [--convert-only] [--check]

FOLDER holds `emps/*.npz`, `tx40/traj1.npz` and `ur10/*.db3`; its README names their origin. Logs
in npz become rosbag2 bags first, as the recorder would have written them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
import sys
import tempfile

from common import command_line, configured, verdict
from messages import CONTROLLER_STATE, controller_state, JOINT_STATE, joint_state, STATUS, status
import numpy as np

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot
from robotid_ros.core.pipeline.identification import Identification, identify
from robotid_ros.exceptions import FileError, RobotIdError
from robotid_ros.files.bags import BagWriter, dump_session, open_recording, RecordedSession
from robotid_ros.files.bags.session import SESSION_TOPIC, STATE_TOPIC
from robotid_ros.files.configuration import read_urdf

EPOCH = 1_700_000_000_000_000_000
# Time between two logs that become one bag [s].
PAUSE = 2.0


@dataclass(frozen=True)
class Case:
    """
    One robot: where its bag comes from, and what is expected of it.

    Attributes
    ----------
    name : of the robot and its configuration
    bag : function of the data's folder and the output's, returns the bag
    split : start, middle and end [s]: identify up to the middle, validate after it
    bounds : largest relative residual of both parts, as configured [%]
    default : the same of what was not identified on, friction and filters left open [%]
    known : parameter, published value, largest relative deviation

    """

    name: str
    bag: Callable[[Path, Path], Path]
    split: tuple[float, float, float]
    bounds: tuple[float, float]
    default: float
    known: tuple[tuple[str, float, float], ...] = ()


def emps(folder: Path, output: Path) -> Path:
    """
    Write EMPS's two logs as one session: the second, with pulses, validates.

    The effort is the force g_τ·vir. The pulses enter the control law as a voltage, so that `vir`
    holds them already: they are no force beside it.
    """
    logs = [np.load(_existing(folder / 'emps' / f'{n}.npz')) for n in ('ident', 'valid_pulses')]
    gain, kp, kv = (float(logs[0][name].squeeze()) for name in ('gtau', 'kp', 'kv'))
    controller = {
        'name': 'cascade_controller',
        'type': 'cascade',
        'rate': 1000.0,
        'joints': ['joint_1'],
        'command_interfaces': ['effort'],
        # In force, not in volts: 10 V is where the drive saturates.
        'gains': {'joint_1': {'kp': kp, 'kv': kv * gain, 'differences': 1.0, 'limit': 10 * gain}},
    }
    time = logs[0]['t']
    shift = time[-1] + PAUSE
    columns = {name: np.concatenate([log[name] for log in logs]) for name in ('q', 'tau', 'q_ref')}
    velocity = np.concatenate([np.gradient(log['q_ref'], 1e-3, axis=0) for log in logs])
    times = np.concatenate([time, logs[1]['t'] + shift])
    with BagWriter(output, 'emps') as bag:
        _session(bag, controller, {'exciting': 0.0, 'validating': shift, 'done': times[-1] + 1})
        _states(bag, ('joint_1',), times, columns['q'], columns['tau'])
        topic = f'/{controller["name"]}/controller_state'
        bag.add_topic(topic, CONTROLLER_STATE)
        acceleration = np.zeros(1)
        rows = zip(times, columns['q_ref'], velocity, columns['tau'], strict=True)
        for second, q, dq, tau in rows:
            stamp = _stamp(second)
            data = controller_state(stamp, ['joint_1'], q, dq, acceleration, tau)
            bag.write(topic, data, stamp)
    return bag.path


def tx40(folder: Path, output: Path) -> Path:
    """Write the TX-40's log: the first half of the motion identifies, the second validates."""
    log = np.load(_existing(folder / 'tx40' / 'traj1.npz'))
    joints = tuple(f'joint_{j}' for j in range(1, 7))
    with BagWriter(output, 'tx40') as bag:
        _session(bag, {}, {'exciting': 0.0, 'validating': 3.65, 'done': 7.3})
        _states(bag, joints, log['t'], log['q'], log['tau'])
    return bag.path


def ur10(folder: Path, output: Path) -> Path:
    """Return the UR10's bag as it is: SQLite without metadata.yaml."""
    return _existing(folder / 'ur10' / 'ur10_exciting_trajectory.db3')


CASES = (
    Case(
        'emps',
        emps,
        (0.0, 24.84 + PAUSE / 2, 60.0),
        (4.0, 5.9),
        2.8,
        (('M1', 95.1089, 0.005), ('Fv1', 203.5034, 0.01), ('Fc1', 20.3935, 0.01)),
    ),
    Case('tx40', tx40, (0.0, 3.65, 7.3), (5.9, 8.8), 6.5),
    Case('ur10', ur10, (0.0, 13.75, 60.0), (5.8, 7.0), 5.5),
)


def run(case: Case, bag: Path) -> tuple[Identification, list[str]]:
    """Identify one robot; return the result and what falls short."""
    configuration, robot = configured(case.name)
    recording = open_recording(bag, robot.joints)
    start, middle, end = case.split
    result = identify(
        recording.between(start, middle),
        robot,
        configuration.identification,
        recording.between(middle, end),
    )
    residuals = [
        100.0 * part.total_residual() for part in (result.fitted, result.validation) if part
    ]
    print(f'{case.name:6s}', end='')
    for name, value, bound in zip(('fitted', 'validation'), residuals, case.bounds, strict=True):
        print(f'  {name} {value:5.2f} % (bound {bound:.1f})', end='')
    print(f'  base parameters {len(result.base.names)}')
    short = [
        f'{case.name}: residual {value:.2f} % exceeds {bound} %'
        for value, bound in zip(residuals, case.bounds, strict=True)
        if not value <= bound
    ]
    return result, short + list(deviations(case, parameters(result)))


def run_default(case: Case, bag: Path) -> list[str]:
    """Identify one robot with friction, filters, rows and estimator open; return what is short."""
    configuration, _ = configured(case.name)
    robot = build_robot(read_urdf(configuration) or '', replace(configuration.robot, friction={}))
    recording = open_recording(bag, robot.joints)
    start, middle, end = case.split
    other = recording.between(middle, end)
    found = identify(recording.between(start, middle), robot, IdentificationSettings(), other)
    assert found.validation is not None and found.mixed is not None
    parts = found.fitted, found.validation
    fitted, value = (100.0 * part.total_residual() for part in parts)
    print(f'        by default: fitted {fitted:5.2f} %', end='')
    print(f'  validation {value:5.2f} % (bound {case.default})', end='')
    print(f'  {found.mixed.describe()}')
    text = f'{case.name}: by default {value:.2f} % exceeds {case.default} %'
    return [] if value <= case.default else [text]


def parameters(result: Identification) -> Mapping[str, float]:
    """Return the estimated base parameters by name."""
    return dict(zip(result.base.names, result.estimate.value, strict=True))


def deviations(case: Case, values: Mapping[str, float]) -> Iterator[str]:
    """Print the parameters that are known and yield those that deviate too far."""
    for name, known, bound in case.known:
        deviation = values[name] / known - 1.0
        print(f'        {name:4s} {values[name]:10.4f}  published {known:10.4f}', end='')
        print(f'  {100 * deviation:+.2f} % (bound {100 * bound:.1f})')
        if not abs(deviation) <= bound:
            yield f'{case.name}: {name} is {100 * deviation:+.2f} % off, bound {100 * bound} %'


def _session(
    bag: BagWriter, controller: Mapping[str, object], phases: Mapping[str, float]
) -> None:
    bag.write_text(SESSION_TOPIC, dump_session(RecordedSession(controller=controller)), EPOCH)
    bag.add_topic(STATE_TOPIC, STATUS, latched=True)
    for name, second in phases.items():
        stamp = _stamp(second)
        values = {'state': name, 'stamp': f'{stamp // 10**9}.{stamp % 10**9:09d}'}
        bag.write(STATE_TOPIC, status('excitation', values), stamp)


def _states(
    bag: BagWriter, joints: tuple[str, ...], time: np.ndarray, q: np.ndarray, tau: np.ndarray
) -> None:
    bag.add_topic('/joint_states', JOINT_STATE)
    for second, position, effort in zip(time, q, tau, strict=True):
        stamp = _stamp(second)
        bag.write('/joint_states', joint_state(stamp, joints, position, effort), stamp)


def _stamp(second: float) -> int:
    return EPOCH + round(float(second) * 1e9)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileError(f"'{path}' is missing: give the folder of the data sets as argument")
    return path


def main() -> int:
    """Convert, identify, compare."""
    parser = command_line(__doc__, datasets=True)
    parser.add_argument('--output', type=Path, help='keep the bags in this folder')
    parser.add_argument('--convert-only', action='store_true', help='write the bags, no more')
    arguments = parser.parse_args()
    short: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        output = arguments.output or Path(folder)
        try:
            for case in CASES:
                bag = case.bag(arguments.folder, output)
                print(f'{case.name}: {bag}')
                if not arguments.convert_only:
                    short += run(case, bag)[1] + run_default(case, bag)
        except RobotIdError as error:
            print(f'datasets: {error}', file=sys.stderr)
            return 1
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
