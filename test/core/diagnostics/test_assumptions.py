"""What breaks the assumptions is told, with the joint; clean recordings raise nothing."""

import ast
import dataclasses
import re

import numpy as np
import pytest

from robotid_ros.core.diagnostics.assumptions import data_warnings
from robotid_ros.core.diagnostics.effort_scale import scale_warnings
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.signals.samples import SignalSettings

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
    base = base_parameters(robot)

    def of(q, tau):
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


def names(texts, joint):
    """Tell whether any sentence names a joint."""
    return any(re.search(rf'\b{joint}\b', text) for text in texts)


def since(text):
    """Tell whether a change was found where it is, within a block."""
    return abs(float(text.split('from ')[1].split(' ')[0]) - SECONDS / 2.0) < 1.0


def test_clean_recordings_raise_nothing(parts, warnings):
    q, _, rigid, friction = parts
    assert warnings(q, rigid + friction) == []


@pytest.mark.parametrize('joint', range(3))
def test_friction_that_drops_is_told_with_its_time(parts, warnings, robot, joint):
    q, _, rigid, friction = parts
    found = warnings(q, rigid + friction * along(joint, np.where(LATE, 0.6, 1.0)))
    assert len(found) == 1 and 'friction changed' in found[0]
    assert f'{robot.joints[joint]} -' in found[0] and since(found[0])
    change = float(found[0].split(f'{robot.joints[joint]} ')[1].split(' ')[0])
    assert -50.0 < change < -30.0


def test_chunks_tell_it_as_well(parts, robot):
    q, _, rigid, friction = parts
    tau = rigid + friction * along(2, np.where(LATE, 0.6, 1.0))
    halves = [Recording(robot.joints, TIME[part], q[part], tau[part]) for part in (~LATE, LATE)]
    found = identify(halves, robot, dataclasses.replace(SETTINGS, essential=False))
    assert any('friction changed: j3 -' in text and since(text) for text in found.warnings)


def test_a_joint_that_warms_up_drifts(parts, warnings):
    q, _, rigid, friction = parts
    found = warnings(q, rigid + friction * along(0, 1.0 - 0.2 * TIME / SECONDS))
    assert len(found) == 1 and 'friction changed: j1 -' in found[0] and 'gradually' in found[0]


def test_an_effort_that_is_scaled_in_the_middle_is_told(parts, warnings):
    q, _, rigid, friction = parts
    found = warnings(q, (rigid + friction) * along(1, np.where(LATE, 1.3, 1.0)))
    assert any('scale of efforts changed: j2 +' in text for text in found)
    assert not any(joint in text for text in found for joint in ('j1', 'j3'))


def test_a_payload_is_told_with_its_mass(parts, warnings, robot, truth):
    q, dq, rigid, friction = parts
    loaded = truth.copy()
    mass, at = 0.8, np.array([0.3, 0.0, 0.05])
    inertia = mass * (at @ at * np.eye(3) - np.outer(at, at))
    first = robot.first_columns[-1]
    loaded[first : first + 10] += [*inertia[np.triu_indices(3)], *(mass * at), mass]
    ddq = motion(TIME, seed=1)[2]
    with_body = inverse_dynamics(robot, loaded, q, dq, ddq)
    found = warnings(q, np.where(LATE[:, None], with_body, rigid + friction))
    assert len(found) == 1 and 'last link carries another load' in found[0]
    assert since(found[0])


def test_a_wrong_unit_of_a_vertical_axis_is_told(parts, warnings):
    q, _, rigid, friction = parts
    found = warnings(q, (rigid + friction) * along(0, 1000.0))
    assert names(found, 'j1') and not any(names(found, joint) for joint in ('j2', 'j3'))


@pytest.mark.parametrize(('limit', 'words'), [(100.0, 'effort limits'), (np.inf, 'inertias')])
def test_an_absurd_scale_is_told_by_limits_and_by_inertias(parts, robot, limit, words):
    q, _, rigid, friction = parts
    limits = dataclasses.replace(robot.limits, effort=np.full(3, limit))
    robot = dataclasses.replace(robot, limits=limits)
    base = base_parameters(robot)
    recording = Recording(robot.joints, TIME, q, (rigid + friction) * along(0, 1000.0))
    found = estimate_base_parameters(recording, robot, base, SETTINGS, lambda _: None)
    (text, joints), *others = scale_warnings(robot, base, found.samples, found.estimate).items()
    assert words in text and joints == ['j1'] and not others


def test_noisy_saturation_is_told(parts, warnings):
    q, _, rigid, friction = parts
    tau = rigid + friction
    limit = 0.6 * np.abs(tau[:, 1]).max()
    tau[:, 1] = np.clip(tau[:, 1], -limit, limit)
    found = warnings(q, tau)
    assert any('effort of j2 seems to saturate' in text for text in found)


def test_friction_plateaus_are_no_saturation(parts, warnings):
    q, _, rigid, friction = parts
    assert warnings(q, rigid + 5.0 * friction) == []


def test_a_coupling_is_told_with_both_joints(parts, warnings):
    q, dq, rigid, friction = parts
    tau = rigid + friction
    tau[:, 2] += 0.5 * tau[:, 2].std() * np.sign(dq[:, 0])
    found = warnings(q, tau)
    assert any('effort of j3' in text and 'acceleration of j1' in text for text in found)


def test_a_spring_is_told(parts, warnings):
    q, _, rigid, friction = parts
    tau = rigid + friction
    tau[:, 0] += tau[:, 0].std() * (q[:, 0] - q[:, 0].mean()) / q[:, 0].std()
    found = warnings(q, tau)
    told = [text for text in found if 'effort of j1' in text and 'its own position' in text]
    assert told and 'see spring in robot.friction' in told[0]


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
    (text,) = [text for text in found if text.startswith('gravity along')]
    told = np.array(ast.literal_eval(text[text.index('[') : text.index(']') + 1]))
    angle = np.arccos(told @ gravity / np.linalg.norm(told) / np.linalg.norm(gravity))
    assert np.degrees(angle) < 1.0
