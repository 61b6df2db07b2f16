"""A session needs a recorder that says that it writes, and notices when it does not."""

import subprocess
import sys

from diagnostic_msgs.msg import DiagnosticStatus
import pytest
from rclpy.node import Node
from waiting import PATIENCE, wait_until

from robotid_ros.exceptions import ControllerError, RecordingError
from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.common.processes import own_process
from robotid_ros.nodes.common.waiting import Silence
from robotid_ros.nodes.excitation.checks import RecorderWatch

SESSION = 'the session that is watched'


@pytest.fixture
def recorder(node: Node):
    """Publish heartbeats: a function of state and sentence."""
    publisher = node.create_publisher(DiagnosticStatus, 'recorder/heartbeat', 10)

    def beat(state: str, message: str = '', session: str = SESSION, **values: object) -> None:
        values |= {'state': state, 'session': session}
        publisher.publish(status('recorder', message, values))

    return beat


def nothing() -> None:
    pass


def heard(
    watch: RecorderWatch, recorder, state: str, session: str = SESSION, **values: object
) -> None:
    """Publish until it is heard: the watch may not know the publisher yet."""

    def known() -> bool:
        recorder(state, session=session, **values)
        watch._read()
        return watch._state == state and watch._values['session'] == session

    wait_until(known, f'{state} is heard')


@pytest.mark.ros
def test_no_recorder_is_said_with_the_remedy(node: Node):
    with pytest.raises(
        RecordingError, match=r'no recorder.*excitation\.require_recorder to false'
    ):
        RecorderWatch(node, SESSION).wait_present(0.05, nothing)


@pytest.mark.ros
def test_it_waits_until_the_recorder_writes_and_notices_its_failure(node: Node, recorder):
    watch = RecorderWatch(node, SESSION)
    heard(watch, recorder, 'idle')
    watch.wait_present(PATIENCE, lambda: recorder('idle'))
    watch.wait_recording(PATIENCE, lambda: recorder('recording'))
    watch.check()
    recorder('failed', 'the disk is full')
    with pytest.raises(
        RecordingError, match="stopped, the recorder is 'failed': the disk is full"
    ):
        wait_until(lambda: watch.check(), 'the failure is heard')


@pytest.mark.ros
@pytest.mark.parametrize('earlier', ['failed', 'recording'])
def test_a_session_waits_for_its_own_recording(node: Node, recorder, earlier: str):
    watch = RecorderWatch(node, SESSION)
    heard(watch, recorder, earlier, session='the one before')
    answers: list[str] = []

    def say() -> None:
        answers.append('recording')
        recorder('recording', session=SESSION if len(answers) > 5 else 'the one before')

    watch.wait_recording(PATIENCE, say)
    assert len(answers) > 5
    watch.check()
    with pytest.raises(RecordingError, match="stopped, the recorder is 'recording' another"):
        heard(watch, recorder, 'recording', session='a later one')
        watch.check()


@pytest.mark.ros
def test_a_status_without_a_state_neither_ends_the_session_nor_is_a_sign_of_life(
    node: Node, recorder
):
    watch = RecorderWatch(node, SESSION)
    heard(watch, recorder, 'recording')
    watch.wait_recording(PATIENCE, nothing)
    other = node.create_publisher(DiagnosticStatus, 'recorder/heartbeat', 10)
    wait_until(lambda: other.get_subscription_count(), 'the other publisher is known')

    def check() -> None:
        other.publish(DiagnosticStatus())
        watch.check()

    with pytest.raises(RecordingError, match=r'silent on .recorder/heartbeat. for'):
        wait_until(check, 'the silence is noticed')


@pytest.mark.ros
def test_a_failure_to_open_the_bag_is_told_at_once(node: Node, recorder):
    watch = RecorderWatch(node, SESSION)
    heard(watch, recorder, 'failed')
    with pytest.raises(RecordingError, match="no motion begins, the recorder is 'failed'"):
        watch.wait_recording(PATIENCE, nothing)


@pytest.mark.ros
def test_what_else_goes_wrong_meanwhile_ends_the_wait(node: Node):
    def stopped() -> None:
        raise ControllerError('stopped')

    watch = RecorderWatch(node, SESSION)
    for wait in (watch.wait_present, watch.wait_recording):
        with pytest.raises(ControllerError, match='stopped'):
            wait(PATIENCE, stopped)


@pytest.mark.ros
@pytest.mark.parametrize(('is_dead', 'silence'), [(False, r'0\.5'), (True, r'0\.2[5-9]')])
def test_a_silent_recorder_is_noticed_sooner_where_it_is_dead(
    node: Node, recorder, is_dead: bool, silence: str
):
    process = subprocess.Popen([sys.executable, '-c', ''])
    process.wait()
    watch = RecorderWatch(node, SESSION)
    known = {**own_process(), 'pid': process.pid} if is_dead else {}
    heard(watch, recorder, 'recording', **known)
    watch.wait_recording(PATIENCE, nothing)
    with pytest.raises(RecordingError, match=f'silent on .recorder/heartbeat. for {silence}'):
        wait_until(lambda: watch.check(), 'the silence is noticed')


def test_a_reader_without_processor_hears_no_silence():
    silence = Silence(0.0)
    assert silence.update(0.04, heard=False) == pytest.approx(0.04)
    # It slept for 3 s: what arrived meanwhile may still be on its way to it.
    assert silence.update(3.04, heard=False) == pytest.approx(0.09)
    assert silence.update(3.05, heard=True) == 0.0
    assert silence.update(3.06, heard=False) == pytest.approx(0.01)
