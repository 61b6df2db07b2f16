"""The Stribeck constant of the truth is found from far away."""

import numpy as np
import pytest

from robotid_ros.core.finding_codes import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.shape_constants import search_shape_constants
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.signals.samples import SignalSettings

from ..conftest import motion, URDF

SIGNALS = SignalSettings(cutoff=20.0, standstill=0.0)


def arm(slope, terms=('viscous', 'stiction')):
    name = 'stribeck_slope' if 'stiction' in terms else 'makkar_gamma3'
    return build_robot(
        URDF,
        RobotSettings(friction={'default': terms}, friction_constants={'default': {name: slope}}),
    )


def record(robot, noise=0.0):
    chi = np.array(robot.prior)
    for k, parameter in enumerate(robot.parameters):
        known = {'Fv': 0.5, 'Fs': 2.0, 'Fsc': -0.8, 'Fc': 2.0, 'Fstr': 0.8}
        chi[k] = known.get(parameter.symbol, chi[k])
    time = np.arange(6000) / 200.0
    q, dq, ddq = motion(time, 0)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    return Recording(robot.joints, time, q, tau)


@pytest.mark.parametrize(
    ('terms', 'true', 'told'),
    [
        (('viscous', 'stiction'), 6.0, 20.0),
        (('viscous', 'stiction'), 15.0, 2.0),
        (('viscous', 'makkar'), 4.0, 20.0),
    ],
)
def test_the_true_constant_is_found(terms, true, told):
    robot, notes = search_shape_constants(
        record(arm(true, terms), 0.02), arm(told, terms), SIGNALS
    )
    name = 'stribeck_slope' if 'stiction' in terms else 'makkar_gamma3'
    found = [t.constants[name] for joint in robot.friction for t in joint if name in t.constants]
    np.testing.assert_allclose(found, true, rtol=0.1)
    assert [note.values['configured'] for note in notes] == [told] * 3


def test_the_fit_gets_better_and_friction_right():
    recording = record(arm(6.0), 0.02)
    plain, searched = (
        identify(
            recording,
            arm(40.0),
            IdentificationSettings(signals=SIGNALS, essential=False, stribeck=stribeck),
        )
        for stribeck in (False, True)
    )
    assert searched.fitted.total_residual() < 0.9 * plain.fitted.total_residual()
    values = dict(zip(searched.estimate.names, searched.estimate.value, strict=True))
    for joint in (1, 2, 3):
        assert values[f'Fs{joint}'] == pytest.approx(2.0, rel=0.05)
        assert values[f'Fsc{joint}'] == pytest.approx(-0.8, rel=0.1)
    found = select(searched.findings, 'shape_found')
    assert ('j2', 'stribeck_slope') in [(*f.joints, f.values['constant']) for f in found]


def test_robots_without_such_friction_stay_as_they_are():
    robot = build_robot(URDF, RobotSettings())
    assert search_shape_constants(record(robot), robot, SIGNALS) == (robot, [])
