"""A kind of friction is one entry of `TERMS`: all that depends on a kind reads it there."""

import numpy as np
import pytest

from robotid_ros.core.excitation.observation_matrix import ObservationModel
from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.friction import TERMS
from robotid_ros.core.parameters.plain_friction import plain_friction
from robotid_ros.core.replay.direct_model import direct_model, slip_columns

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
        monkeypatch.setitem(TERMS, f'other_{name}', TERMS[name])


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
    assert all(a == b and np.array_equal(x, y) for (a, x), (b, y) in pairs)
    steep, state = np.full(ours.n, 20.0), Motion(*motion(np.arange(20) / 20.0, 0))
    first, second = (ObservationModel(r, steep).matrix(state) for r in (ours, other))
    np.testing.assert_array_equal(first, second)


def test_what_is_a_spring_is_no_friction(kinds, monkeypatch):
    monkeypatch.setitem(TERMS, 'other_spring', TERMS['spring'])
    robot = robot_with('viscous', 'other_spring')
    plain = plain_friction(robot, with_friction_values(robot, Fv=0.5, Kq=30.0))
    assert all(each.exact and each.viscous == 0.5 for each in plain.values())
