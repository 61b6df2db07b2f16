"""What a robot is set up with can be designed for, held and controlled."""

import dataclasses
import re

import numpy as np
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.settings import Obstacle
from robotid_ros.core.findings import render, select
from robotid_ros.core.model.dynamics import inverse_dynamics, mass_matrix
from robotid_ros.core.setup.robot_setup import (
    BANDWIDTH,
    complete_limits,
    drives_for_gains,
    EFFORT_RESERVE,
    find_start,
    KnownFacts,
    MAX_BANDWIDTH,
    set_up_robot,
    SLOW,
)
from robotid_ros.exceptions import ConfigurationError, TrajectoryError

from .descriptions import chain, description

ROD = '<collision><origin xyz="0 0 0.15"/><geometry><cylinder radius="0.04" length="0.2"/>'
ROD += '</geometry></collision>'
ARM = chain('arm', 'base', 4)
SHAPES = {f'arm_link_{k}': ROD for k in range(1, 5)}


def pedestal(height):
    return (
        f'<collision><origin xyz="0.6 0 {-0.5 * height}"/><geometry>'
        f'<box size="0.2 0.2 {height}"/></geometry></collision>'
    )


@pytest.fixture(scope='module')
def plain():
    """Set up the arm with its shapes once."""
    return set_up_robot(description(ARM, shapes=SHAPES))


def scene(setup):
    return CollisionScene(setup.robot, setup.excitation.workspace)


def test_the_start_is_free_held_and_the_same_each_time(plain):
    setup = plain
    start = np.array(setup.excitation.start)
    assert scene(setup).is_free(start[None])
    still = np.zeros((1, 4))
    held = np.abs(inverse_dynamics(setup.robot, setup.robot.prior, start[None], still, still))
    assert (held <= (1.0 - setup.excitation.margins.effort) * setup.limits.effort).all()
    assert set_up_robot(description(ARM, shapes=SHAPES)).excitation.start == tuple(start)


def test_a_start_leaves_the_middle_where_that_is_not_free():
    # Upright is the middle: a ceiling of the base link is there.
    roof = '<collision><origin xyz="0 0 1.1"/><geometry><box size="0.5 0.5 0.1"/></geometry>'
    shapes = {**SHAPES, 'base': f'{roof}</collision>'}
    setup = set_up_robot(description(ARM, shapes=shapes))
    assert not scene(setup).is_free(np.zeros((1, 4)))
    assert scene(setup).is_free(np.array(setup.excitation.start)[None])


def test_ground_and_self_collision_are_on_and_the_ground_is_below_the_feet(plain):
    flat = plain.excitation.workspace
    assert (flat.ground, flat.self_collision, flat.frame) == (0.0, True, 'arm_tool0')
    standing = {**SHAPES, 'base': pedestal(0.8)}
    high = set_up_robot(description(ARM, shapes=standing)).excitation.workspace
    assert high.ground == pytest.approx(-0.8)
    bolts = {**SHAPES, 'base': pedestal(0.03)}
    assert set_up_robot(description(ARM, shapes=bolts)).excitation.workspace.ground == 0.0


@pytest.mark.parametrize('depth', [0.3, 0.9])
def test_an_arm_that_hangs_has_no_ground(depth):
    """Deep below its root frame in every pose, or in all but those that are not free."""
    feet = '<origin xyz="0 0 0.0"/>'
    text = description(chain('arm', 'base', 5), shapes=SHAPES)
    assert feet in text
    turned = f'<origin xyz="0 0 {-depth}" rpy="{np.pi} 0 0"/>'
    setup = set_up_robot(text.replace(feet, turned, 1))
    assert setup.excitation.workspace.ground is None and 'ground' in setup.unchecked
    assert select(setup.notes, 'arm_hangs')


def test_links_that_always_pass_closely_lessen_the_distance():
    # Two balls beside the second joint are 17.1 mm apart, 20.1 mm where it is at 0.
    balls = {'arm_link_1': (0.24294, 0.01), 'arm_link_3': (-0.297, 0.03)}
    shapes = {
        link: f'<collision><origin xyz="0 0 {z}"/><geometry><sphere radius="{radius}"/>'
        '</geometry></collision>'
        for link, (z, radius) in balls.items()
    }
    setup = set_up_robot(description(ARM, shapes=shapes))
    assert setup.excitation.workspace.distance == 0.01
    assert scene(setup).pairs > 0
    apart = {**shapes, 'arm_link_1': ''}
    assert set_up_robot(description(ARM, shapes=apart)).excitation.workspace.distance == 0.02


def test_shapes_that_overlap_by_their_size_are_left_out_where_nothing_else_is_free():
    # Balls 0.2 m below the second joint, which part where it is bent by 1.7 rad or more: no start
    # is so near to the end of a range.
    balls = {'arm_link_1': (0.1, 0.149), 'arm_link_3': (-0.5, 0.149)}
    shapes = {
        link: f'<collision><origin xyz="0 0 {z}"/><geometry><sphere radius="{radius}"/>'
        '</geometry></collision>'
        for link, (z, radius) in balls.items()
    }
    setup = set_up_robot(description(ARM, shapes=shapes))
    assert setup.excitation.workspace.ignored_pairs == ('arm_link_1/arm_link_3',)
    (pairs,) = select(setup.notes, 'overlapping')
    assert pairs.values['pairs'] == ('arm_link_1/arm_link_3',)


def test_revolute_joints_without_position_limits_have_to_be_accepted():
    """The standard asks for them; joints that turn freely are continuous."""
    inside = dict.fromkeys(('arm_1', 'arm_2'), '<limit velocity="2" effort="60"/>')
    rows = [(name, 'continuous' if name == 'arm_2' else kind, *ends) for name, kind, *ends in ARM]
    found = set_up_robot(description(rows, inside)).unchecked['position_limits']
    assert found.joints == ('arm_1',) and 'robot.lower and robot.upper' in render(found)


def test_joints_that_follow_those_of_the_arm_stand_still_and_are_named():
    """As gas springs beside an arm: the range of one does not hold 0."""
    rows = [*ARM, ('spring', 'prismatic', 'arm_link_1', 'cylinder')]
    follow = '<limit lower="0.1" upper="0.5" velocity="1" effort="1"/><mimic joint="arm_2"/>'
    setup = set_up_robot(description(rows, {'spring': follow}))
    assert setup.arm.joints == tuple(f'arm_{k}' for k in range(1, 5))
    assert setup.locked == {'spring': 0.1} and not setup.robot.followers
    assert select(setup.notes, 'followers_stand_still')[0].joints == ('spring',)


def test_an_arm_that_no_drive_can_hold_is_one_sentence():
    weak = '<limit lower="0.5" upper="1" velocity="2" effort="0.01"/>'
    match = r'limit of arm_2, 0.01 N·m, holds .* in none of .* need more than (\S+) N·m: correct'
    with pytest.raises(TrajectoryError, match=match) as caught:
        set_up_robot(description(ARM, {'arm_2': weak}))
    needed = re.search(match, str(caught.value))
    assert needed is not None
    strong = weak.replace('0.01', str(1.5 * float(needed[1])))
    assert set_up_robot(description(ARM, {'arm_2': strong})).arm.joints[1] == 'arm_2'


def test_an_arm_that_is_never_free_is_one_sentence(plain):
    setup = plain
    around = {'cell': Obstacle(size=(9.0, 9.0, 9.0))}
    workspace = dataclasses.replace(setup.excitation.workspace, obstacles=around)
    settings = dataclasses.replace(setup.excitation, workspace=workspace)
    with pytest.raises(TrajectoryError, match=r'no pose is free of collisions: .* and cell touch'):
        find_start(setup.robot, settings, CollisionScene(setup.robot, workspace))


def test_limits_that_are_lacking_follow_the_rules_that_are_said():
    inside = {
        'arm_2': '<limit lower="-2" upper="2" velocity="0" effort="60"/>',
        'arm_3': '<limit lower="-2" upper="2" velocity="1.5" effort="0"/>',
        'arm_4': '<limit lower="-2" upper="2" velocity="3" effort="60"/>',
    }
    names = tuple(f'arm_{k}' for k in range(1, 5))
    setup = set_up_robot(description(ARM, inside), joints=names)
    assert setup.limits.velocity.tolist() == [2.0, 1.5, 1.5, 3.0]
    assert setup.limits.acceleration.tolist() == [4.0, 3.0, 3.0, 6.0]
    assert set(setup.rules) == {'velocity', 'acceleration', 'effort'}
    assert 'limit of arm_2: that of the slowest' in setup.rules['velocity']
    limits, _, effort, _ = complete_limits(setup.robot, setup.excitation)
    assert limits.effort.tolist()[::3] == [60.0, 60.0]
    assert limits.effort[2] == pytest.approx(EFFORT_RESERVE * effort[2])
    bare = {name: '<limit lower="-2" upper="2" velocity="0" effort="0"/>' for name in names}
    everything = set_up_robot(description(ARM, bare), joints=names)
    assert everything.limits.velocity.tolist() == [SLOW] * 4


def test_the_effort_limit_of_a_light_last_link_leaves_room_for_its_gear():
    none = '<limit lower="-2" upper="2" velocity="0" effort="0"/>'
    names = tuple(f'arm_{k}' for k in range(1, 5))
    before, last, after = description(ARM, dict.fromkeys(names, none)).partition('arm_link_4">')
    links, joint, joints = after.partition('<joint')
    light = re.sub('"(1.0|0.02|0.01)"', '"1e-5"', links)
    setup = set_up_robot(''.join((before, last, light, joint, joints)), joints=names)
    needed = setup.drives.coulomb + setup.drives.viscous * setup.limits.velocity
    assert (setup.limits.effort > 2.0 * needed).all()


def test_limits_that_no_robot_has_are_lacking_ones():
    ends, none = 'lower="-2" upper="2"', 'velocity="0" effort="0"'
    names = tuple(f'arm_{k}' for k in range(1, 5))

    def of(second, third):
        inside = {'arm_2': f'<limit {second}/>', 'arm_3': f'<limit {third}/>'}
        return set_up_robot(description(ARM, inside), joints=names)

    huge = of(f'{ends} velocity="10000" effort="1e9"', f'lower="-1e6" upper="1e6" {none}')
    below = of(f'{ends} velocity="-1" effort="-1"', none.replace('0', '-1'))
    lacking = of(f'{ends} {none}', none)
    assert 'arm_2' in huge.rules['velocity'] and np.isinf(huge.limits.lower[2])
    for found in (huge, below):
        assert found.rules == lacking.rules and found.excitation == lacking.excitation
        assert found.robot.limits.effort[1] == np.inf
        for name in ('rotor_inertia', 'coulomb', 'p'):
            assert np.array_equal(getattr(found.drives, name), getattr(lacking.drives, name))


def test_a_joint_that_slides_without_position_limits_is_one_sentence():
    rows = [(name, 'prismatic' if name == 'arm_2' else kind, *ends) for name, kind, *ends in ARM]
    slide = {'arm_2': '<limit velocity="1" effort="60"/>'}
    with pytest.raises(ConfigurationError, match='arm_2 slides and has no position limits'):
        set_up_robot(description(rows, slide))


def test_loops_of_the_simulated_robot_are_stiff_and_slow_enough():
    setup = set_up_robot(description(ARM), facts=KnownFacts(update_rate=500.0))
    drives, error = setup.drives, setup.tracking_error
    *_, inertia = complete_limits(setup.robot, setup.excitation)
    total = inertia + drives.rotor_inertia
    omega = drives.d / (2.0 * total)
    np.testing.assert_allclose(drives.p, total * omega**2)
    assert (omega >= 500.0 * BANDWIDTH * (1 - 1e-9)).all()
    assert (omega <= 500.0 * MAX_BANDWIDTH * (1 + 1e-9)).all()
    poses = np.random.default_rng(1).uniform(-2.0, 2.0, (50, 4))
    still = np.zeros_like(poses)
    gravity = np.abs(inverse_dynamics(setup.robot, setup.robot.prior, poses, still, still))
    assert (gravity.max(axis=0) / drives.p < 0.1 * error).all()
    assert (drives.coulomb / drives.p <= 0.01 * error * (1 + 1e-9)).all()
    moved = [np.diag(mass_matrix(setup.robot, setup.robot.prior, q)) for q in poses]
    assert (drives.rotor_inertia > 0.2 * np.max(moved, axis=0)).all()


def test_an_effort_margin_leaves_room_for_what_the_model_lacks():
    setup = set_up_robot(description(ARM))
    drives, limits = setup.drives, setup.limits
    lacking = drives.coulomb + drives.viscous * limits.velocity
    lacking = lacking + drives.rotor_inertia * limits.acceleration
    assert (lacking < setup.excitation.margins.effort * limits.effort).all()


def test_known_facts_take_precedence_and_others_stand_where_they_can():
    inside = {'lift': '<limit lower="0.2" upper="0.5" velocity="1" effort="900"/>'}
    rows = [('lift', 'prismatic', 'base', 'column'), *chain('arm', 'column', 3)]
    rows += chain('other', 'column', 3)
    facts = KnownFacts(joints=('other_1', 'other_2'), effort_kind='without_gravity')
    setup = set_up_robot(description(rows, inside), facts=facts)
    assert setup.arm.joints == ('other_1', 'other_2')
    assert setup.locked == {'lift': 0.2}
    assert setup.facts.effort_kind == 'without_gravity'
    lifted = set_up_robot(description(rows, inside), joints=('lift', 'arm_1', 'arm_2', 'arm_3'))
    assert lifted.tracking_error.tolist() == [0.02, 0.1, 0.1, 0.1]
    assert dataclasses.astuple(lifted.limits)[0][0] == 0.2


def test_rotors_are_guessed_from_gains_that_damp_critically(plain):
    setup = plain
    robot, settings = setup.robot, setup.excitation
    p = np.array([9000.0, 6000.0, 0.0, 10.0])
    d = np.array([1200.0, 900.0, 0.0, 0.1])
    drives = drives_for_gains(robot, settings, (p, d), 500.0, setup.tracking_error)
    *_, inertia = complete_limits(robot, settings)
    total = drives.rotor_inertia + inertia
    # ζ = d / (2 sqrt(p J)), where the gains tell of more than the link.
    np.testing.assert_allclose(d[:2] / (2.0 * np.sqrt(p[:2] * total[:2])), 1.0, rtol=1e-12)
    assert (drives.rotor_inertia > 0.0).all()
    assert (drives.p == p).all() and (drives.d == d).all()
