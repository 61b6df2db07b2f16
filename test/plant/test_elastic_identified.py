"""Simulated robots of which some joints are elastic: identified, and warned of."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import ElasticDriveSettings, GainSettings

CONFIG = Path(__file__).parents[2] / 'config'
RATE, PERIODS = 1000.0, 3
FIRST = (16000.0, 0.0)


@cache
def driven(stiffness):
    """Names, positions and efforts of one period of the planar arm, motors last."""
    configuration = load(CONFIG / 'planar_2r_elastic.yaml')
    trajectory = read_design(CONFIG / 'trajectories' / 'planar_2r_elastic.yaml').trajectory
    settings = replace(
        configuration.simulation,
        inertial_error=0.0,
        elastic=ElasticDriveSettings(stiffness=stiffness),
    )
    physics = Physics(read_urdf(configuration), settings, configuration.robot.joints)
    gains = [settings.gains[joint] for joint in physics.joints]
    q, tau = track(physics, trajectory.sample(np.arange(8900) / RATE), gains)
    return physics.joint_state_names, q, tau


def track(physics, desired, gains):
    """Follow one period by PD; return the second."""
    p, d = np.array([g.p for g in gains]), np.array([g.d for g in gains])
    physics.set_state(desired.q[0], desired.dq[0])
    rows = []
    for k in [*range(len(desired.q))] * 2:
        u = p * (desired.q[k] - physics.position) + d * (desired.dq[k] - physics.velocity)
        rows.append(physics.joint_state(u))
        physics.step(u)
    q, _, tau = (np.array(x) for x in zip(*rows[len(desired.q) :], strict=True))
    return q, tau


def recorded(names, q, tau, trajectory, noise, seed=0):
    """Record some periods, with noise on every encoder."""
    q, tau = np.tile(q, (PERIODS, 1)), np.tile(tau, (PERIODS, 1))
    rng = np.random.default_rng(seed)
    q = q + noise * rng.normal(size=q.shape)
    tau = tau + 0.05 * rng.normal(size=(len(q), 1))
    time = np.arange(len(q)) / RATE
    return Recording(names, time, q, tau, trajectories={'exciting': trajectory})


def identified(stiffness, elastic, noise, channels=None):
    """Identify the planar arm; `channels` are the ones that are recorded, under which names."""
    configuration = load(CONFIG / 'planar_2r_elastic.yaml')
    trajectory = read_design(CONFIG / 'trajectories' / 'planar_2r_elastic.yaml').trajectory
    names, q, tau = driven(stiffness)
    picked = channels or {name: name for name in names}
    columns = [names.index(source) for source in picked.values()]
    recording = recorded((*picked,), q[:, columns], tau[:, columns], trajectory, noise)
    robot = replace(configuration.robot, elastic=ElasticSettings(joints=elastic))
    signals = replace(configuration.identification.signals, cutoff=10.0)
    settings = replace(configuration.identification, essential=False, signals=signals)
    return identify(recording, build_robot(read_urdf(configuration), robot), settings)


def values(found):
    return dict(zip(found.base.names, found.estimate.value.tolist(), strict=True))


@pytest.mark.parametrize('noise', [1e-6, 1e-3])
def test_a_robot_with_one_elastic_joint_is_identified(noise):
    found = identified(FIRST, ('joint_1',), noise)
    assert found.robot.joints == ('joint_1', 'joint_2', 'joint_1_motor')
    assert values(found)['K1'] == pytest.approx(16000.0, rel=0.02)
    assert values(found)['MX2'] == pytest.approx(2.5, rel=0.02)
    assert not select(found.findings, 'spring_not_shown')


@pytest.mark.parametrize('noise', [1e-6, 1e-4])
def test_a_spring_too_many_in_the_model_is_told(noise):
    names = {name: name for name in ('joint_1', 'joint_2', 'joint_1_motor')}
    found = identified(FIRST, ('joint_1', 'joint_2'), noise, names | {'joint_2_motor': 'joint_2'})
    assert [each.joints for each in select(found.findings, 'spring_not_shown')] == [('joint_2',)]
    assert values(found)['K1'] == pytest.approx(16000.0, rel=0.02)


def test_an_elastic_slide_is_identified_in_newtons_per_metre():
    configuration = load(CONFIG / 'emps.yaml')
    settings = replace(
        configuration.simulation,
        inertial_error=0.0,
        rotor_inertia=(20.0,),
        viscous=(50.0,),
        coulomb=(5.0,),
        offset=(0.0,),
        gains={'joint_1': GainSettings(p=2e4, d=2e3)},
        elastic=ElasticDriveSettings(stiffness=(5e4,)),
    )
    physics = Physics(read_urdf(configuration), settings, ('joint_1',))
    period = 4.0
    wave = 2.0 * np.pi / period * np.arange(round(period * RATE)) / RATE
    # Without gravity, carriage and motor are told apart near their resonance alone.
    q = 0.12 + 0.05 * np.sin(wave) - 0.005 * np.sin(10.0 * wave)
    motion = type('Motion', (), {'q': q[:, None], 'dq': np.gradient(q, 1.0 / RATE)[:, None]})
    q, tau = track(physics, motion, [settings.gains['joint_1']])
    robot = build_robot(
        read_urdf(configuration),
        replace(configuration.robot, rotor_inertia=True, elastic=ElasticSettings(('joint_1',))),
    )
    trajectory = replace(
        read_design(CONFIG / 'trajectories' / 'planar_2r_elastic.yaml').trajectory, period=period
    )
    for noise in (1e-8, 1e-5):
        recording = recorded(physics.joint_state_names, q, tau, trajectory, noise)
        signals = replace(configuration.identification.signals, cutoff=20.0, standstill=0.01)
        wanted = replace(configuration.identification, essential=False, signals=signals)
        found = identify(recording, robot, wanted)
        unit = dict(zip(found.base.names, found.base.units, strict=True))
        assert unit['K1'] == 'N/m'
        sigma = dict(zip(found.base.names, found.estimate.sigma, strict=True))
        for name, true in (('K1', 5e4), ('Ia1', 20.0)):
            assert values(found)[name] == pytest.approx(true, rel=0.03, abs=4.0 * sigma[name])
            assert sigma[name] < 0.1 * true
