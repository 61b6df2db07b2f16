"""What tests of whole sessions share: a robot, a short design, a session of processes."""

from collections.abc import Callable, Iterator
import contextlib
from pathlib import Path

from live_session import Nodes, Session
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from waiting import PATIENCE, wait_until
import yaml

from robotid_ros.core.excitation.design import Design, design
from robotid_ros.core.model import build_robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.results import Entry, Residual, Results, write_results
from robotid_ros.files.trajectory_file import write_design
from robotid_ros.plant.physics import Physics

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'
# A robot in simulated time, which leaves a busy machine twice the time to react.
SLOW = {'simulation.real_time_factor': 0.5}
# Gains whose loops have the margins at 125 Hz that those of the configuration have at 250 Hz.
SOFT = {
    f'simulation.gains.{joint}.{name}': value
    for joint, gains in (('joint_1', {'p': 850.0, 'd': 112.5}), ('joint_2', {'p': 55.0, 'd': 3.7}))
    for name, value in gains.items()
}
# Periods of an excitation that must not end before something else ends it.
LONG = 15
# What an identification leaves, and where else it may be wrong [share].
ERROR = 0.005


def read_when(path: Path, condition: Callable[[Recording], bool], what: str) -> Recording:
    """Read a bag, which may still be written, as soon as what it holds is enough."""
    seen: list[str] = []

    def enough() -> Recording | None:
        with contextlib.suppress(RecordingError):
            recording = open_recording(path)
            seen.append(f'{path} holds {recording.duration:.2f} s, {recording.notes}')
            return recording if condition(recording) else None
        return None

    found = wait_until(
        enough, what, lambda: seen[-1] if seen else f'{path} holds nothing', period=0.1
    )
    assert found is not None
    return found


def set_gain(session: Session, name: str, value: float) -> None:
    number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    request = SetParametersAtomically.Request(parameters=[Parameter(name=name, value=number)])
    service = '/arm_controller/set_parameters_atomically'
    answer = session.client.call(SetParametersAtomically, service, request)
    assert answer.result.successful, answer.result.reason


@pytest.fixture(scope='session')
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Take the SCARA, with updates at 125 Hz to spare the processor, and a short excitation."""
    values = yaml.safe_load(CONFIG.read_text())
    groups = values['/**']['ros__parameters']
    # No limit of time ends the search: it must find the same motion on every machine.
    groups['excitation'].update(
        period=4.0, periods=2, order=3, starts=1, settle=0.2, timeout=PATIENCE, approach_speed=0.5
    )
    # Sessions last as long as planned, whoever follows them.
    groups['excitation']['until'] = {'prediction': 0.0}
    # A busy machine may hold up the simulated robot for longer than a real one is silent.
    groups['excitation']['stale_after'] = 2.0
    # Each test has a folder for its recordings. The quickest model is the simulated robot's.
    groups.setdefault('identification', {}).update(
        folders=[str(tmp_path_factory.getbasetemp())], method='wls'
    )
    # Away from the start of the excitation: who listens late still hears of the approach.
    groups['simulation'].update(update_rate=125.0, state_rate=125.0, initial_positions=[0.2, -0.2])
    path = tmp_path_factory.mktemp('config') / 'scara.yaml'
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope='session')
def designed(config: Path) -> Design:
    """Design for it, once."""
    configuration = load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    return design(robot, configuration.excitation)


@pytest.fixture(scope='session')
def trajectory(designed: Design, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_design(tmp_path_factory.mktemp('trajectory') / 'trajectory.yaml', designed)


@pytest.fixture
def session(config: Path, tmp_path: Path) -> Iterator[Session]:
    with Session(config, tmp_path) as session:
        yield session


@pytest.fixture(scope='module')
def nodes(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Keep up what a module's sessions share: each starts what it lacks."""
    nodes = Nodes(config, tmp_path_factory.mktemp('nodes'))
    try:
        yield nodes
    finally:
        codes = nodes.close()
    assert codes.get('simulated_robot', 0) == 0


@pytest.fixture
def joined(nodes: Nodes, config: Path, tmp_path: Path) -> Iterator[Session]:
    """Take part in the nodes of a module, with a client and a folder of its own."""
    with Session(config, tmp_path, nodes=nodes) as session:
        yield session


@pytest.fixture(scope='session')
def identified(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_identified(config, tmp_path_factory.mktemp('identified'))


def write_identified(
    config: Path, folder: Path, relative: float = 0.01, standard_error: float = 0.0
) -> Path:
    """Write results as an identification of a robot would, nearly true ones."""
    configuration = load(config)
    urdf = read_urdf(configuration) or ''
    robot = build_robot(urdf, configuration.robot)
    physics = Physics(urdf, configuration.simulation, robot.joints)
    truth = {joint.name: dict(joint.values) for joint in physics.true_parameters()}
    chi = np.array([truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters])
    base, rng = base_parameters(robot), np.random.default_rng(0)
    values = base.of(chi) * (1.0 + ERROR * rng.uniform(-1, 1, len(base.names)))
    chi *= 1.0 + standard_error * rng.uniform(-1, 1, robot.p)
    entries = tuple(
        Entry(
            *(name, float(value), abs(float(value)) * ERROR, 100 * ERROR),
            column=robot.parameters[column].name,
        )
        for name, value, column in zip(base.names, values, base.columns, strict=True)
    )
    standard = tuple(
        Entry(p.name, float(value), 0.0, 0.0)
        for p, value in zip(robot.parameters, chi, strict=True)
    )
    rows = tuple(Residual(joint, relative, 0.1, 10.0) for joint in robot.joints)
    results = Results(
        *(configuration.robot.name, 'wls', '2025-01-31T12:00:00+00:00', robot.joints),
        *(entries, standard, rows, rows),
    )
    write_results(results, folder)
    return folder
