"""Friction that changes with a joint's temperature is chosen where it does, and is right."""

from dataclasses import replace

import numpy as np
from plant_recording import arm, JOINTS, plant, sines, URDF
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.friction import BY_TEMPERATURE, CHANGES, WARM_UPS
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.selection.model_selection import select_model
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RecordingError

RATE, SECONDS = 100.0, 60.0
SETTINGS = IdentificationSettings(essential=False)
FREE = build_robot(URDF, RobotSettings(joints=JOINTS))
# Per kelvin: grease gets thinner, what seals rub does too.
PER_KELVIN = {'Fvt2': -0.02, 'Fct2': -0.03}


def temperatures(time, warmer=12.0):
    """Let joints get warm, and cool down again, which no friction that only falls can follow."""
    phase = np.pi * time / SECONDS
    return np.column_stack([25.0 + 0.0 * time, 28.0 + warmer * np.sin(phase), 30.0 - phase])


def recorded(per_kelvin=PER_KELVIN, warmer=12.0, seed=0):
    """Record an arm whose second joint rubs less the warmer it is."""
    rng, time, q, dq, tau = sines(SECONDS, RATE, seed)
    degrees = temperatures(time, warmer)
    warmer = degrees[:, 1] - 30.0
    tau[:, 1] += per_kelvin.get('Fvt2', 0.0) * warmer * dq[:, 1]
    tau[:, 1] += per_kelvin.get('Fct2', 0.0) * warmer * np.sign(dq[:, 1])
    noise = rng.normal(size=(2, *q.shape))
    # Drives say them once in a while, to half a degree, and this one forgets some.
    said = np.round(2.0 * degrees) / 2.0
    said[::7] = np.nan
    return Recording(JOINTS, time, q + 2e-5 * noise[0], tau + 0.02 * noise[1], temperature=said)


def changes(friction):
    return [[t.name for t in terms if t.name in CHANGES] for terms in friction]


@pytest.mark.parametrize('names', [('Fvt2',), ('Fct2',), ('Fvt2', 'Fct2')], ids='+'.join)
def test_friction_by_temperature_is_found_and_all_else_is_right(names):
    per_kelvin = {name: PER_KELVIN[name] for name in names}
    recording = recorded(per_kelvin)
    result = identify(recording, FREE, SETTINGS)
    wanted = [term for term, name in zip(BY_TEMPERATURE, PER_KELVIN, strict=True) if name in names]
    (_, found, _) = changes(result.selection.candidate.friction)
    assert sorted(found) == sorted(wanted)
    assert changes(result.robot.friction) == [[], [], []]
    said = [text for text in result.warnings if 'per K' in text]
    kept = result.selection.configuration(result.robot)['robot']['friction_constants'][JOINTS[1]]
    reference = kept['reference_temperature']
    assert reference == pytest.approx(29.9, abs=0.3)  # it has cooled down by the end
    assert all(text.endswith(f'the parameters are those at {reference:g} °C') for text in said)
    for name, size in per_kelvin.items():
        (text,) = [text for text in said if name in text]
        value, sigma = map(float, text.split(f'{name} = ')[1].split(' per')[0].split(' ± '))
        assert abs(value - size) <= 3.0 * sigma < 0.5 * abs(size)
    # The friction of the robot at the reference.
    truth = plant().base(arm())
    truth['Fv2'] += per_kelvin.get('Fvt2', 0.0) * (reference - 30.0)
    truth['Fc2'] += per_kelvin.get('Fct2', 0.0) * (reference - 30.0)
    error = result.estimate.value - np.array([truth[name] for name in result.base.names])
    assert np.all(np.abs(error) <= 3.0 * result.estimate.sigma)


def test_without_a_temperature_the_same_recording_is_predicted_worse():
    recording = recorded()
    known, unknown = (
        select_model(r, FREE, SETTINGS, warm_up=True)[2]
        for r in (recording, replace(recording, temperature=None))
    )
    assert known.joint_residuals[1] < 0.5 * unknown.joint_residuals[1]


def test_friction_that_does_not_change_gets_none_and_costs_nothing(monkeypatch):
    monkeypatch.setattr('robotid_ros.core.model.friction._smooth_sign', lambda _: pytest.fail())
    robot, _, _ = select_model(recorded({}), FREE, SETTINGS, warm_up=True)
    assert changes(robot.friction) == [[], [], []]


def test_a_temperature_that_hardly_changes_gives_way_to_the_exponential():
    recording = recorded({}, warmer=2.5)
    cold = np.exp(-recording.time / 20.0)
    effort = recording.effort.copy()
    effort[:, 1] += 0.4 * cold * np.gradient(recording.position[:, 1], recording.time)
    robot, _, _ = select_model(replace(recording, effort=effort), FREE, SETTINGS, warm_up=True)
    assert changes(robot.friction) == [[], [WARM_UPS[0]], []]


def test_a_temperature_that_was_not_recorded_is_asked_for():
    names = ('viscous', 'coulomb', 'offset', BY_TEMPERATURE[0])
    robot = arm(
        friction={'default': names},
        friction_constants={'default': {'reference_temperature': 30.0}},
    )
    recording = recorded()
    with pytest.raises(RecordingError, match='needs the temperature of joint_1: record it, or'):
        identify(replace(recording, temperature=None), robot, SETTINGS)
    said = recording.temperature.copy()
    said[:, 2] = np.nan
    with pytest.raises(RecordingError, match='needs the temperature of joint_3'):
        identify(replace(recording, temperature=said), robot, SETTINGS)


def test_temperatures_are_cut_and_chosen_with_the_joints():
    recording = recorded()
    part = recording.select(JOINTS[::-1]).between(10.0, 20.0)
    np.testing.assert_array_equal(
        part.temperature,
        recording.temperature[(recording.time >= 10.0) & (recording.time < 20.0)][:, ::-1],
    )
    with pytest.raises(RecordingError, match='temperature of shape'):
        replace(recording, temperature=recording.temperature[:-1])
