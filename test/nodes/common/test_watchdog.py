"""Each thing that must stop the robot is seen, named, and nothing else is."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from robotid_ros.core.arrays import expand_per_joint
from robotid_ros.exceptions import ConfigurationError, RobotStateError, TrackingError
from robotid_ros.node_settings import ExcitationNodeSettings
from robotid_ros.nodes.common.controller import MAX_PAUSE
from robotid_ros.nodes.common.messages import is_well_formed, stack_joint_states
from robotid_ros.nodes.common.watchdog import (
    check_states,
    describe_gap,
    describe_violation,
    Watchdog,
)

JOINTS = ('a', 'b')
SETTINGS = ExcitationNodeSettings(effort_time=0.02, effort_share=0.9, stale_after=0.25)


def watchdog(*, reported=True, locked=None, tracking=(0.1,)):
    limits = SimpleNamespace(
        lower=np.array([-1.0, -2.0]),
        upper=np.array([1.0, np.inf]),
        effort=np.array([10.0, 20.0]),
        velocity=np.array([2.0, 2.0]),
    )
    robot = SimpleNamespace(
        joints=JOINTS, limits=limits, drive_gain=np.array([1.0, 2.0]), locked=locked or {}
    )
    settings = dataclasses.replace(SETTINGS, tracking_error=tracking)
    return Watchdog(robot, settings, 0.0, effort_reported=reported)


def header(stamp):
    nanoseconds = round(stamp * 1e9)
    return SimpleNamespace(
        stamp=SimpleNamespace(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
    )


def joint_state(
    stamp=0.0, position=(0.0, 0.0), effort=(0.0, 0.0), name=JOINTS, velocity=(0.0, 0.0)
):
    return SimpleNamespace(
        header=header(stamp), name=list(name), position=position, velocity=velocity, effort=effort
    )


def look(dog, *messages, now=0.0, malformed=0):
    dog.check_joint_states(stack_joint_states(messages, JOINTS), now, malformed)


def look_until(now, dog, *messages, since=0.0, malformed=0):
    """Look every 10 ms, as the monitor does."""
    for k in range(round((now - since) * 100)):
        look(dog, *messages, now=since + 0.01 * (k + 1), malformed=malformed)


def point(positions=(), velocities=(), effort=()):
    return SimpleNamespace(positions=positions, velocities=velocities, effort=effort)


def controller_state(error=(0.0, 0.0), names=JOINTS, stamp=0.0, effort=(), **parts):
    return SimpleNamespace(
        header=header(stamp),
        joint_names=list(names),
        error=point(error),
        output=point(effort=effort),
        reference=parts.get('reference', point()),
        feedback=parts.get('feedback', point()),
        speed_scaling_factor=parts.get('speed', 1.0),
    )


def test_joints_are_matched_by_name():
    numbers = (3.0, 1.0, 2.0), (30.0, 10.0, 20.0), ('x', 'b', 'a'), (0.0,) * 3
    message = joint_state(1.5, *numbers)
    states = stack_joint_states([message], JOINTS)
    assert states.stamp.tolist() == [1_500_000_000]
    assert states.position.tolist() == [[2.0, 1.0]]
    assert states.effort.tolist() == [[20.0, 10.0]]


def test_messages_of_other_joints_and_malformed_ones_are_passed_over():
    for message in (joint_state(name=('a', 'x')), joint_state(velocity=(0.0,))):
        assert len(stack_joint_states([message], JOINTS).stamp) == 0


def test_a_healthy_robot_is_left_alone():
    dog = watchdog()
    for k in range(100):
        effort = (8.8 + 0.1 * (k % 2), 8.9)
        look(dog, joint_state(k * 0.01, (1.015 - 0.001 * k, 1e6), effort), now=k * 0.01)
        dog.check_controller_state(controller_state((0.09, -0.09)), k * 0.01)


@pytest.mark.parametrize('field', ['position', 'effort'])
def test_nan_names_joint_and_quantity(field):
    with pytest.raises(RobotStateError, match=f'{field} of b'):
        look(watchdog(), joint_state(**{field: (0.0, np.nan)}))


def test_missing_effort_is_no_effort():
    with pytest.raises(RobotStateError, match='effort of a'):
        look(watchdog(), joint_state(effort=()))


def test_one_bad_message_among_many_is_seen():
    messages = [joint_state(k * 0.001) for k in range(10)]
    messages[4] = joint_state(0.004, (0.0, -2.5))
    with pytest.raises(RobotStateError, match=r'position of b is 0\.5 beyond'):
        look(watchdog(), *messages)


def test_silence_and_repetition_are_stale_alike():
    silent, repeating = watchdog(), watchdog()
    look(silent, joint_state(1.0), now=0.0)
    look(repeating, joint_state(1.0), now=0.0)
    look_until(0.24, silent)
    with pytest.raises(RobotStateError, match='joint states stopped'):
        look_until(0.26, silent, since=0.24)
    look_until(0.24, repeating, joint_state(1.0))
    with pytest.raises(RobotStateError, match='joint states stopped'):
        look_until(0.26, repeating, joint_state(1.0), since=0.24)


def test_malformed_states_are_named_when_no_other_comes():
    dog = watchdog()
    look(dog, joint_state(1.0), now=0.0)
    look_until(0.2, dog, malformed=50)
    look(dog, joint_state(1.2), now=0.21, malformed=50)
    look_until(0.4, dog, since=0.21, malformed=50)
    with pytest.raises(RobotStateError, match=r'only malformed joint states for 0\.26 s, 1350 of'):
        look_until(0.5, dog, since=0.4, malformed=50)


def test_states_without_stamps_are_no_silence():
    dog = watchdog()
    with pytest.raises(RobotStateError, match='joint states have no stamps: let their publisher'):
        look_until(0.3, dog, joint_state(0.0))


@pytest.mark.parametrize(('step', 'ends'), [(-0.2, True), (-0.05, False), (2, False), (4, True)])
def test_a_clock_that_is_set_ends_a_motion(step, ends):
    dog = watchdog()
    dog.check_controller_state(controller_state(stamp=10.0), 0.0)
    if not ends:
        dog.check_controller_state(controller_state(stamp=10.0 + step), 0.01)
        return
    with pytest.raises(RobotStateError, match=rf'clock was set by \{step:+.2f} s'):
        dog.check_controller_state(controller_state(stamp=10.0 + step), 0.01)


def test_a_reader_without_processor_is_not_a_silent_robot():
    dog = watchdog()
    look(dog, joint_state(1.0), now=0.0)
    # What arrived in these 2 s may be read a moment later.
    look(dog, now=2.0)
    look(dog, joint_state(3.01), now=2.01)
    look_until(2.2, dog, since=2.01)


def test_late_cycles_of_a_controller_are_named_and_a_few_lost_states_are_not():
    def gap(steps):
        return describe_gap([SimpleNamespace(header=header(t)) for t in np.cumsum(steps)])

    steps = np.full(100, 0.002)
    steps[[20, 40]] = 0.004, 0.024
    assert gap([]) == gap([0.0]) == gap(steps) == gap([0.05] * 9) == ''
    steps[60:63] = 0.15
    assert 'a gap of 0.15 s' in gap(steps)


@pytest.mark.parametrize(
    ('changes', 'good'),
    [
        ({}, True),
        ({'velocity': (), 'effort': ()}, True),
        ({'name': ('a', 'a')}, False),
        ({'position': (0.0,)}, False),
        ({'velocity': (0.0,) * 3}, False),
        ({'effort': (0.0,)}, False),
    ],
)
def test_well_formed_states_have_one_value_or_none_for_each_joint(changes, good):
    assert is_well_formed(joint_state(**changes)) == good


def test_a_velocity_that_was_a_number_must_stay_one():
    never = watchdog()
    for stamp in (0.0, 0.01):
        look(never, joint_state(stamp, velocity=(0.0, np.nan)))
    with pytest.raises(RobotStateError, match='velocity of a is not a number any more'):
        look(never, joint_state(0.02, velocity=(np.nan, np.nan)))


@pytest.mark.parametrize('part', ['reference', 'feedback'])
@pytest.mark.parametrize('field', ['positions', 'velocities'])
def test_whatever_the_controller_has_reported_must_stay_a_number(part, field):
    dog = watchdog()
    dog.check_controller_state(controller_state(**{part: point(**{field: (1.0, 2.0)})}), 0.0)
    dog.check_controller_state(controller_state(), 0.01)
    bad = point(**{field: (np.nan, 2.0)})
    with pytest.raises(RobotStateError, match=f"controller's {part} .* of b is not"):
        dog.check_controller_state(controller_state(names=('b', 'a'), **{part: bad}), 0.02)


def test_an_output_that_is_no_number_any_more_is_seen():
    dog = watchdog()
    dog.check_controller_state(controller_state(effort=(1.0, 1.0)), 0.0)
    with pytest.raises(RobotStateError, match="controller's output effort of b"):
        dog.check_controller_state(controller_state(effort=(1.0, np.nan)), 0.01)


def test_effort_may_peak_but_not_stay():
    # Joint b publishes half of its torque, so its limit of 20 is at 10 of what it publishes.
    dog = watchdog()
    look(dog, joint_state(0.0, effort=(0.0, -9.5)), joint_state(0.01, effort=(0.0, -9.5)))
    look(dog, joint_state(0.015, effort=(0.0, 0.0)), joint_state(0.016, effort=(0.0, -9.5)))
    look(dog, joint_state(0.03, effort=(0.0, -9.5)))
    with pytest.raises(RobotStateError, match='effort of b'):
        look(dog, joint_state(0.037, effort=(0.0, -9.5)))


def test_commanded_effort_stands_in_for_one_that_nobody_reports():
    dog = watchdog(reported=False)
    look(dog, joint_state(effort=(np.nan, np.nan)))
    for stamp in (0.0, 0.015):
        dog.check_controller_state(
            controller_state(names=('b', 'a'), stamp=stamp, effort=(-9.5, 0)), 0
        )
    with pytest.raises(RobotStateError, match=r'effort of b is -9\.5'):
        dog.check_controller_state(controller_state(stamp=0.021, effort=(0, -9.5)), 0)
    with pytest.raises(RobotStateError, match='commanded effort of a is not a number'):
        watchdog(reported=False).check_controller_state(controller_state(effort=(np.nan, 0)), 0)


def test_effort_that_never_changes_in_motion_is_dead():
    dog = watchdog()
    with pytest.raises(RobotStateError, match='effort of b stays the same'):
        for k in range(40):
            moving, still = 0.002 * k, 0.5
            state = joint_state(k * 0.01, (still, moving), (1.0, 2.0))
            look(dog, state, now=k * 0.01)
    assert k * 0.01 == pytest.approx(SETTINGS.stale_after, abs=0.011)


def test_tracking_error_names_the_joint_in_any_order():
    with pytest.raises(RobotStateError, match=r'a is 0\.2 away'):
        watchdog().check_controller_state(controller_state((0.0, -0.2), ('b', 'a')), 0.0)


def test_silent_controller_is_seen():
    dog = watchdog()
    dog.check_controller_state(controller_state(), 0.1)
    for now in np.arange(0.11, 0.345, 0.01):
        dog.check_controller_state(None, now)
    with pytest.raises(RobotStateError, match='controller'):
        dog.check_controller_state(None, 0.36)


@pytest.mark.parametrize('step', [5.0, -5.0])
def test_a_clock_that_is_set_is_told_with_its_step(step):
    dog = watchdog()
    for stamp in (100.0, 100.01, 100.01, 100.3, 102.3):
        dog.check_controller_state(controller_state(stamp=stamp), 0.0)
    with pytest.raises(RobotStateError, match=rf"controller's clock was set by \{step:+.2f} s"):
        dog.check_controller_state(controller_state(stamp=102.3 + step), 0.01)
    dog.begin(0.02)
    dog.check_controller_state(controller_state(stamp=9.0), 0.02)


def test_nan_tracking_error_is_seen():
    with pytest.raises(RobotStateError, match='tracking error of a'):
        watchdog().check_controller_state(controller_state((np.nan, 0.0)), 0.0)


def test_the_joint_that_left_its_tolerance_is_named_by_the_state_that_ended_the_motion():
    tolerance = np.array([0.02, 0.5])
    assert 'no state' in describe_violation([], JOINTS, tolerance, None)
    errors = [(0.019, 0.09), (-0.03, 0.095), *[(0.0, 0.0)] * 60]
    # Then the controller holds what it measured, which the other joint leaves while it brakes.
    states = [controller_state(error) for error in (*errors, (0.01, 0.9))]
    said = describe_violation(states, JOINTS, tolerance, None)
    assert said.endswith('a was 0.03 away from its reference, more than 0.02')
    # The state itself may be lost: what is left is no violation, and is not told as one.
    said = describe_violation(states[:1], JOINTS, tolerance, None)
    assert said.startswith('no state that arrived here is beyond a tolerance')


def test_the_joint_that_did_not_reach_the_end_is_named():
    end = np.array([1.0, 2.0])
    # On the way errors may be larger than the tolerances of the end.
    states = [
        controller_state((0.3, 0.01), reference=point((0.4, 1.0))),
        controller_state((0.01, 0.07), reference=point((1.0, 2.0))),
        controller_state((0.01, 0.06), reference=point((1.0, 2.0))),
        controller_state((0.0, 0.0), reference=point((0.99, 1.94))),
    ]
    said = describe_violation(states, JOINTS, np.full(2, 0.05), end)
    assert said.endswith('b was 0.06 away from its reference, more than 0.05')


def test_the_largest_share_of_a_tolerance_is_named():
    dog = watchdog(tracking=(0.01, 0.5))
    with pytest.raises(
        TrackingError, match=r'a is 0\.03 away from its reference, more than 0\.01'
    ):
        dog.check_controller_state(controller_state((0.03, 0.6)), 0.0)


def test_a_joint_beyond_its_limits_is_named_with_these_limits():
    message = r'position of a is 0\.0306 beyond its limits \[-1, 1\], more than the allowed 0\.02'
    with pytest.raises(RobotStateError, match=message):
        look(watchdog(), joint_state(position=(1.0306, 0.0)))
    look(watchdog(), joint_state(position=(1.0006, 0.0)))


def test_one_tolerance_or_one_per_joint():
    assert expand_per_joint((0.1,), 2, 'x').tolist() == [0.1, 0.1]
    assert expand_per_joint((0.1, 0.2), 2, 'x').tolist() == [0.1, 0.2]
    with pytest.raises(ConfigurationError, match=r'excitation\.tracking_error'):
        watchdog(tracking=(0.1, 0.2, 0.3))


def look_at_speed(dog, factor, since, until):
    for k in range(round(since * 100), round(until * 100)):
        dog.check_controller_state(controller_state(stamp=0.01 * k, speed=factor), 0.01 * k)


def test_a_slow_robot_is_waited_for_but_not_for_ever():
    dog = watchdog()
    look_at_speed(dog, 0.3, 0.0, 8.0)
    look_at_speed(dog, 0.0, 8.0, 8.0 + MAX_PAUSE - 0.1)
    with pytest.raises(RobotStateError, match=r'the speed scaling is 0\.0%: raise it to 10%'):
        look_at_speed(dog, 0.0, 8.0 + MAX_PAUSE - 0.1, 8.0 + MAX_PAUSE + 0.1)


def test_a_robot_faster_than_its_design_is_stopped():
    with pytest.raises(RobotStateError, match='120%: limits were checked for 100 %'):
        look_at_speed(watchdog(), 1.2, 0.0, 0.1)


def test_joints_that_do_not_take_part_must_stand_where_the_model_has_them():
    dog = watchdog(locked={'torso': 0.2, 'wheel': 0.0})
    beside = {'name': ('torso', 'wheel'), 'effort': (), 'velocity': ()}
    # Another publisher's, whole turns, a few hundredths, and what is no number.
    dog.check_locked([joint_state(), joint_state(position=(0.24, 4.0 * np.pi), **beside)])
    dog.check_locked([joint_state(position=(np.nan, np.inf), **beside)])
    with pytest.raises(RobotStateError, match=r'torso stands at 0\.300, .* at 0\.200: .*locked'):
        dog.check_locked([joint_state(position=(0.3, 0.0), **beside), joint_state()])


def test_zeros_of_a_driver_without_sensors_are_no_dead_sensor():
    """At rest measured and commanded may both be 0: the commands tell once the joint moves."""
    dog = watchdog()
    for k in range(60):
        dog.check_controller_state(controller_state(effort=(0.0, 3.0)), 0.01 * k)
        look(dog, joint_state(0.01 * k, (0.0, 0.01 * k)), now=0.01 * k)
    # From then on the commands are watched.
    with pytest.raises(RobotStateError, match='effort of b is 30'):
        for stamp in (0.60, 0.61, 0.62, 0.63):
            dog.check_controller_state(controller_state(stamp=stamp, effort=(0.0, 30.0)), stamp)


def test_a_sensor_that_has_worked_is_dead_when_it_says_zero():
    dog = watchdog()
    look(dog, joint_state(0.0, effort=(0.0, 1.0)))
    with pytest.raises(RobotStateError, match='effort of b stays the same'):
        for k in range(1, 60):
            dog.check_controller_state(controller_state(effort=(0.0, 3.0)), 0.01 * k)
            look(dog, joint_state(0.01 * k, (0.0, 0.01 * k)), now=0.01 * k)


def test_commands_that_are_left_out_are_told_with_the_remedy():
    dog = watchdog(reported=False)
    dog.check_controller_state(controller_state(effort=(1.0, 1.0)), 0.0)
    with pytest.raises(RobotStateError, match=r'no commands any more: .* cleaned up, configured'):
        dog.check_controller_state(controller_state(effort=()), 0.1)


def test_a_velocity_that_lies_is_found_though_commands_are_left_out():
    dog = watchdog()
    dog.check_controller_state(controller_state(), 0.0)
    with pytest.raises(RobotStateError, match=r'velocity of a is .* by the joint states'):
        for k in range(20):
            look(dog, joint_state(0.01 * k, velocity=(50.0, 0.0)), now=0.01 * k)


def streams(effort=(), output='effort', speed=1.0, command=(0.0, 0.0)):
    """Give topics on which joint states and a controller's states arrive."""
    header = SimpleNamespace(stamp=SimpleNamespace(sec=1, nanosec=0))
    names, zeros = list(JOINTS), [0.0, 0.0]
    states = SimpleNamespace(
        header=header, name=names, position=zeros, velocity=zeros, effort=list(effort)
    )
    fields = {'positions': [], 'velocities': [], 'effort': [], output: list(command)}
    controller = SimpleNamespace(
        joint_names=names, output=SimpleNamespace(**fields), speed_scaling_factor=speed
    )
    return (
        SimpleNamespace(topic='joint_states', wait_for_latest=lambda *_: states),
        SimpleNamespace(topic='controller_state', wait_for_latest=lambda *_: controller),
    )


def check_ready(**given):
    limits = SimpleNamespace(
        lower=-np.ones(2), upper=np.ones(2), effort=np.full(2, 10.0), velocity=np.ones(2)
    )
    robot = SimpleNamespace(joints=JOINTS, limits=limits, drive_gain=np.ones(2), locked={})
    return check_states(streams(**given), robot, ExcitationNodeSettings()).effort_reported


@pytest.mark.parametrize('output', ['positions', 'velocities', 'effort'])
@pytest.mark.parametrize('effort', [(), (0.1, 0.2), (np.nan, np.nan)])
def test_torques_are_reported_or_commanded_or_nothing_moves(output, effort):
    reported = bool(effort) and not np.isnan(effort).any()
    if reported or output == 'effort':
        assert check_ready(effort=effort, output=output) == reported
    else:
        with pytest.raises(RobotStateError, match='publishes no commanded efforts'):
            check_ready(effort=effort, output=output)


@pytest.mark.parametrize(
    ('effort', 'output', 'command', 'reported'),
    [
        ((0.0, 0.0), 'effort', (0.0, 3.0), False),
        ((0.0, 1e-9), 'effort', (0.0, 3.0), True),
        ((0.0, np.nan), 'effort', (0.0, 3.0), False),
        # At rest without weight: nothing tells yet.
        ((0.0, 0.0), 'effort', (0.0, 0.0), True),
        ((0.0, 0.0), 'positions', (0.0, 3.0), True),
    ],
)
def test_zeros_beside_commands_are_no_efforts(effort, output, command, reported):
    assert check_ready(effort=effort, output=output, command=command) == reported


# A controller that leaves its factor at 0 may know none.
@pytest.mark.parametrize('speed', [0.0, 0.1, 1.0])
def test_a_session_may_be_slow(speed):
    assert check_ready(effort=(0.1, 0.2), speed=speed)


@pytest.mark.parametrize('speed', [0.03, 1.5])
def test_a_session_is_neither_creeping_nor_faster_than_designed(speed):
    with pytest.raises(RobotStateError, match='the speed scaling is'):
        check_ready(effort=(0.1, 0.2), speed=speed)
