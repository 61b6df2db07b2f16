"""The simulated robot over real DDS: its topics, its states, its faults."""

from concurrent.futures import ThreadPoolExecutor
import re
import time

from action_msgs.msg import GoalStatus
from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import pytest
import rclpy
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from three_joint_robot import (
    BREAK,
    COMMANDS,
    JOINTS,
    LONG,
    point,
    running,
    stamps,
    STATES,
    TRANSIENT,
    URDF,
)
from trajectory_msgs.msg import JointTrajectory
from waiting import wait_until

from robotid_ros.nodes.common.waiting import run_in_executor
from robotid_ros.nodes.simulated_robot.simulated_robot_node import MAX_LAG


def test_a_robot_of_position_commands_scales_its_speed_and_may_hide_its_torques():
    with running(command_interface='position', report_effort=False) as (robot, client):
        state = client.first(JointTrajectoryControllerState, COMMANDS, TRANSIENT)
        assert (len(state.output.positions), len(state.output.effort)) == (3, 0)
        assert state.speed_scaling_factor == 1.0
        assert np.isnan(client.first(JointState, STATES, TRANSIENT).effort).all()
        scaling = 'simulation.speed_scaling'
        refused, accepted = (
            robot.set_parameters([rclpy.Parameter(scaling, value=value)])[0]
            for value in (1.5, 0.5)
        )
        assert accepted.successful and not refused.successful
        client.when(lambda state: state.speed_scaling_factor == 0.5, 'the factor is 0.5')


def test_changes_that_come_at_once_are_all_made():
    made = list[int]()
    with running() as (robot, _), ThreadPoolExecutor(20) as pool:
        changes = [lambda *_, k=k: made.append(k) for k in range(20)]
        assert all(pool.map(robot.loop.switch, changes))
    assert sorted(made) == [*range(20)]


def test_joint_states_are_alphabetical_at_their_rate(client):
    seen = client.collect(JointState, STATES, 300)
    assert seen[0].name == ['joint2', 'joint3', 'zjoint']
    periods = np.diff(stamps(seen))
    assert np.median(periods) == pytest.approx(2e6, rel=0.01)
    assert (periods > 0).all()


def with_command_before(states, commands):
    """Pair each joint state with the command of the cycle before, where both have arrived."""
    command_at = stamps(commands)
    for state, stamp in zip(states, stamps(states), strict=True):
        index = np.searchsorted(command_at, stamp) - 1
        # The broadcaster's stamp is 20 to 40 µs late; the command before is one period older.
        if index < 1 or not 0 < stamp - command_at[index] < 100_000:
            continue
        if command_at[index] - command_at[index - 1] == 1_000_000:
            yield state, commands[index - 1]


def test_effort_is_the_command_of_the_cycle_before(client):
    with (
        client.listen(JointState, STATES) as states,
        client.listen(JointTrajectoryControllerState, COMMANDS) as commands,
    ):
        wait_until(lambda: states and commands, 'both arrive')
        client.result(client.send(point(0.0, 0.0, 0.0, 0.0), point(0.5, 0.3, 0.2, -0.2)))
        pairs = []

        def enough():
            pairs[:] = with_command_before(list(states), list(commands))
            return len(pairs) > 50

        wait_until(enough, 'states meet commands', lambda: len(pairs), period=0.2)
    for state, command in pairs:
        z, j2, j3 = command.output.effort
        assert list(state.effort) == [j2, j3, z]


def test_controller_state_has_the_originals_fields(client):
    state = client.first(JointTrajectoryControllerState, COMMANDS, TRANSIENT)
    assert state.joint_names == JOINTS
    for part, fields in (
        (state.reference, (3, 3, 3, 0)),
        (state.feedback, (3, 3, 0, 0)),
        (state.error, (3, 3, 0, 0)),
        (state.output, (0, 0, 0, 3)),
    ):
        assert (
            tuple(map(len, (part.positions, part.velocities, part.accelerations, part.effort)))
            == fields
        )
    assert state.speed_scaling_factor == 1.0


@pytest.mark.parametrize('topic', [STATES, COMMANDS, '/robot_description'])
def test_what_is_published_is_reliable_and_kept(client, topic):
    offered(client, topic, 'publishers', ReliabilityPolicy.RELIABLE, 'TRANSIENT_LOCAL')


def test_trajectories_are_taken_as_by_the_original(client):
    topic = '/arm_controller/joint_trajectory'
    offered(client, topic, 'subscriptions', ReliabilityPolicy.BEST_EFFORT, 'VOLATILE')


def offered(client, topic, ends, reliability, durability):
    """Wait until an end of a topic is known that has this quality of service."""
    wanted = (reliability, DurabilityPolicy[durability])

    def known():
        found = getattr(client.node, f'get_{ends}_info_by_topic')(topic)
        return [(end.qos_profile.reliability, end.qos_profile.durability) for end in found]

    wait_until(lambda: wanted in known(), f'{topic} is {wanted}', known)


def test_topic_runs_a_trajectory(client):
    publisher = client.node.create_publisher(
        JointTrajectory, '/arm_controller/joint_trajectory', 10
    )
    message = JointTrajectory(joint_names=JOINTS, points=[point(0.2, 0.4, 0.0, 0.0)])
    with client.listen(JointTrajectoryControllerState, COMMANDS) as seen:

        def reached():
            # Again and again: the reader, best effort, may know the writer later than it knows it.
            publisher.publish(message)
            return seen and seen[-1].reference.positions[0] == 0.4

        wait_until(reached, 'it is reached', lambda: seen[-1:], period=0.5)
    run_in_executor(client.node, lambda: client.node.destroy_publisher(publisher))


def test_descriptions_and_truth_wait_for_late_joiners(client):
    assert client.first(String, '/robot_description').data == URDF
    assert '<inertial>' in client.first(String, '/simulated_robot/true_robot_description').data
    truth = client.first(DiagnosticArray, '/simulated_robot/true_parameters')
    assert [status.name for status in truth.status] == JOINTS
    keys = [value.key for value in truth.status[0].values]
    assert keys == 'XX XY XZ YY YZ ZZ MX MY MZ M Ia Fv Fc off'.split()
    assert float(truth.status[0].values[10].value) == 0.5


def test_links_without_inertials_share_the_mass_of_the_robot():
    bare = re.sub('<inertial>.*?</inertial>', '', URDF, flags=re.DOTALL)
    with running(bare, mass=20.0) as (_, client):
        assert client.first(String, '/robot_description').data == bare
        truth = client.first(DiagnosticArray, '/simulated_robot/true_parameters')
        masses = [float(v.value) for s in truth.status for v in s.values if v.key == 'M']
        assert len(masses) == 3 and 5.0 < sum(masses) < 20.0


def test_hardware_error_ends_goal_and_states():
    with (
        running(fault={'kind': 'hardware_error', 'time': LONG}) as (robot, client),
        client.listen(JointState, STATES) as seen,
    ):
        handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.1, 0.0, 0.0))
        wait_until(lambda: seen, 'joint states')
        assert client.call(BREAK).message == 'hardware_error'
        result = client.result(handle)
        assert (result.status, result.result.error_code) == (GoalStatus.STATUS_ABORTED, -1)
        assert 'deactivate transition' in result.result.error_string
        ended = robot.loop.now()
        wait_until(lambda: robot.loop.now() > ended + 500_000_000, 'the robot lives on')
        assert (stamps(list(seen)) < ended).all()
        assert not client.send(point(1.0, 0.0, 0.0, 0.0)).accepted


def test_nothing_breaks_where_no_fault_is_configured(client):
    answer = client.call(BREAK)
    assert not answer.success
    assert 'simulation.fault.kind' in answer.message


def test_simulated_time_runs_faster_with_its_clock():
    with running(real_time_factor=3.0) as (_, client), client.listen(Clock, '/clock', 10) as seen:

        def clock():
            return Time.from_msg(seen[-1].clock).nanoseconds * 1e-9

        real = time.monotonic()
        wait_until(lambda: seen, 'the clock')
        begin = clock()
        handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(3.0, 0.1, 0.0, 0.0))
        assert client.result(handle).status == GoalStatus.STATUS_SUCCEEDED
        wait_until(lambda: clock() - begin >= 3.0, 'the clock goes on', clock)
        # Never faster than asked for, but what a busy machine delayed is made up for.
        assert clock() - begin <= 3.0 * (time.monotonic() - real + MAX_LAG)
        stamp = Time.from_msg(client.first(JointState, STATES, TRANSIENT).header.stamp)
        wait_until(
            lambda: clock() >= stamp.nanoseconds * 1e-9, 'the state is of this clock', clock
        )
