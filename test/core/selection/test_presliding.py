"""Friction that remembers its path: against elements of another simulation, chosen and right."""

import numpy as np
from plant_recording import JOINTS, URDF
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, regressor, RobotSettings
from robotid_ros.core.model.friction import TERMS
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording

RATE, SECONDS = 200.0, 30.0
DISTANCE, LEVEL, DAMPING = 0.006, (2.0, 3.0, 1.5), (0.5, 0.8, 0.4)
PLAIN = ('viscous', 'coulomb', 'offset')


def slipping_spring(q, distance):
    """Integrate a spring that slips beyond a deflection, one small step after the other."""
    deflection, result = 0.0, []
    for step in np.diff(q, prepend=q[0]):
        deflection += step
        if abs(deflection) > distance:
            deflection = distance * np.sign(deflection)
        result.append(deflection / distance)
    return np.array(result)


def motion():
    """Return time and the motion of three joints that turn round often, with rests between."""
    time = np.arange(round(RATE * SECONDS)) / RATE
    rng = np.random.default_rng(4)
    w = 2.0 * np.pi * np.array([0.1, 0.3, 0.7, 1.1])
    a, b = rng.uniform(-0.5, 0.5, (2, 4, 3)) / np.arange(1, 5)[:, None]
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    return time, s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


def recorded(distance=DISTANCE):
    """Record an arm whose friction is slipping springs; those of distance 0 are Coulomb's."""
    bare = build_robot(URDF, RobotSettings(joints=JOINTS, friction={'default': ()}))
    time, q, dq, ddq = motion()
    tau = inverse_dynamics(bare, bare.prior, q, dq, ddq) + dq * DAMPING
    for j, level in enumerate(LEVEL):
        sign = slipping_spring(q[:, j], distance) if distance else np.sign(dq[:, j])
        tau[:, j] += level * sign
    tau += 0.02 * np.random.default_rng(5).normal(size=tau.shape)
    return Recording(JOINTS, time, q, tau)


def truth(robot):
    values = {f'Fc{j}': value for j, value in enumerate(LEVEL, start=1)}
    values |= {f'Fv{j}': value for j, value in enumerate(DAMPING, start=1)}
    return values | {f'off{j + 1}': 0.0 for j in range(robot.n)}


@pytest.mark.parametrize('distance', [0.001, 0.02, 0.3])
def test_the_column_is_a_spring_that_slips(distance):
    _, q, dq, _ = motion()
    q = np.concatenate([q[:, 0], q[-1:, 0].repeat(50), q[::-1, 0]])
    dq = np.gradient(q)
    constants = {'presliding_distance': distance}
    (column,) = TERMS['presliding'].of_path(q, dq, constants)
    # Twice the distance away from where it began, a spring has forgotten that.
    known = np.arange(q.size) >= np.argmax(np.abs(q - q[0]) > 2.0 * distance)
    assert known.mean() > 0.9
    np.testing.assert_allclose(column[known], slipping_spring(q, distance)[known], atol=1e-9)


def test_presliding_is_chosen_and_right_as_is_all_else():
    result = identify(
        recorded(),
        build_robot(URDF, RobotSettings(joints=JOINTS)),
        IdentificationSettings(essential=False),
    )
    for terms in result.robot.friction:
        (own,) = [term for term in terms if term.name == 'presliding']
        assert own.constants['presliding_distance'] == pytest.approx(DISTANCE, rel=0.1)
    known, base = truth(result.robot), result.base
    for name, value, sigma in zip(
        base.names, result.estimate.value, result.estimate.sigma, strict=True
    ):
        if name in known:
            assert abs(value - known[name]) <= 3.0 * sigma, name
    assert result.fitted.total_residual() < 0.5 * result.selection.plain_residual


def test_coulomb_friction_stays_coulomb():
    result = identify(
        recorded(0.0),
        build_robot(URDF, RobotSettings(joints=JOINTS)),
        IdentificationSettings(essential=False),
    )
    assert [tuple(term.name for term in terms) for terms in result.robot.friction] == [PLAIN] * 3


def test_the_path_counts_where_samples_are_successive_only():
    settings = RobotSettings(
        joints=JOINTS,
        friction={'default': ('viscous', 'presliding')},
        friction_constants={'default': {'presliding_distance': DISTANCE}},
    )
    robot = build_robot(URDF, settings)
    _, q, dq, ddq = motion()
    chi = robot.prior.copy()
    chi[[robot.column(f'Fc{j}') for j in (1, 2, 3)]] = LEVEL
    W = regressor(robot, q, dq, ddq, successive=True)
    tau = inverse_dynamics(robot, chi, q, dq, ddq, successive=True)
    np.testing.assert_allclose((W @ chi).T, tau, atol=1e-8)
    forgotten = inverse_dynamics(robot, chi, q, dq, ddq)
    for j, level in enumerate(LEVEL):
        difference = level * (slipping_spring(q[:, j], DISTANCE) - np.sign(dq[:, j]))
        found = (tau - forgotten)[:, j]
        np.testing.assert_allclose(found[200:], difference[200:], atol=1e-8)
