"""What breaks the assumptions is told, with the joint; clean recordings raise nothing."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.diagnostics.data_warnings import data_warnings
from robotid_ros.core.diagnostics.plausibility import scale_warnings
from robotid_ros.core.diagnostics.remedies import GRAVITY
from robotid_ros.core.findings import CODES, NAMES, render, select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording, SignalSettings

from ..conftest import motion, RATE

SECONDS, NOISE = 30.0, 0.02
SETTINGS = IdentificationSettings(method='wls', model='plain', signals=SignalSettings(cutoff=8.0))
TIME = np.arange(round(SECONDS * RATE)) / RATE
LATE = TIME >= SECONDS / 2.0


@pytest.fixture(scope='module')
def parts(robot, truth):
    """Return motion, torque of links and rotors, and friction, (N, 3) each."""
    q, dq, ddq = motion(TIME, seed=1)
    frictionless = truth.copy()
    for k, parameter in enumerate(robot.parameters):
        if parameter.symbol.startswith('F'):
            frictionless[k] = 0.0
    rigid = inverse_dynamics(robot, frictionless, q, dq, ddq)
    return q, dq, rigid, inverse_dynamics(robot, truth, q, dq, ddq) - rigid


@pytest.fixture(scope='module')
def warnings(robot):
    """Return what is said of a torque (N, 3)."""

    def of(q, tau, robot=robot):
        base = base_parameters(robot)
        noise = NOISE * tau.std(axis=0) * np.random.default_rng(7).normal(size=tau.shape)
        recording = Recording(robot.joints, TIME, q, tau + noise)
        found = estimate_base_parameters(recording, robot, base, SETTINGS, lambda _: None)
        return data_warnings(robot, base, found.samples, found.sampled_systems, found.estimate)

    return of


def along(joint, factor):
    """Return factors (N, 3) that are one but for a joint."""
    result = np.ones((len(TIME), 3))
    result[:, joint] = factor
    return result


def names(found, joint):
    """Tell whether any finding is about a joint."""
    return any(joint in each.joints for each in found)


def in_the_middle(since):
    """Tell whether a change was found where it is, within a block."""
    return abs(since - SECONDS / 2.0) < 1.0


def test_clean_recordings_raise_nothing(parts, warnings):
    q, _, rigid, friction = parts
    assert warnings(q, rigid + friction) == []


@pytest.mark.parametrize('joint', range(3))
def test_friction_that_drops_is_told_with_its_time(parts, warnings, robot, joint):
    q, _, rigid, friction = parts
    found = warnings(q, rigid + friction * along(joint, np.where(LATE, 0.6, 1.0)))
    (change,) = found
    assert select(found, 'friction_changed') and change.joints == (robot.joints[joint],)
    (share,), (since,) = change.values['shares'], change.values['since']
    assert -0.5 < share < -0.3 and in_the_middle(since)


def test_chunks_tell_it_as_well(parts, robot):
    q, _, rigid, friction = parts
    tau = rigid + friction * along(2, np.where(LATE, 0.6, 1.0))
    halves = [Recording(robot.joints, TIME[part], q[part], tau[part]) for part in (~LATE, LATE)]
    found = identify(halves, robot, dataclasses.replace(SETTINGS, essential=False))
    (change,) = select(found.findings, 'friction_changed')
    assert change.joints == ('j3',) and in_the_middle(*change.values['since'])


def test_a_joint_that_warms_up_drifts(parts, warnings):
    q, _, rigid, friction = parts
    found = warnings(q, rigid + friction * along(0, 1.0 - 0.2 * TIME / SECONDS))
    (change,) = found
    assert select(found, 'friction_changed') and change.joints == ('j1',)
    assert change.values['drifts'][0] < 0.0


@pytest.mark.parametrize('joint', range(3))
def test_a_zero_that_moves_is_told_of_its_joint(parts, warnings, robot, joint):
    q, _, rigid, friction = parts
    tau = rigid + friction
    tau[:, joint] += 0.5 * tau[:, joint].std() * LATE
    found = warnings(q, tau)
    (change,) = select(found, 'offset_changed')
    assert change.joints == (robot.joints[joint],) and in_the_middle(change.values['since'][0])


def test_an_effort_that_is_scaled_in_the_middle_is_told(parts, warnings):
    q, _, rigid, friction = parts
    found = warnings(q, (rigid + friction) * along(1, np.where(LATE, 1.3, 1.0)))
    (change,) = select(found, 'effort_changed')
    assert change.joints == ('j2',) and change.values['shares'][0] > 0.0
    assert not names(found, 'j1') and not names(found, 'j3')


def test_a_payload_is_told_as_a_load_with_its_time(parts, warnings, robot, truth):
    q, dq, rigid, friction = parts
    loaded = truth.copy()
    mass, at = 0.8, np.array([0.3, 0.0, 0.05])
    inertia = mass * (at @ at * np.eye(3) - np.outer(at, at))
    first = robot.first_columns[-1]
    loaded[first : first + 10] += [*inertia[np.triu_indices(3)], *(mass * at), mass]
    ddq = motion(TIME, seed=1)[2]
    with_body = inverse_dynamics(robot, loaded, q, dq, ddq)
    found = warnings(q, np.where(LATE[:, None], with_body, rigid + friction))
    (change,) = select(found, 'load_changed')
    assert in_the_middle(change.values['since'][0]) and 'j2' in change.joints


def test_a_wrong_unit_of_a_vertical_axis_is_told(parts, warnings):
    q, _, rigid, friction = parts
    found = warnings(q, (rigid + friction) * along(0, 1000.0))
    assert names(found, 'j1') and not any(names(found, joint) for joint in ('j2', 'j3'))


@pytest.mark.parametrize(
    ('limit', 'name'), [(100.0, 'beyond_effort_limit'), (np.inf, 'implausible_inertia')]
)
def test_an_absurd_scale_is_told_by_limits_and_by_inertias(parts, robot, limit, name):
    q, _, rigid, friction = parts
    limits = dataclasses.replace(robot.limits, effort=np.full(3, limit))
    robot = dataclasses.replace(robot, limits=limits)
    base = base_parameters(robot)
    recording = Recording(robot.joints, TIME, q, (rigid + friction) * along(0, 1000.0))
    found = estimate_base_parameters(recording, robot, base, SETTINGS, lambda _: None)
    (found,) = select(scale_warnings(robot, base, found.samples, found.estimate), name)
    assert found.joints == ('j1',)


def test_times_in_another_unit_are_told_by_inertias(parts, robot):
    q, _, rigid, friction = parts
    base = base_parameters(robot)
    # So slow that no joint counts as moving.
    recording = Recording(robot.joints, 3600.0 * TIME, q, rigid + friction)
    settings = dataclasses.replace(
        SETTINGS, signals=dataclasses.replace(SETTINGS.signals, rows='every')
    )
    found = estimate_base_parameters(recording, robot, base, settings, lambda _: None)
    assert not found.samples.moving.any()
    told = scale_warnings(robot, base, found.samples, found.estimate)
    assert [each.joints for each in select(told, 'implausible_inertia')] == [robot.joints]


# Where more is cut, either end is judged without the other.
@pytest.mark.parametrize('share', [0.6, 0.3])
def test_noisy_saturation_is_told(parts, warnings, share):
    q, _, rigid, friction = parts
    tau = rigid + friction
    limit = share * np.abs(tau[:, 1]).max()
    tau[:, 1] = np.clip(tau[:, 1], -limit, limit)
    (found,) = select(warnings(q, tau), 'effort_saturation')
    assert found.joints == ('j2',) and abs(found.values['limit'] / limit - 1.0) < 0.1


def test_friction_plateaus_are_no_saturation(parts, warnings):
    q, _, rigid, friction = parts
    assert warnings(q, rigid + 5.0 * friction) == []


def test_a_coupling_is_told_with_both_joints(parts, warnings):
    q, dq, rigid, friction = parts
    tau = rigid + friction
    tau[:, 2] += 0.5 * tau[:, 2].std() * np.sign(dq[:, 0])
    found = warnings(q, tau)
    told = select(found, 'unexplained_coupling')
    assert ('j3', 'j1') in [(*each.joints, each.values['other']) for each in told]


def test_a_spring_is_told(parts, warnings):
    q, _, rigid, friction = parts
    tau = rigid + friction
    tau[:, 0] += tau[:, 0].std() * (q[:, 0] - q[:, 0].mean()) / q[:, 0].std()
    found = warnings(q, tau)
    assert ('j1',) in [each.joints for each in select(found, 'unexplained_spring')]


def test_efforts_that_are_smoothed_without_a_delay_are_told(parts, warnings):
    q, _, rigid, friction = parts
    box = np.ones(round(0.8 / (TIME[1] - TIME[0])))
    smooth = [np.convolve(x, box / len(box), 'same') for x in (rigid + 3.0 * friction).T]
    assert select(warnings(q, np.transpose(smooth)), 'unexplained_smoothing')


def test_a_contact_is_told_with_its_time_and_how_to_leave_it_out(parts, warnings):
    q, _, rigid, friction = parts
    tau = rigid + friction
    assert warnings(q, tau) == []
    pushed = (TIME > 12.0) & (TIME < 14.0)
    tau[pushed, 0] += 3.0 * tau[:, 0].std() * np.sin(np.pi * (TIME[pushed] - 12.0) / 2.0)
    (found,) = select(warnings(q, tau), 'unexplained_span')
    assert found.joints == ('j1',)
    assert 12.0 < found.values['start'] < 12.6 and 13.4 < found.values['stop'] < 14.0
    assert found.values['after'] < 0.25 * found.values['before']
    assert f'--from {found.values["stop"]:.2f} (tried' in render(found)


def stops(parts, j=1):
    """Return q and τ of a motion whose joint j is recorded at one place from the middle on."""
    q, _, rigid, friction = parts
    still, late = q.copy(), TIME >= TIME[-1] / 2.0
    still[late, j] = q[late][0, j]
    return still, rigid + friction, late


@pytest.mark.parametrize('held', [False, True])
def test_a_position_that_freezes_or_is_held_is_told_with_its_time(parts, warnings, held):
    q, tau, late = stops(parts)
    if held:
        tau[late, 1] = 0.0
    (found,) = warnings(q, tau)
    assert CODES[found.code].name == 'standstill_contradicted' and found.joints == ('j2',)
    assert found.values['start'] == pytest.approx(TIME[-1] / 2.0, abs=0.3)
    text = render(found)
    assert f'--to {found.values["start"]:.1f}' in text and '--from' not in text


def test_a_joint_that_stands_still_is_not_told_whatever_its_friction(
    parts, robot, truth, warnings
):
    q, _, late = stops(parts)
    q[:, 1] = np.convolve(np.pad(q[:, 1], 100, 'edge'), np.hanning(201) / 100.0, 'valid')
    dq, ddq = (np.gradient(x, TIME, axis=0) for x in (q, np.gradient(q, TIME, axis=0)))
    tau = inverse_dynamics(robot, truth, q, dq, ddq)
    assert warnings(q, tau) == []
    tau[late & (np.abs(dq[:, 1]) < 1e-6), 1] += 1.2 * truth[robot.column('Fc2')]
    assert select(warnings(q, tau), 'standstill_contradicted', 'unexplained_span') == []


@pytest.mark.parametrize(('step', 'name'), [(6e-3, 'unexplained_steps'), (1e-5, None)])
def test_steps_of_the_position_are_told_from_friction(robot, truth, step, name):
    """Of a slow motion that Coulomb friction rules, in steps of an encoder."""
    slow, chi = 0.1, truth.copy()
    chi[[robot.column(f'Fc{j}') for j in (1, 2, 3)]] = 8.0
    q, dq, ddq = (slow * x for x in motion(TIME, seed=1))
    settings = dataclasses.replace(SETTINGS, signals=SignalSettings(cutoff=5.0, rows='every'))
    recording = Recording(
        robot.joints, TIME, np.round(q / step) * step, inverse_dynamics(robot, chi, q, dq, ddq)
    )
    base = base_parameters(robot)
    found = estimate_base_parameters(recording, robot, base, settings, lambda _: None)
    given = found.samples, found.sampled_systems, found.estimate
    told = data_warnings(robot, base, *given)
    assert bool(told) == bool(name)
    assert all(each.code == NAMES['unexplained_steps'].code for each in told)
    assert all(each.values['speed'] == pytest.approx(5.0 * step) for each in told)


def test_a_residual_that_is_noise_is_not_told(parts, robot):
    q, _, rigid, friction = parts
    tau = rigid + friction
    tau = tau + 1.0 * tau.std(axis=0) * np.random.default_rng(3).normal(size=tau.shape)
    base = base_parameters(robot)
    recording = Recording(robot.joints, TIME, q, tau)
    found = estimate_base_parameters(recording, robot, base, SETTINGS, lambda _: None)
    assert found.estimate.residual.max() > 0.1
    arguments = found.samples, found.sampled_systems, found.estimate
    assert data_warnings(robot, base, *arguments) == []


@pytest.mark.parametrize(
    'gravity', [(6.94, 0.0, -6.94), (0.0, 3.36, -9.22), (0.0, -9.81, 0.0), (0.0, 0.0, 9.81)]
)
def test_a_robot_on_a_slope_is_told_with_its_gravity(parts, warnings, robot, truth, gravity):
    q, dq, *_ = parts
    mounted = dataclasses.replace(robot, model=robot.model.copy())
    mounted.model.gravity.linear = np.array(gravity)
    ddq = motion(TIME, seed=1)[2]
    found = warnings(q, inverse_dynamics(mounted, truth, q, dq, ddq))
    (told,) = [np.array(each.values['direction']) for each in select(found, GRAVITY)]
    angle = np.arccos(told @ gravity / np.linalg.norm(told) / np.linalg.norm(gravity))
    assert np.degrees(angle) < 1.0


def test_efforts_without_their_sign_are_told(parts, warnings, robot):
    q, _, rigid, friction = parts
    found = warnings(q, np.abs(rigid + friction))
    (told,) = select(found, 'effort_magnitudes')
    # Signs and gains of such efforts say nothing.
    assert told.joints == robot.joints and not select(found, 'effort_sign', 'effort_gain')
    for whole in (rigid + friction, 2.0 * np.abs(rigid).max() + np.abs(rigid + friction)):
        assert not select(warnings(q, whole), 'effort_magnitudes')


@pytest.mark.parametrize('share', [1.0, 10.0])
def test_magnitudes_that_friction_keeps_from_zero_are_told(parts, warnings, robot, share):
    q, _, rigid, friction = parts
    whole = rigid + share * friction
    (told,) = select(warnings(q, np.abs(whole)), 'effort_magnitudes')
    assert told.joints == robot.joints
    for j, joint in enumerate(robot.joints):  # of one drive alone
        effort = np.where(np.arange(robot.n) == j, np.abs(whole), whole)
        (told,) = select(warnings(q, effort), 'effort_magnitudes')
        assert told.joints == (joint,)
    assert not select(warnings(q, whole), 'effort_magnitudes')


@pytest.mark.parametrize('gravity', [(-9.81, 0.0, 0.0), (0.0, 0.0, 0.0)])
def test_a_wall_is_told_where_gravity_seemed_to_be_compensated(
    parts, warnings, robot, truth, gravity
):
    q, dq, *_ = parts
    mounted, weightless = (dataclasses.replace(robot, model=robot.model.copy()) for _ in range(2))
    mounted.model.gravity.linear, weightless.model.gravity.linear = np.array(gravity), np.zeros(3)
    ddq = motion(TIME, seed=1)[2]
    found = warnings(q, inverse_dynamics(mounted, truth, q, dq, ddq), weightless)
    told = [each.values['direction'] for each in select(found, GRAVITY)]
    assert told == [gravity] * any(gravity)
