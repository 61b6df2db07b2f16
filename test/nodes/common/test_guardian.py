"""The guardian notices a client that is suspended or silent, and ends without a word otherwise."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time
import uuid

from action_msgs.srv import CancelGoal
from live_session import dead
import pytest
from rclpy.node import Node
from waiting import wait_until

from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.common import guardian as guardian_module
from robotid_ros.nodes.common.guardian import Guardian, LONGEST_SILENCE
from robotid_ros.nodes.common.processes import is_suspended

from ..conftest import Controller

SERVICES = (
    '/arm_controller/follow_joint_trajectory/_action/cancel_goal',
    '/arm_controller/set_parameters_atomically',
)


def test_a_suspended_process_is_told_from_one_that_waits():
    with subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE) as process:
        assert not is_suspended(process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_suspended(process.pid), 'it is suspended')
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: not is_suspended(process.pid), 'it goes on')
        process.kill()
    assert not is_suspended(process.pid)


@pytest.mark.ros
def test_a_session_that_is_refused_ends_its_guardian_without_a_word(
    domain: int, capfd: pytest.CaptureFixture
):
    guardian = Guardian('/nobody/_action/cancel_goal', '/nobody/set_parameters_atomically', domain)
    guardian.close()
    # Sooner than it would give up on the service that nobody serves.
    wait_until(lambda: not guardian.is_running, 'the guardian ends', deadline=25.0)
    assert capfd.readouterr() == ('', '')


@pytest.mark.ros
def test_a_guardian_that_hangs_gives_way_to_another(
    domain: int, controller: Controller, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(guardian_module, 'FIRST_ATTEMPT', 2.0)
    guardian = Guardian(*SERVICES, domain)
    hanging = guardian.pid
    os.kill(hanging, signal.SIGSTOP)
    guardian.wait_ready(120.0)
    assert guardian.pid != hanging
    wait_until(lambda: dead(hanging), 'the one that hung is dead')
    guardian.close()
    wait_until(lambda: not guardian.is_running, 'the guardian ends')


@pytest.mark.ros
def test_a_goal_is_cancelled_though_the_one_that_was_to_replace_it_never_came(
    domain: int, node: Node
):
    ended, running, lost = (uuid.uuid4() for _ in range(3))
    asked: list[uuid.UUID] = []

    def cancel(request: CancelGoal.Request, answer: CancelGoal.Response) -> CancelGoal.Response:
        asked.append(uuid.UUID(bytes=bytes(request.goal_info.goal_id.uuid)))
        unknown = asked[-1] != running
        answer.return_code = answer.ERROR_UNKNOWN_GOAL_ID if unknown else answer.ERROR_NONE
        return answer

    node.create_service(CancelGoal, SERVICES[0], cancel)
    guardian = Guardian(*SERVICES, domain)
    guardian.wait_ready(120.0)
    for goal in (ended, running, lost):
        guardian.set_goal(goal)
    guardian.close()
    wait_until(lambda: not guardian.is_running, 'the guardian ends', deadline=25.0)
    assert set(asked) == {running, lost}
    assert asked.count(running) == 1


SERVER = f"""
import rclpy
from action_msgs.srv import CancelGoal
rclpy.init()
node = rclpy.create_node('server')
node.create_service(CancelGoal, '{SERVICES[0]}', lambda _, answer: print('cancelled') or answer)
rclpy.spin(node)
"""


@pytest.mark.ros
def test_a_guardian_shares_no_memory_with_nodes_that_may_die_with_a_lock(
    domain: int, monkeypatch: pytest.MonkeyPatch
):
    # As users have it: Fast DDS takes shared memory there.
    monkeypatch.delenv('FASTRTPS_DEFAULT_PROFILES_FILE')
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    command = [sys.executable, '-u', '-c', SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        guardian = Guardian(*SERVICES, domain)
        guardian.wait_ready(120.0)
        maps = [Path(f'/proc/{each.pid}/maps').read_text() for each in (server, guardian)]
        guardian.set_goal(uuid.uuid4())
        guardian.close()
        assert server.stdout.readline() == 'cancelled\n'
        server.kill()
    assert ['/dev/shm/fast' in text for text in maps] == [True, False]


@pytest.mark.ros
def test_a_goal_that_no_controller_knows_is_no_alarm(
    domain: int, node: Node, capfd: pytest.CaptureFixture
):
    def cancel(_: CancelGoal.Request, answer: CancelGoal.Response) -> CancelGoal.Response:
        answer.return_code = answer.ERROR_UNKNOWN_GOAL_ID
        return answer

    node.create_service(CancelGoal, SERVICES[0], cancel)
    guardian = Guardian(*SERVICES, domain)
    guardian.wait_ready(120.0)
    guardian.set_goal(uuid.uuid4())
    guardian.close()
    # As long as the goal may still be on its way.
    wait_until(lambda: not guardian.is_running, 'the guardian ends', deadline=25.0)
    said = capfd.readouterr().err
    assert 'its motion was cancelled' in said and 'FATAL' not in said


@pytest.mark.ros
def test_a_client_that_does_not_watch_is_told_so(domain: int, controller: Controller):
    guardian = Guardian(*SERVICES, domain)
    guardian.wait_ready(120.0)
    guardian.set_goal(uuid.uuid4())
    # A trajectory may be long to send: nobody is silent before the first sign of life.
    time.sleep(2.0 * LONGEST_SILENCE)
    guardian.check()
    time.sleep(2.0 * LONGEST_SILENCE)
    with pytest.raises(ControllerError, match=r'did not watch the robot for \d\.\d s: the guard'):
        wait_until(lambda: guardian.check(), 'the guardian says so', period=1.5 * LONGEST_SILENCE)
    guardian.close()
    wait_until(lambda: not guardian.is_running, 'the guardian ends')


@pytest.mark.ros
@pytest.mark.parametrize('said', ['nothing', 'keep'])
def test_gains_on_trial_are_set_back_when_the_pipe_closes(
    said: str, domain: int, controller: Controller
):
    old = {'gains.joint_1.p': 1.0 / 3.0, 'gains.joint_1.d': 20.0}
    for name in old:
        controller.declare_parameter(name, 7.0)
    guardian = Guardian(*SERVICES, domain)
    guardian.wait_ready(120.0)
    guardian.protect(old)
    if said == 'keep':
        guardian.release()
    guardian.close()
    wait_until(lambda: not guardian.is_running, 'the guardian ends')
    found = {name: controller.get_parameter(name).value for name in old}
    assert found == (old if said == 'nothing' else dict.fromkeys(old, 7.0))
