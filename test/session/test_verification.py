"""What was identified, on the robot: tracking, gains and rest; and whatever ends that."""

from collections.abc import Iterator
import dataclasses
from pathlib import Path
import shutil
import signal

import pytest
from rcl_interfaces.srv import GetParameters

from robotid_ros.core.excitation.design import design
from robotid_ros.core.model import build_robot
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.results import read_results, REPORT
from robotid_ros.files.trajectory_file import write_design
from robotid_ros.files.verification import GAINS, GAINS_BEFORE
from robotid_ros.nodes.common.messages import values_of

from .conftest import Session, SOFT

pytestmark = [pytest.mark.ros, pytest.mark.slow]

JOINTS = ('joint_1', 'joint_2')
TOPIC = 'excitation/verification'
FAST = {'simulation.real_time_factor': 2.0, 'simulation.update_rate': 250.0}


@pytest.fixture(scope='module')
def trajectory(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Design a short motion to verify on: it is run up to six times."""
    configuration = load(config)
    settings = configuration.excitation
    validation = dataclasses.replace(settings.validation, period=2.5)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    plan = design(robot, dataclasses.replace(settings, validation=validation))
    return write_design(tmp_path_factory.mktemp('trajectory') / 'trajectory.yaml', plan)


@pytest.fixture
def session_with_pages(config: Path, tmp_path: Path) -> Iterator[Session]:
    """Start processes that write the report again."""
    with Session(config, tmp_path, pages=True) as session:
        yield session


@pytest.fixture
def folder(identified: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(identified, tmp_path / 'identified'))


def start(session: Session, trajectory: Path, folder: Path, **settings: object) -> None:
    """Start the robot, at twice real time, and who moves it."""
    session.start(
        *('simulated_robot', 'excitation'),
        simulated_robot={**FAST, **SOFT},
        excitation={
            'excitation.trajectory': str(trajectory),
            'excitation.verification.results': str(folder),
            'excitation.verification.postures': 2,
            **settings,
        },
    )
    session.robot.wait()
    session.ready('excitation')


def verify(session: Session, service: str) -> str:
    """Verify; return what came of it."""
    found = session.client.history[TOPIC]
    before = len(found)
    session.client.call_trigger(f'excitation/{service}')
    session.client.wait_for(
        lambda: (
            session.client.state('excitation') == 'failed'
            or (len(found) > before and session.client.state('excitation') == 'done')
        ),
        what=f'{service} ends',
    )
    return session.until('excitation', 'done')


def gains(session: Session) -> list[float]:
    """Return p and d of the controller."""
    names = [f'gains.{joint}.{name}' for joint in JOINTS for name in 'pd']
    answer = session.client.call(
        GetParameters, '/arm_controller/get_parameters', GetParameters.Request(names=names)
    )
    return [value.double_value for value in answer.values]


def test_the_robot_itself_says_what_was_identified(
    session: Session, trajectory: Path, folder: Path
):
    client = session.client
    session.start('recorder', recorder={'recorder.folder': str(session.folder / 'recordings')})
    # Half the gains: worse, which a simulation knows, and not kept.
    start(
        *(session, trajectory, folder),
        **{
            'excitation.require_recorder': True,
            'identification.controller_gains.bandwidth': 0.1,
            'identification.controller_gains.although_not_better': True,
        },
    )
    session.ready('recorder')
    assert 'times smaller' in verify(session, 'verify')
    found = read_results(folder).verification
    assert found is not None
    assert [row.joint for row in found.tracking] == list(JOINTS)
    # Left are noise of the positions and, at the start, what stiction held the joints away.
    assert min(row.ratio for row in found.tracking) > 10.0
    assert max(row.relative for row in found.efforts) < 0.05
    statuses = {status.name: values_of(status) for status in client.latest[TOPIC].status}
    assert float(statuses['tracking joint_2']['ratio']) == found.tracking[1].ratio
    # It was recorded, and nobody is told to identify from it.
    client.wait_for(lambda: client.state('recorder') == 'closed', what='the bag is closed')
    assert 'recorder/bag' not in client.latest

    old = gains(session)
    said = verify(session, 'verify_gains')
    assert 'not better: the old ones are set again' in said and 'as good as can be had' in said
    assert gains(session) == old
    found = read_results(folder).verification
    assert found.gains.new['joint_1']['p'] == old[0] / 2.0
    assert min(row.rms_after / row.rms_before for row in found.gains.tracking) > 1.5
    assert (folder / GAINS_BEFORE).exists() and not (folder / GAINS).exists()
    assert len(found.tracking) == 2


def test_the_robot_itself_says_what_it_carries_at_rest(
    session_with_pages: Session, trajectory: Path, folder: Path
):
    start(session_with_pages, trajectory, folder)
    assert 'in 2 postures' in verify(session_with_pages, 'verify_static')
    assert 'On the robot' in (folder / REPORT).read_text()
    for row, coulomb in zip(read_results(folder).verification.static, (0.78, 0.145), strict=True):
        # Two vertical axes: no gravity, and no more stiction than Coulomb friction.
        assert row.gravity_error < 0.05 * coulomb
        # A joint at rest may carry less than what it slid against, never more.
        assert 0.85 * coulomb < row.stiction < 1.02 * coulomb
        assert row.predicted_stiction == pytest.approx(coulomb, rel=0.05)


def test_gains_on_trial_do_not_outlive_what_tried_them(
    session: Session, trajectory: Path, folder: Path
):
    client = session.client
    # Twice the gains: better, were they not stopped.
    bandwidth = {'identification.controller_gains.bandwidth': 1000.0}
    start(session, trajectory, folder, **bandwidth)
    old = gains(session)

    def on_trial() -> None:
        client.call_trigger('excitation/verify_gains')
        client.wait_for(
            lambda: 'running the motion with the proposed' in client.message('excitation'),
            what='the proposed gains are tried',
        )
        session.robot.wait_moving()
        for present, before in zip(gains(session)[::2], old[::2], strict=True):
            assert 1.2 * before < present <= 2.0 * before * (1.0 + 1e-9)

    on_trial()
    assert any('present gains again' in x.message for x in client.history['excitation/state'])
    client.call_trigger('excitation/stop')
    message = session.until('excitation', 'failed')
    assert message == 'stopped by request; the old gains are set again'
    assert gains(session) == old
    on_trial()
    stamp = session.robot.now
    session.process('excitation').send_signal(signal.SIGKILL)
    client.wait_for(lambda: gains(session) == old, what='the guardian sets the old gains')
    assert session.robot.rest_after(stamp) < 2.0
    assert not (folder / GAINS).exists()


def test_a_controller_without_efforts_is_verified_by_prediction(
    session: Session, trajectory: Path, folder: Path
):
    robot = {'simulation.command_interface': 'position', **FAST}
    session.start('simulated_robot', simulated_robot=robot)
    session.start(
        'excitation',
        excitation={
            'excitation.trajectory': str(trajectory),
            'excitation.verification.results': str(folder),
        },
    )
    session.robot.wait()
    session.ready('excitation')
    assert 'commands position and takes no efforts' in verify(session, 'verify')
    found = read_results(folder).verification
    assert found is not None
    assert found.tracking == ()
    assert max(row.relative for row in found.efforts) < 0.05
    assert 'takes no efforts' in found.reason
