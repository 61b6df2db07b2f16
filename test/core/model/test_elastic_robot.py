"""Terms of a transmission between motor and link: their shape, and that they act on both."""

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics, regressor, RobotSettings
from robotid_ros.core.model.friction import maxwell_slip
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.exceptions import ConfigurationError, UnknownNameError

from .arms import ROD

WIDTH, DISTANCE = 2e-3, 5e-4


def test_a_configuration_gives_terms_their_shape_and_units():
    names = ('backlash', 'hysteresis', 'viscous')
    settings = RobotSettings(
        friction_constants={'a': {'backlash_width': WIDTH, 'hysteresis_distance': DISTANCE}},
        elastic=ElasticSettings(('a',), transmission={'default': names}),
    )
    built = build_robot(ROD, settings).elastic
    units = {p.name: p.unit for p in built.parameters[-3:]}
    assert units == {'Kbd1': 'N·m/rad', 'Fhd1': 'N·m', 'Fvd1': 'N·m·s/rad'}
    # By hand: what acts on the link acts on the motor the other way.
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 40, 2)) * [[[1e-3]], [[1.0]], [[1.0]]]
    rows = regressor(built, q, dq, ddq)[:, :, -3:]
    half, d = WIDTH / 2, q[:, 0] - q[:, 1]
    by_hand = [np.minimum(np.maximum(d, -half), half), np.sign(dq[:, 0] - dq[:, 1])]
    by_hand.append(dq[:, 0] - dq[:, 1])
    np.testing.assert_allclose(rows[0], np.column_stack(by_hand))
    assert not rows[1].any()  # the sum of both


def test_torques_are_those_of_the_regressor_and_of_the_path_of_the_deflection():
    settings = RobotSettings(
        friction_constants={'a': {'hysteresis_distance': DISTANCE}},
        elastic=ElasticSettings(('a',), transmission={'default': ('viscous', 'hysteresis')}),
    )
    robot, rng = build_robot(ROD, settings).elastic, np.random.default_rng(1)
    q = np.cumsum(1e-3 * rng.normal(size=(50, 2)), axis=0)
    dq, ddq = np.gradient(q, axis=0), rng.normal(size=q.shape)
    chi = robot.prior + rng.uniform(0.1, 1.0, robot.p)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    np.testing.assert_allclose(tau.T, regressor(robot, q, dq, ddq) @ chi, atol=1e-9)
    more = inverse_dynamics(robot, chi, q, dq, ddq, successive=True) - tau
    deflection, speed = q[:, 0] - q[:, 1], dq[:, 0] - dq[:, 1]
    (slipping,) = maxwell_slip('distance', deflection, speed, {'distance': DISTANCE})
    expected = chi[robot.column('Fhd1')] * (slipping - np.sign(speed))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(more[:, 0], expected, atol=1e-9)
    np.testing.assert_allclose(more[:, 1], 0.0, atol=1e-9)


@pytest.mark.parametrize('given', [{'b': ('backlash',)}, {'a': ('backlash',)}, {'a': ('play',)}])
def test_terms_that_cannot_be_are_told(given):
    with pytest.raises((ConfigurationError, UnknownNameError), match=r"backlash_width|'b'|'play'"):
        build_robot(ROD, RobotSettings(elastic=ElasticSettings(('a',), transmission=given)))
