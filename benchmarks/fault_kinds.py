"""What goes wrong in a campaign of faults: each entry is one fault, and what must come of it."""

from collections.abc import Callable
import contextlib
import functools
import os
from pathlib import Path
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticStatus
from fault_trial import AcceptedError, DEADLINE, Fault, Trial
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robotid_ros.exceptions import RobotIdError
from robotid_ros.nodes.common.processes import child_environment
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.common.waiting import answer_of, result_of, run_in_executor
from robotid_ros.simulation_settings import FAULTS

JOINTS = ('joint_1', 'joint_2')
SIGNALS = {
    'SIGINT': signal.SIGINT,
    'SIGTERM': signal.SIGTERM,
    'SIGKILL': signal.SIGKILL,
    'SIGSTOP': signal.SIGSTOP,
}
# How long a process stays suspended: longer than anything may take to notice it [s].
SUSPENDED = 3.0
# What the excitation says when a process is gone; None: as well nothing, as the robot is safe.
SAYS_OF: dict[str, str | None] = {
    'excitation': r'stopped by request|suspended|excitation',
    'recorder': r'recorder',
    'identification': '',
    'guardian': '',
    'simulated_robot': r'joint states|controller|answer|hardware',
}
# What the robot does then cannot be seen, or no client can stop it: a joint without a velocity has
# no effort from its controller, whatever it is told, and coasts until friction stops it. A
# reversed drive would have to hold itself.
UNSEEN = (
    *('hardware_error', 'deactivate', 'frozen_joint', 'frozen_states', 'nan_velocity'),
    'reversed_drive',
)
SAYS_OF_HARDWARE = {
    'stale_joint_states': r'joint states stopped',
    'nan_joint_state': r'joint_1 is not a number',
    'nan_velocity': r'velocity of joint_1|not a number',
    'nan_effort': r'effort of joint_1|not a number',
    'frozen_states': r'same|constant|frozen|reference|tolerance',
    'dead_effort': r'effort of joint_1',
    'frozen_joint': r'joint_1',
    'reversed_drive': r'joint_1|tolerance',
    'hardware_error': r'joint states|controller|deactivat|hardware',
    'deactivate': r'deactivat',
    'starved_clock': '',
}


def _signal(process: str, name: str) -> Callable[[Trial], None]:
    def inject(trial: Trial) -> None:
        pid = trial.process(process)
        os.kill(pid, SIGNALS[name])
        if name == 'SIGSTOP':
            timer = threading.Timer(SUSPENDED, os.kill, (pid, signal.SIGCONT))
            timer.start()
            trial.cleanups.append(timer.join)

    return inject


def _kill_both(trial: Trial) -> None:
    guardian = trial.process('guardian')
    os.kill(trial.process('excitation'), signal.SIGKILL)
    os.kill(guardian, signal.SIGKILL)


def _call(service: str) -> Callable[[Trial], None]:
    def inject(trial: Trial) -> None:
        trial.client.call_trigger(service)

    return inject


def _refused(service: str) -> Callable[[Trial], None]:
    def inject(trial: Trial) -> None:
        answer = ''
        with contextlib.suppress(RobotIdError):
            answer = trial.client.call_trigger(service)
        if answer:
            said = trial.client.message('excitation')
            raise AcceptedError(f'{service} was accepted: {answer} (excitation: {said})')

    return inject


def _stop_recording(trial: Trial) -> None:
    trial.client.call_set_bool('recorder/record', False)


def _many_starts(trial: Trial) -> None:
    # Each hears the answers to all, until it sorts them.
    queue = QoSProfile(depth=100)
    make = trial.client.node.create_client
    clients = [make(Trigger, 'excitation/start', qos_profile=queue) for _ in range(20)]
    for client in clients:
        client.wait_for_service(5.0)
        # The server may know a client later than the client knows it, and cannot answer before.
        first = answer_of(lambda c=client: c.call_async(Trigger.Request()), DEADLINE, 'start', 0.2)
        if first.success:
            raise RobotIdError('a second start was accepted')
    futures = [client.call_async(Trigger.Request()) for client in clients]
    end = time.monotonic() + 5.0
    while time.monotonic() < end and not all(future.done() for future in futures):
        time.sleep(0.01)
    for client in clients:
        run_in_executor(
            trial.client.node, functools.partial(trial.client.node.destroy_client, client)
        )
    if not all(future.done() for future in futures):
        raise RobotIdError(f'{sum(not f.done() for f in futures)} of 20 starts were not answered')
    if any(future.result().success for future in futures):
        raise RobotIdError('a second start was accepted')


def _publish(
    topic: str, message: object, count: int = 1, period: float = 0.0, qos: QoSProfile | int = 10
) -> Callable[[Trial], None]:
    def inject(trial: Trial) -> None:
        publisher = trial.client.node.create_publisher(type(message), topic, qos)
        node = trial.client.node
        trial.cleanups.append(
            lambda: run_in_executor(node, lambda: node.destroy_publisher(publisher))
        )
        end = time.monotonic() + 2.0
        while not publisher.get_subscription_count() and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)  # the listeners may know it later than it knows them
        for _ in range(count):
            publisher.publish(message)
            time.sleep(period)

    return inject


def _foreign_goal(trial: Trial) -> None:
    client = ActionClient(
        trial.client.node, FollowJointTrajectory, 'arm_controller/follow_joint_trajectory'
    )
    client.wait_for_server(5.0)
    goal = client.send_goal_async(FollowJointTrajectory.Goal(trajectory=_still()))

    def end() -> None:
        if goal.done() and goal.result().accepted:
            result_of(goal.result().get_result_async(), DEADLINE, "the other client's goal")
        client.destroy()

    trial.cleanups.append(end)
    time.sleep(0.05)


def _still() -> JointTrajectory:
    point = JointTrajectoryPoint(positions=[0.0, 0.0])
    point.time_from_start.sec = 3
    return JointTrajectory(joint_names=list(JOINTS), points=[point])


def _second_excitation(trial: Trial) -> None:
    words = (
        '--params-file',
        str(trial.config),
        '-r',
        '__node:=excitation2',
        '--log-level',
        'fatal',
    )
    given = f'excitation.trajectory:={trial.trajectory}', 'excitation.require_recorder:=false'
    options = ['--ros-args', *words, *(word for item in given for word in ('-p', item))]
    process = subprocess.Popen(
        [sys.executable, '-m', 'robotid_ros.nodes', 'excitation', *options],
        env=child_environment(**trial.environment),
    )
    trial.cleanups += [process.kill, process.wait]
    client = trial.client.node.create_client(Trigger, 'excitation2/start')
    node = trial.client.node
    trial.cleanups.append(lambda: run_in_executor(node, lambda: node.destroy_client(client)))
    client.wait_for_service(DEADLINE)
    # It looks whether the robot is free before it moves anything; the first answer may be lost.
    answer_of(lambda: client.call_async(Trigger.Request()), DEADLINE, 'a second start')
    time.sleep(1.0)


def _remove_recording(trial: Trial) -> None:
    shutil.rmtree(Path(trial.client.value('recorder', 'path')))


def _fill_disk(trial: Trial) -> None:
    path = Path(trial.client.value('recorder', 'path'))
    size = sum(f.stat().st_size for f in path.glob('*.mcap')) + 50_000
    resource.prlimit(trial.process('recorder'), resource.RLIMIT_FSIZE, (size, size))


def _weak_gains(trial: Trial) -> None:
    values = [Parameter(f'gains.{j}.p', value=1.0).to_parameter_msg() for j in JOINTS]
    request = SetParametersAtomically.Request(parameters=values)
    trial.client.call(SetParametersAtomically, 'arm_controller/set_parameters_atomically', request)


def _state(names: tuple[str, ...], **values: list[float]) -> JointState:
    message = JointState(name=list(names), position=[0.0] * len(names))
    for key, value in values.items():
        setattr(message, key, value)
    return message


def faults() -> list[Fault]:
    """All of them."""
    doubled = _state(('joint_1', 'joint_1'))
    nan = float('nan')
    spoiled = _state(JOINTS, velocity=[nan, nan], effort=[0.0, 0.0])
    return [
        *(
            Fault(
                f'{name} {process}',
                _signal(process, name),
                _expected(process, name),
                (process,) if name != 'SIGSTOP' or process == 'simulated_robot' else (),
                is_seen=process != 'simulated_robot',
            )
            for process in (
                'excitation',
                'recorder',
                'identification',
                'guardian',
                'simulated_robot',
            )
            for name in SIGNALS
        ),
        Fault('SIGKILL excitation, guardian', _kill_both, r'silent', ('excitation',)),
        *(
            Fault(
                f'hardware: {kind}',
                _call('simulated_robot/break'),
                SAYS_OF_HARDWARE[kind],
                robot={'simulation.fault.kind': kind, 'simulation.fault.time': 1e6},
                is_seen=kind not in UNSEEN,
            )
            for kind in FAULTS
        ),
        Fault('stop', _call('excitation/stop'), r'stopped by request'),
        Fault('start again', _refused('excitation/start'), ''),
        Fault('20 starts', _many_starts, ''),
        Fault('update_controller', _refused('identification/update_controller'), ''),
        Fault('recorder/record false', _stop_recording, r'record'),
        Fault('second excitation', _second_excitation, ''),
        # Whose motion goes on, which is not ours to end.
        Fault('goal of another client', _foreign_goal, r'another client', is_seen=False),
        Fault(
            'trajectory of another client',
            _publish('arm_controller/joint_trajectory', _still()),
            r'somebody else',
            is_seen=False,
        ),
        # Who keeps them, until the robot is started anew.
        Fault(
            'gains changed',
            _weak_gains,
            r'gains\.joint_\d\.p .* was changed',
            ('simulated_robot',),
        ),
        Fault('recording removed', _remove_recording, r'removed', is_recorded=False),
        Fault('disk full', _fill_disk, r'too large|full', ('recorder',)),
        Fault(
            'malformed trajectory',
            _publish('excitation/trajectory', String(data='a: [1'), qos=LATCHED),
            '',
        ),
        Fault(
            'malformed state', _publish('excitation/state', DiagnosticStatus(), qos=LATCHED), ''
        ),
        Fault(
            'malformed description',
            _publish('robot_description', String(data='<robot'), qos=LATCHED),
            '',
        ),
        Fault('bag of a stranger', _publish('recorder/bag', String(data='/etc'), qos=LATCHED), ''),
        Fault('doubled names', _publish('joint_states', doubled, 5, 0.01), ''),
        Fault('NaN among joint states', _publish('joint_states', spoiled), r'not a number'),
        Fault('flood of joint states', _publish('joint_states', doubled, 5000, 2e-4), None),
        Fault('/clock jumps', _publish('/clock', Clock(), 20, 0.01), ''),
    ]


def _expected(process: str, name: str) -> str | None:
    if process == 'guardian' and name in ('SIGKILL', 'SIGSTOP'):
        return 'guardian' if name == 'SIGKILL' else None
    return SAYS_OF[process]
