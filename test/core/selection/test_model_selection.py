"""What is left open is chosen by what predicts, and only where that is asked for."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.pipeline.choices import choose_model
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.selection.model_selection import select_model
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.signals.samples import SignalSettings

from ..conftest import motion, RATE, URDF

OPEN = IdentificationSettings(essential=False)
PLAIN = {'default': ('viscous', 'coulomb', 'offset')}


def recorded(
    *terms: str, gravity: tuple[float, ...] = (0.0, 0.0, -9.81), **constants: float
) -> Recording:
    """Record the arm, by default with friction that is smooth at zero, which plain one is not."""
    terms = terms or ('viscous', 'smooth_coulomb')
    settings = RobotSettings(
        friction={'default': terms},
        friction_constants={'default': constants or {'tanh_steepness': 15.0}},
        gravity=gravity,
    )
    robot = build_robot(URDF, settings)
    chi = np.array(robot.prior)
    for k, parameter in enumerate(robot.parameters):
        chi[k] = {'Fv': 1.0, 'Fc': 4.0, 'Fst': 2.0, 'Ia': 0.2}.get(parameter.symbol, chi[k])
    time = np.arange(0.0, 20.0, 1.0 / RATE)
    q, dq, ddq = motion(time, 0)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += np.random.default_rng(0).normal(0.0, 0.02, tau.shape)
    return Recording(robot.joints, time, q, tau)


def test_friction_that_is_smooth_at_zero_is_chosen():
    recording, robot = recorded(), build_robot(URDF, RobotSettings())
    found = identify(recording, robot, OPEN)
    assert found.selection.residual < found.selection.plain_residual
    chosen = [{term.name for term in terms} for terms in found.robot.friction]
    assert all(names & {'smooth_coulomb', 'makkar'} for names in chosen)
    assert found.method in ('ols', 'wls')


def test_static_friction_is_chosen_and_right():
    recording = recorded('viscous', 'coulomb', 'stribeck', stribeck_velocity=0.17)
    found = identify(recording, build_robot(URDF, RobotSettings()), OPEN)
    for terms in found.robot.friction:
        assert {term.name for term in terms} == {'viscous', 'coulomb', 'stribeck', 'offset'}
        (shape,) = [term.constants for term in terms if term.name == 'stribeck']
        assert shape['stribeck_velocity'] == pytest.approx(0.17, rel=0.1)
    values = dict(zip(found.base.names, found.estimate.value, strict=True))
    for joint in '123':
        assert values[f'Fc{joint}'] == pytest.approx(4.0, rel=0.03)
        assert values[f'Fst{joint}'] == pytest.approx(2.0, rel=0.1)


def test_friction_that_sets_in_gradually_is_no_negative_static_friction():
    recording, robot = (
        recorded('viscous', 'smooth_coulomb', tanh_steepness=6.0),
        build_robot(URDF, RobotSettings()),
    )
    found = identify(recording, robot, OPEN)
    values = dict(zip(found.base.names, found.estimate.value, strict=True))
    assert not any(value < 0.0 for name, value in values.items() if name.startswith('Fst'))
    assert found.selection.residual < 0.5 * found.selection.plain_residual
    for joint in '123':
        assert values[f'Fc{joint}'] == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize('settings', [{}, {'band': 10.0}])
def test_positions_pass_more_than_torques(settings):
    """W must not lose what the torques keep: the band's end is where accelerations are large."""
    recording, robot = recorded('viscous', 'coulomb'), build_robot(URDF, RobotSettings())
    signals = SignalSettings(**settings)
    _, found, selection = select_model(
        recording, robot, dataclasses.replace(OPEN, signals=signals)
    )
    assert found.signals.cutoff == pytest.approx(2.5 * found.signals.band)
    assert settings.get('band', found.signals.band) == found.signals.band
    assert (selection.candidate.cutoff, selection.candidate.band) == (
        found.signals.cutoff,
        found.signals.band,
    )


def test_plain_friction_stays_plain():
    recording = recorded('viscous', 'coulomb')
    found = identify(recording, build_robot(URDF, RobotSettings()), OPEN)
    assert all(
        {term.name for term in terms} == {'viscous', 'coulomb', 'offset'}
        for terms in found.robot.friction
    )


def test_efforts_without_gravity_are_noticed():
    found = identify(recorded(gravity=(0.0, 0.0, 0.0)), build_robot(URDF, RobotSettings()), OPEN)
    assert found.robot.effort_kind == 'without_gravity'
    assert any("robot.effort_kind to 'without_gravity'" in text for text in found.warnings)
    with_gravity = identify(recorded(), build_robot(URDF, RobotSettings()), OPEN)
    assert with_gravity.robot.gravity.any()
    assert not any('gravity' in text for text in with_gravity.warnings)


def test_the_choice_is_kept_as_a_configuration():
    recording, robot = recorded(), build_robot(URDF, RobotSettings())
    found = identify(recording, robot, OPEN)
    kept = found.selection.configuration(found.robot)
    friction = {joint: tuple(terms) for joint, terms in kept['robot']['friction'].items()}
    chosen = RobotSettings(
        friction=friction, friction_constants=kept['robot']['friction_constants']
    )
    method, signals = kept['identification']['method'], kept['identification']['signals']
    again = identify(
        recording,
        build_robot(URDF, chosen),
        dataclasses.replace(
            OPEN, selection=False, method=method, signals=SignalSettings(**signals)
        ),
    )
    assert again.selection is None
    np.testing.assert_allclose(again.estimate.value, found.estimate.value, rtol=1e-9)


def test_what_is_fixed_is_not_searched():
    recording, robot = recorded(), build_robot(URDF, RobotSettings(friction=PLAIN))
    settings = dataclasses.replace(OPEN, method='ols', signals=SignalSettings(cutoff=8.0))
    chosen, found, selection = select_model(recording, robot, settings)
    assert chosen.friction == robot.friction
    assert (found.method, found.signals.cutoff) == ('ols', 8.0)
    assert selection is None or selection.candidate.cutoff == pytest.approx(8.0)


@pytest.mark.parametrize('chunked', [False, True])
def test_a_recording_may_begin_at_rest(chunked, monkeypatch):
    monkeypatch.setattr('robotid_ros.core.selection.model_selection.LONGEST_LOOK', 2500)
    moving, robot = recorded(), build_robot(URDF, RobotSettings())
    step, rest = moving.time[1] - moving.time[0], 15.0
    time = np.arange(round((rest + 20.0) / step)) * step
    still = np.arange(len(time) - len(moving.time))
    recording = Recording(
        robot.joints,
        time,
        np.concatenate([moving.position[:1][0 * still], moving.position]),
        np.concatenate([moving.effort[:1][0 * still], moving.effort]),
    )
    chunks = iter([recording.between(0.0, rest), recording.between(rest, 40.0)])
    left, *_, selection = choose_model(chunks if chunked else recording, robot, OPEN)
    assert selection is not None
    assert not chunked or len(list(left)) == 2


def test_nothing_is_searched_unasked():
    robot = build_robot(URDF, RobotSettings())
    chosen, found, selection = select_model(
        recorded(), robot, IdentificationSettings(selection=False)
    )
    assert selection is None and chosen is robot and found.method == 'wls'
