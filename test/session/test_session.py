"""A whole session by hand: four processes, driven by services and topics only."""

from collections.abc import Iterator
from pathlib import Path
import re
import signal
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from robotid_ros.core.model import build_robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.results import read_results
from robotid_ros.files.verification import (
    GainTrial,
    TrackingRow,
    VERIFICATION,
    Verification,
    write_verification,
)
from robotid_ros.nodes.common.batched_subscription import BatchedSubscription
from robotid_ros.nodes.common.messages import to_nanoseconds, values_of
from robotid_ros.nodes.demo.demo import true_standard_parameters

from .conftest import Session, SOFT

pytestmark = pytest.mark.ros

JOINTS = ('joint_1', 'joint_2')
NODES = ('simulated_robot', 'excitation', 'recorder', 'identification')
DOCS = Path(__file__).resolve().parents[2] / 'docs'
PAGES = DOCS / 'interface.md', DOCS / 'guide' / 'monitoring.md'
# What every node of ROS has.
OF_ROS = re.compile(
    r'parameter|type_description|get_loggers|logger_levels|transition_event|_action/'
)


@pytest.fixture(scope='module')
def finished(
    config: Path, trajectory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """Run a session to its end; the nodes stay up."""
    with Session(config, tmp_path_factory.mktemp('session'), pages=True) as session:
        client = session.client
        session.measured = BatchedSubscription(
            client.node,
            JointState,
            'identification/validation/measured',
            depth=5000,
            latched=True,
        )
        session.predicted = BatchedSubscription(
            client.node,
            JointState,
            'identification/validation/predicted',
            depth=5000,
            latched=True,
        )
        session.start(
            *NODES,
            simulated_robot=SOFT,
            excitation={'excitation.trajectory': str(trajectory)},
            recorder={'recorder.folder': str(session.folder)},
            # The last test waits so long for a controller that is gone.
            identification={'identification.method': 'both', 'excitation.timeout': 15.0},
        )
        session.robot.wait()
        session.ready('excitation', 'recorder', 'identification')
        client.call_trigger('excitation/start')
        session.until('excitation', 'done')
        session.until('identification', 'done')
        yield session
        codes = session.close()
        assert set(codes.values()) == {0}


def test_states_follow_each_other(finished: Session):
    assert finished.client.state('identification') == 'done'
    states = finished.client.states('excitation')
    assert [s for s in states if s not in ('designing', 'idle')] == [
        *('approaching', 'exciting', 'approaching', 'validating', 'approaching', 'done')
    ]
    assert finished.client.states('recorder') == ['idle', 'recording', 'closed']


def test_phases_in_the_bag_are_exact(finished: Session):
    recording = open_recording(finished.client.latest['recorder/bag'].data)
    for name in ('exciting', 'validating'):
        part = recording.phase(name).reference
        (phase,) = (p for p in recording.phases if p.name == name)
        planned = recording.trajectories[name].sample(part.time - phase.start)
        # Quintic segments between points of 50 Hz follow the trajectory this closely.
        assert np.abs(part.q - planned.q).max() < 1e-6
        assert np.abs(part.dq - planned.dq).max() < 1e-4
    (exciting,) = (p for p in recording.phases if p.name == 'exciting')
    periods = (exciting.stop - exciting.start) / recording.trajectories['exciting'].period
    assert periods == pytest.approx(2.0, abs=1e-6)
    assert finished.client.value('recorder', '/joint_states') == str(len(recording.time))


def test_true_parameters_are_found(finished: Session, config: Path):
    configuration = load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    truth = true_standard_parameters(
        robot, finished.client.latest['simulated_robot/true_parameters']
    )
    base = base_parameters(robot)
    expected = dict(zip(base.names, base.of(truth), strict=True))
    found = {}
    for status in finished.client.latest['identification/parameters'].status:
        for name, text in values_of(status).items():
            if not name.startswith(('standard.', 'didim.')):
                value, sigma, percent, unit, _ = text.split('; ')
                found[name] = (float(value), float(sigma))
                assert float(percent) == pytest.approx(100 * float(sigma) / abs(float(value)))
                assert unit
    assert set(found) == set(expected)
    inside = [abs(v - expected[n]) <= 3 * s for n, (v, s) in found.items()]
    assert np.mean(inside) >= 0.75
    # Inertia and friction to a few per cent, whatever σ says.
    for name in ('ZZ1R', 'ZZ2', 'MX2', 'Fc1', 'Fc2'):
        assert found[name][0] == pytest.approx(expected[name], rel=0.05)


def test_didim_stands_beside_wls(finished: Session, config: Path):
    configuration = load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    truth = true_standard_parameters(
        robot, finished.client.latest['simulated_robot/true_parameters']
    )
    base = base_parameters(robot)
    results = read_results(Path(finished.client.value('identification', 'folder')))
    other = results.compared
    assert (results.method, other.method) == ('wls', 'didim')
    for entry, true in zip(other.base, base.of(truth), strict=True):
        if entry.percent < 10.0:
            assert abs(entry.value - true) <= max(3.0 * entry.sigma, 0.02 * abs(true)), entry
    # Its first iteration knows nothing, its last one explains the torque.
    errors = [row['torque_error'] for row in results.history]
    assert len(errors) <= 9 and errors[0] > 0.3 and errors[-1] < 0.1
    shown = values_of(finished.client.latest['identification/parameters'].status[0])
    assert float(shown['didim.ZZ1R'].split('; ')[0]) == other.base[0].value
    told = finished.client.history['identification/state']
    assert any('DIDIM iteration' in message.message for message in told)


def test_summary_is_what_the_validation_topics_show(finished: Session):
    results = read_results(Path(finished.client.value('identification', 'folder')))
    count = len(results.torques['validation'].time)
    measured, predicted = [], []

    def arrived() -> bool:
        measured.extend(finished.measured.take_messages())
        predicted.extend(finished.predicted.take_messages())
        return len(measured) >= count and len(predicted) >= count

    finished.client.wait_for(arrived, what=f'{count} samples of the validation arrive')
    assert len(measured) == len(predicted) == count > 50
    assert [to_nanoseconds(m.header.stamp) for m in measured] == [
        to_nanoseconds(m.header.stamp) for m in predicted
    ]
    y = np.array([m.effort for m in measured])
    residual = np.linalg.norm(y - np.array([m.effort for m in predicted]), axis=0)
    relative = residual / np.linalg.norm(y, axis=0)
    summary = finished.client.latest['identification/validation/summary'].status
    assert tuple(s.name for s in summary) == JOINTS
    for status, value in zip(summary, relative, strict=True):
        values = values_of(status)
        assert float(values['relative_residual']) == pytest.approx(value, rel=1e-9)
        assert float(values['moving_relative_residual']) < 0.03
    # The stamps are the robot's own.
    recording = open_recording(finished.client.latest['recorder/bag'].data)
    (phase,) = (p for p in recording.phases if p.name == 'validating')
    start = recording.origin + phase.start * 1e9
    assert start - 1e6 <= to_nanoseconds(measured[0].header.stamp) < start + 1e9


def test_files_and_description_are_written(finished: Session):
    folder = Path(finished.client.value('identification', 'folder'))
    assert {p.name for p in folder.iterdir()} >= {
        *('parameters.yaml', 'identified.urdf', 'report.html')
    }
    assert read_results(folder).joints == JOINTS
    urdf = finished.client.latest['identification/robot_description'].data
    assert urdf == (folder / 'identified.urdf').read_text()
    assert ElementTree.fromstring(urdf).tag == 'robot'


def test_effort_is_predicted_live(finished: Session):
    node, asked = finished.client.node, finished.robot.now
    stream = BatchedSubscription(node, JointState, 'identification/predicted_effort')
    residual = BatchedSubscription(node, JointState, 'identification/residual')
    seen: list[JointState] = []
    residuals: list[JointState] = []

    def arrived() -> bool:
        seen.extend(stream.take_messages())
        residuals.extend(residual.take_messages())
        return len(seen) >= 5 and bool(residuals)

    finished.client.wait_for(arrived, what='live prediction')
    assert tuple(seen[-1].name) == JOINTS
    # At rest and with vertical axes nothing but friction, which is zero then, acts.
    assert np.abs(seen[-1].effort).max() < 2.0
    # It is about states that came after the question: nothing waits in a queue.
    newest = to_nanoseconds(seen[-1].header.stamp)
    assert newest > asked
    finished.client.wait_for(lambda: finished.robot.now >= newest, what='the state is seen')


def test_gains_are_proposed_and_set_when_asked(finished: Session):
    names = [f'gains.{joint}.{gain}' for joint in JOINTS for gain in ('p', 'i', 'd')]

    def gains() -> list[float]:
        answer = finished.client.call(
            GetParameters, '/arm_controller/get_parameters', GetParameters.Request(names=names)
        )
        return [value.double_value for value in answer.values]

    before = gains()
    proposed = finished.client.latest['identification/proposed_gains'].status
    old = [float(values_of(s)[f'old_{g}']) for s in proposed for g in ('p', 'i', 'd')]
    new = [float(values_of(s)[f'new_{g}']) for s in proposed for g in ('p', 'i', 'd')]
    assert old == before
    assert new != before
    # A trial on the robot has found them worse: they are set only if that is asked for as well.
    folder = Path(finished.client.value('identification', 'folder'))
    rows = tuple(TrackingRow(joint, 'rad', 1e-3, 2e-3, 1e-2, 2e-2) for joint in JOINTS)
    trial = GainTrial(False, 'they are not better', {}, {}, rows)
    write_verification(folder, Verification(read_results(folder).created, gains=trial))
    with pytest.raises(
        RobotIdError, match=r'not better .*joint_2 0\.001 before, 0\.002 rad'
    ) as caught:
        finished.client.call_trigger('identification/update_controller')
    assert gains() == before
    name = 'identification.controller_gains.although_not_better'
    assert name in str(caught.value)
    parameter = Parameter(name, value=True).to_parameter_msg()
    answer = finished.client.call(
        SetParametersAtomically,
        'identification/set_parameters_atomically',
        SetParametersAtomically.Request(parameters=[parameter]),
    )
    assert answer.result.successful, answer.result.reason
    finished.client.call_trigger('identification/update_controller')
    (folder / VERIFICATION).unlink()
    assert gains() == pytest.approx(new, rel=1e-12)
    for status in proposed:
        assert float(values_of(status)['new_damping']) == pytest.approx(1.0, rel=1e-6)


def test_every_topic_and_service_is_in_the_documents(finished: Session):
    node = finished.client.node
    shown = {name for name, _ in node.get_topic_names_and_types()}
    shown |= {name for name, _ in node.get_service_names_and_types()}
    own = {
        name.removeprefix('/')
        for name in shown
        if name.startswith(tuple(f'/{node}/' for node in NODES)) and not OF_ROS.search(name)
    }
    assert len(own) > 30
    assert sorted(own - documented()) == []


def documented() -> set[str]:
    """Names in the first column of the tables; '…/sigma' goes on where the one before ends."""
    found: set[str] = set()
    text = '\n'.join(page.read_text() for page in PAGES)
    for row in re.findall(r'^\| (`.*?) \|', text, re.MULTILINE):
        first, *others = re.findall(r'`([^`]+)`', row)
        found |= {first, *others}
        folder = first.rpartition('/')[0]
        for name in others:
            found |= {f'{folder}/{name}', f'{folder}{name.removeprefix("…")}'}
            found.add(f'{first}{name.removeprefix("…")}')
    return found


def test_update_fails_whole_when_the_controller_is_gone(finished: Session):
    finished.processes.stop(('simulated_robot',), signal.SIGKILL)
    with pytest.raises(Exception, match='arm_controller'):
        finished.client.call_trigger('identification/update_controller')
