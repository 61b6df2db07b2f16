"""Kinds of friction: entries of `FRICTION_TERMS`, which all that depends on a kind reads."""

from itertools import pairwise

import numpy as np
import pytest

from robotid_ros.core.excitation.observation_matrix import ObservationModel
from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.friction import (
    FRICTION_TERMS,
    makkar,
    maxwell_slip,
    ripple,
    stiction,
    stribeck,
)
from robotid_ros.core.parameters.plain_friction import plain_friction
from robotid_ros.core.replay.simulation import direct_model, slip_columns

from ..conftest import motion, URDF


def robot_with(*terms, **constants):
    settings = RobotSettings(
        friction={'default': terms}, friction_constants={'default': constants}
    )
    return build_robot(URDF, settings)


def with_friction_values(robot, **values):
    symbols = [parameter.symbol for parameter in robot.parameters]
    return np.array([values.get(s, v) for s, v in zip(symbols, robot.prior, strict=True)])


@pytest.fixture
def kinds(monkeypatch):
    """Add a copy of each dry kind by another name."""
    for name in ('coulomb', 'asymmetric_coulomb'):
        monkeypatch.setitem(FRICTION_TERMS, f'other_{name}', FRICTION_TERMS[name])


@pytest.mark.parametrize('name', ['coulomb', 'asymmetric_coulomb'])
def test_a_new_dry_kind_holds_joints_and_is_smoothed_as_its_like(kinds, name):
    values = {'Fv': 0.5, 'Fc': 2.0, 'Fcp': 2.0, 'Fcm': 1.0}
    ours, other = robot_with('viscous', name), robot_with('viscous', f'other_{name}')
    one, two = (direct_model(r, with_friction_values(r, **values)) for r in (ours, other))
    for field in ('damping', 'offset', 'slip_directions', 'coulomb'):
        np.testing.assert_array_equal(getattr(two, field), getattr(one, field))
    assert two.smooth_friction is None and one.coulomb.all()
    slip = np.random.default_rng(0).uniform(-1.0, 1.0, (5, ours.n))
    pairs = zip(slip_columns(ours, slip), slip_columns(other, slip), strict=True)
    assert all(a == b and np.array_equal(x, y) for (*a, x), (*b, y) in pairs)
    steep, state = np.full(ours.n, 20.0), Motion(*motion(np.arange(20) / 20.0, 0))
    first, second = (ObservationModel(r, steep).matrix(state) for r in (ours, other))
    np.testing.assert_array_equal(first, second)


def test_what_is_a_spring_is_no_friction(kinds, monkeypatch):
    monkeypatch.setitem(FRICTION_TERMS, 'other_spring', FRICTION_TERMS['spring'])
    robot = robot_with('viscous', 'other_spring')
    plain = plain_friction(robot, with_friction_values(robot, Fv=0.5, Kq=30.0))
    assert all(each.exact and each.viscous == 0.5 for each in plain.values())


SPEED = np.concatenate([np.geomspace(1e-4, 5.0, 40), [1e3]])
STICTION = {'stiction_steepness': 1000.0, 'stribeck_slope': 20.0}
STRIBECK = {'stribeck_velocity': 0.1}
MAKKAR = {'makkar_gamma2': 100.0, 'makkar_gamma3': 10.0, 'makkar_gamma5': 50.0}


@pytest.mark.parametrize(
    ('shape', 'constants'), [(stiction, STICTION), (stribeck, STRIBECK), (makkar, MAKKAR)]
)
def test_friction_turns_round_with_the_motion(shape, constants):
    for forth, back in zip(shape(SPEED, constants), shape(-SPEED, constants), strict=True):
        np.testing.assert_array_equal(back, -forth)
        assert np.all(forth >= 0.0)  # against the motion


def test_stiction_is_whole_at_speed_and_half_where_its_steepness_says():
    fast, slow = stiction(np.array([1e6]), STICTION), stiction(np.array([1e-3, 0.05]), STICTION)
    np.testing.assert_allclose(fast, 1.0, atol=1e-4)
    assert slow[0][0] == pytest.approx(0.5) and slow[1][1] == pytest.approx(0.5)


def test_the_stribeck_effect_is_gone_at_speed():
    (values,) = stribeck(np.array([1e-9, 0.1, 0.2, 1.0]), STRIBECK)
    np.testing.assert_allclose(values, [1.0, 1.0 / np.e, np.e**-4, 0.0], atol=1e-9)


def test_the_bump_of_makkar_is_between_rest_and_speed_and_leaves_coulomb():
    bump, coulomb = makkar(SPEED, MAKKAR)
    assert bump[0] < 0.02 and bump[-1] == 0.0
    assert 0.01 < SPEED[np.argmax(bump)] < 0.1  # between both steepnesses
    assert coulomb[-1] == 1.0
    # A tenth of a radian per second away from rest: tanh(10) − tanh(1).
    assert makkar(np.array([0.1]), MAKKAR)[0][0] == pytest.approx(1.0 - 0.7615942, abs=1e-7)


def test_ripple_comes_back_every_period_of_its_order():
    q = np.linspace(-2.0, 2.0, 101)
    for a, b in zip(
        ripple('order', q, {'order': 7.0}),
        ripple('order', q + 2.0 * np.pi / 7.0, {'order': 7.0}),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)
        assert np.ptp(a) == pytest.approx(2.0, rel=1e-2)
    cos, sin = ripple('order', np.array([0.0]), {'order': 7.0})
    assert (cos[0], sin[0]) == (1.0, 0.0)


def test_a_slipping_spring_loses_what_its_loop_holds():
    """A cycle of amplitude A takes 4 Δ (A − Δ)/Δ of work per unit of force (Masing)."""
    distance, amplitude, cycles = 0.01, 0.05, 3
    q = amplitude * np.cos(np.linspace(0.0, 2.0 * np.pi * cycles, 30_001))
    z = maxwell_slip(q, np.gradient(q), distance)
    assert np.abs(z).max() == 1.0
    work = np.sum(0.5 * (z[1:] + z[:-1]) * np.diff(q))
    assert work == pytest.approx(cycles * 4.0 * (amplitude - distance), rel=0.05)


def test_a_slipping_spring_remembers_where_it_turned_round():
    """Short ways back and forth add up in it, and a closed one comes back to where it began."""
    turns = np.cumsum([0.0, 5.0, -0.5, 0.2, -0.4, 0.7])
    q = np.concatenate([np.linspace(a, b, 50) for a, b in pairwise(turns)])
    z = maxwell_slip(q, np.gradient(q), 1.0)
    np.testing.assert_allclose(z[49::50], [1.0, 0.5, 0.7, 0.3, 1.0])


@pytest.mark.parametrize('distance', [0.3, 4.0])
@pytest.mark.parametrize('first', [-0.2, 0.0, 0.7])
def test_a_slipping_spring_is_the_stop_operator_sample_by_sample(distance, first):
    """It begins as if it had slipped the way that the joint moves at first."""
    q = np.cumsum(np.random.default_rng(3).normal(size=300))
    states = [distance * float(np.sign(first))]
    for step in np.diff(q):
        states.append(float(np.clip(states[-1] + step, -distance, distance)))
    dq = np.concatenate([[first], np.diff(q)])
    z = maxwell_slip(q, dq, distance)
    np.testing.assert_allclose(z, np.array(states) / distance, atol=1e-12)
