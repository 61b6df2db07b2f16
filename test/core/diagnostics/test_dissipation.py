"""Friction that gives energy is named with its joint and speeds; friction that brakes is not."""

import numpy as np
import pytest

from robotid_ros.core.findings import Finding, select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording

from ..conftest import motion, RATE, URDF

SETTINGS = IdentificationSettings(method='wls', model='plain', essential=False)
ROBOT = build_robot(
    URDF,
    RobotSettings(
        friction={'default': ('viscous', 'coulomb', 'stribeck', 'offset')},
        friction_constants={'default': {'stribeck_velocity': 0.5}},
    ),
)


def findings(coulomb: float, static: float, sign: float = 1.0) -> list[Finding]:
    """Return what is said of a second joint with such friction, with efforts of that sign."""
    chi = ROBOT.prior.copy()
    for j in (1, 2, 3):
        for symbol, value in (('Fv', 0.3), ('Fc', 0.6), ('Fst', 0.1), ('off', -3.0)):
            chi[ROBOT.column(f'{symbol}{j}')] = value
    chi[ROBOT.column('Fc2')], chi[ROBOT.column('Fst2')] = coulomb, static
    time = np.arange(round(30.0 * RATE)) / RATE
    q, dq, ddq = motion(time, seed=1)
    tau = inverse_dynamics(ROBOT, chi, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    found = identify(Recording(ROBOT.joints, time, q, sign * tau), ROBOT, SETTINGS)
    return select(found.findings, 'no_dissipation', 'effort_sign')


@pytest.mark.parametrize(('coulomb', 'static'), [(0.6, 0.1), (0.6, -0.4), (0.0, 0.0)])
def test_friction_that_brakes_or_is_none_has_no_finding(coulomb, static):
    assert findings(coulomb, static) == []


def test_friction_that_pushes_at_low_speed_is_named_with_joint_and_speeds():
    """F = 0.3 v + 0.6 − 1.2 exp(−(v/0.5)²) pushes below 0.36 rad/s."""
    (found,) = findings(0.6, -1.2)
    low, high = found.values['low'], found.values['high']
    assert found.joints == ROBOT.joints[1:2]
    assert -0.45 < low < -0.2 and 0.2 < high < 0.45


def test_of_efforts_with_the_opposite_sign_friction_is_no_finding_of_its_own():
    (found,) = findings(0.6, 0.1, sign=-1.0)
    assert select([found], 'effort_sign') and found.joints == ROBOT.joints
