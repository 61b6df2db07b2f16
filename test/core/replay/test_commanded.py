"""Servos from commands and positions: what MuJoCo simulated comes back, and nothing else."""

import dataclasses

import numpy as np
import pytest
import servo_plant

from robotid_ros.core.findings import render, select
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.replay.commanded import identify_commanded, KnownMass
from robotid_ros.exceptions import ConfigurationError, RecordingError

ARM = {
    'shoulder': {'stiffness': 18.0, 'damping': 0.6, 'armature': 0.028, 'Fc': 0.05, 'bias': 0.01},
    'elbow': {'stiffness': 14.0, 'damping': 0.5, 'armature': 0.025, 'Fc': 0.04, 'bias': -0.02},
}
LEG = {
    'hip': {'stiffness': 35.0, 'damping': 0.9, 'armature': 0.006, 'Fc': 0.15},
    'thigh': {'stiffness': 40.0, 'damping': 1.0, 'armature': 0.006, 'Fc': 0.12},
    'calf': {'stiffness': 40.0, 'damping': 1.0, 'armature': 0.01, 'Fc': 0.1},
}


def recorded(chain, truth, *, seconds=10.0, rate=50, delay=0.033, noise=4e-4, seed=1, **plant):
    time = np.arange(0.0, seconds, 1.0 / rate)
    commands = servo_plant.motion(time, len(truth), seed, 0.4)
    return servo_plant.record(chain, truth, commands, rate, delay, noise, seed, **plant)


def assert_true(found, truth, delay, scale=1.0):
    """Check that all that has a value is within 3 σ of the truth."""
    assert {p.symbol for p in found.parameters if p.value is not None} >= {'stiffness', 'delay'}
    for each in found.parameters:
        if each.symbol == 'delay':
            expected = delay
        elif each.symbol == 'bodies':
            expected = scale
        else:
            expected = truth[each.joint].get(each.symbol, 0.0)
        if each.value is not None:
            assert abs(each.value - expected) <= 3.0 * each.sigma, each
        if each.ratio is not None:
            ratio = expected / truth[each.joint]['stiffness']
            assert abs(each.ratio - ratio) <= 3.0 * each.ratio_sigma, each
    assert abs(found.value('delay') - delay) < 1e-3


def test_an_arm_at_50_hz():
    found = identify_commanded(
        [recorded(servo_plant.ARM, ARM)], servo_plant.robot(servo_plant.ARM)
    )
    assert_true(found, ARM, 0.033)
    assert all(p.value is not None for p in found.parameters)
    percent = {p.symbol: p.sigma / abs(p.value) for p in found.parameters}
    assert percent['stiffness'] < 0.02 and percent['armature'] < 0.02
    assert select(found.findings, 'servo_scale') and select(found.findings, 'servo_not_saturated')
    assert not select(found.findings, 'servo_misfit')
    assert not select(found.findings, 'beyond_limits')
    assert (found.residual < 6e-4).all()


def test_positions_beyond_the_limits_of_the_description_are_named(short):
    narrow = servo_plant.urdf(servo_plant.ARM).replace('lower="-3"', 'lower="-0.05"', 1)
    found = identify_commanded([short], build_robot(narrow, servo_plant.SETTINGS))
    (told,) = select(found.findings, 'beyond_limits')
    assert told.joints == ('shoulder',)
    assert told.values['low'] == short.position[:, 0].min() < -0.15
    assert 'calibration' in render(told)


@pytest.mark.slow
def test_a_leg_and_a_limit_that_it_reaches():
    truth = {**LEG, 'thigh': {**LEG['thigh'], 'limit': 6.0}}
    recording = recorded(servo_plant.LEG, truth, delay=0.013)
    found = identify_commanded([recording], servo_plant.robot(servo_plant.LEG))
    assert_true(found, truth, 0.013)
    assert found.value('limit', 'thigh') is not None
    (note,) = select(found.findings, 'servo_not_saturated')
    assert note.joints == ('hip', 'calf')
    (note,) = select(found.findings, 'servo_saturated')
    assert note.joints == ('thigh',)
    assert note.values['limits'] == (found.value('limit', 'thigh'),)


@pytest.mark.slow
def test_states_that_are_slower_than_commands_with_losses():
    fast = recorded(servo_plant.ARM, ARM, seconds=12.0, rate=200)
    kept = np.arange(fast.time.size) % 4 == 0
    kept &= np.random.default_rng(1).uniform(size=kept.size) > 0.05
    kept[1000:1150] = False
    parts = {name: getattr(fast, name)[kept] for name in ('time', 'position', 'effort')}
    found = identify_commanded(
        [dataclasses.replace(fast, **parts)], servo_plant.robot(servo_plant.ARM)
    )
    assert_true(found, ARM, 0.033)


@pytest.mark.slow
def test_friction_that_falls_with_the_speed():
    truth = {joint: {**own, 'Fst': 0.06} for joint, own in ARM.items()}

    def fading(data):
        return -0.06 * np.exp(-((data.qvel / 0.15) ** 2)) * np.tanh(data.qvel / 2e-3)

    constants = {'default': {'stribeck_velocity': 0.15}}
    friction = ('viscous', 'coulomb', 'offset', 'stribeck')
    robot = servo_plant.robot(servo_plant.ARM, friction, friction_constants=constants)
    found = identify_commanded([recorded(servo_plant.ARM, truth, torque=fading)], robot)
    assert_true(found, truth, 0.033)
    assert found.value('Fst', 'elbow') is not None


@pytest.mark.slow
def test_a_known_mass_gives_the_scale():
    heavy = tuple(
        (*row[:4], 1.25 * row[4], row[5], tuple(1.25 * x for x in row[6]))
        for row in servo_plant.ARM
    )
    place = (0.0, 0.0, 0.1)
    logs = [
        recorded(heavy, ARM, seconds=8.0),
        recorded(heavy, ARM, seconds=8.0, seed=2, added=('elbow', 0.3, place)),
    ]
    mass = KnownMass(0.3, 'elbow_link', place)
    found = identify_commanded(logs, servo_plant.robot(servo_plant.ARM), known_mass=mass)
    assert_true(found, ARM, 0.033, 1.25)
    assert not select(found.findings, 'servo_scale')


def test_what_bodies_do_not_show_has_a_ratio_alone():
    # A body that hardly weighs or resists: torques have no scale, all inertia may be its own.
    light = (('yaw', 'world', (0, 0, 0.1), '0 0 1', 1e-4, (0.0, 0.0, 0.01), (1e-9,) * 3),)
    truth = {'yaw': {'stiffness': 18.0, 'damping': 0.6, 'armature': 0.028, 'Fc': 0.05}}
    found = identify_commanded([recorded(light, truth)], servo_plant.robot(light))
    values = {p.symbol for p in found.parameters if p.value is not None}
    assert values == {'bias', 'delay'}
    (note,) = select(found.findings, 'servo_ratios')
    assert set(note.values['parameters']) == {'damping yaw', 'Fc yaw'}
    (note,) = select(found.findings, 'servo_undetermined')
    assert set(note.values['parameters']) == {'stiffness yaw', 'armature yaw'}
    for each in found.parameters:
        if each.ratio is not None:
            expected = truth['yaw'][each.symbol] / 18.0
            assert abs(each.ratio - expected) <= 3.0 * each.ratio_sigma


@pytest.fixture(scope='module')
def short():
    return recorded(servo_plant.ARM, ARM, seconds=5.0)


def refused(recording, match, error=RecordingError, chain=servo_plant.ARM, **settings):
    with pytest.raises(error, match=match):
        identify_commanded([recording], servo_plant.robot(chain, **settings))


def with_commands(recording, commands):
    reference = dataclasses.replace(recording.reference, q=commands)
    return dataclasses.replace(recording, reference=reference)


def test_a_log_without_commands_is_refused(short):
    refused(
        dataclasses.replace(short, reference=None), 'no commanded positions of shoulder, elbow'
    )
    half = np.array(short.reference.q)
    half[:, 1] = np.nan
    refused(with_commands(short, half), 'no commanded positions of elbow')


@pytest.mark.parametrize('shift', [0, 1])
def test_commands_that_are_the_positions_are_refused(short, shift):
    commands = np.vstack([short.position[shift:], short.position[:shift]])
    refused(with_commands(short, commands), 'do not show how its servo behaves')


def test_commands_in_other_units_are_refused(short):
    refused(with_commands(short, np.rad2deg(short.reference.q)), 'times its positions')
    refused(with_commands(short, -np.array(short.reference.q)), 'times its positions')


def test_models_that_are_not_simulated_are_refused(short):
    friction = ('viscous', 'stiction')
    refused(short, 'friction stiction of shoulder', ConfigurationError, friction=friction)
    robot = build_robot(
        servo_plant.urdf(servo_plant.ARM, inertials=False), RobotSettings(mass=1.0)
    )
    with pytest.raises(ConfigurationError, match='no inertials'):
        identify_commanded([short], robot)
    with pytest.raises(ConfigurationError, match='one without'):
        robot = servo_plant.robot(servo_plant.ARM)
        identify_commanded([short], robot, known_mass=KnownMass(0.1, 'elbow_link'))


def test_a_log_that_is_too_short_is_refused(short):
    refused(short.between(0.0, 2.0), 'record at least 4')
