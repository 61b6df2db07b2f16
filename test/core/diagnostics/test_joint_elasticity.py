"""A spring behind the motor's encoder is told, with its stiffness; what is none is not."""

import numpy as np
from plant_recording import arm, JOINTS, plant, START
import pytest

from robotid_ros.core.diagnostics.joint_elasticity import elasticity_warnings
from robotid_ros.core.finding_codes import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import friction, inverse_dynamics
from robotid_ros.core.model.parameters import INERTIAL
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.signals.samples import SignalSettings

RATE, SECONDS, ROTOR = 200.0, 30.0, 0.1


def motion(seed):
    """Return times and q, dq, ddq of links: sums of sines, 0.1 to 0.5 Hz."""
    rng, w = np.random.default_rng(seed), 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.uniform(-0.25, 0.25, (2, 5, 3))
    time = np.arange(round(SECONDS * RATE)) / RATE
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    return time, (
        START + s @ a + c @ b,
        (c * w) @ a - (s * w) @ b,
        -(s * w**2) @ a - (c * w**2) @ b,
    )


def warned(stiffness, error=None, seed=3):
    """Return what is said of joints that have springs [N·m/rad], seen from their motors."""
    robot, truth, rng = arm(rotor_inertia=True), plant().truth, np.random.default_rng(seed)
    values = [
        ROTOR if p.symbol == 'Ia' else truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters
    ]
    chi = np.array(values)
    links = np.where([p.symbol in INERTIAL for p in robot.parameters], chi, 0.0)
    time, link = motion(seed)
    load = inverse_dynamics(robot, links, *link)
    q = link[0] + load / np.array(stiffness)
    dq = np.gradient(q, 1.0 / RATE, axis=0)
    tau = load + friction(robot, chi, q, dq) + ROTOR * np.gradient(dq, 1.0 / RATE, axis=0)
    if error is not None:
        tau = error(time, dq, tau)
    q, tau = q + 2e-5 * rng.normal(size=q.shape), tau + 0.02 * rng.normal(size=q.shape)
    samples = prepare(Recording(JOINTS, time, q, tau), robot, SignalSettings())
    base = base_parameters(robot)
    system = observe(samples, robot, base)
    estimate = fit(system, 'wls')
    return elasticity_warnings(
        samples, system, robot, estimate, basic_solution(base, estimate.value)
    )


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('stiffness', [300.0, 800.0, 2000.0])
def test_a_spring_is_told_with_its_stiffness(stiffness, seed):
    said = warned((1e9, stiffness, 1e9), seed=seed)
    assert len(said) == 1 and said[0].joints == ('joint_2',)
    assert said[0].values['stiffness'] == pytest.approx(stiffness, rel=0.4)


def stribeck(time, dq, tau):
    return tau + 0.4 * np.exp(-((dq / 0.1) ** 2)) * np.sign(dq)


def late(time, dq, tau):
    return np.column_stack([np.interp(time - 5e-3, time, x) for x in tau.T])


def warming(time, dq, tau):
    return tau - 0.3 * (time / time[-1])[:, None] * np.sign(dq)


def curved(time, dq, tau):
    return tau + 0.3 * dq * np.abs(dq)


def correlated(time, dq, tau):
    noise = np.random.default_rng(0).normal(size=tau.shape)
    kernel = np.exp(-np.arange(200) / 40.0)
    return tau + 0.1 * np.column_stack([np.convolve(x, kernel)[: len(x)] for x in noise.T])


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('error', [None, stribeck, late, warming, curved, correlated])
def test_what_else_a_model_lacks_is_no_spring(error, seed):
    assert not warned((1e9, 1e9, 1e9), error, seed)


def test_a_rigid_arm_under_its_controller_is_not_called_elastic():
    """Friction sets it in motion against the stiffness of the controller, which is no spring's."""
    result = identify(plant().recording, arm(friction={}), IdentificationSettings(essential=False))
    assert not select(result.findings, 'elastic_transmission')


def test_recordings_too_short_to_tell_say_nothing():
    time, (q, _, _) = motion(3)
    robot, few = arm(), slice(0, 1000)
    tau = inverse_dynamics(robot, robot.prior, *(x[few] for x in motion(3)[1]))
    samples = prepare(
        Recording(JOINTS, time[few], q[few], tau), robot, SignalSettings(cutoff=10.0)
    )
    base = base_parameters(robot)
    system = observe(samples, robot, base)
    estimate = fit(system, 'wls')
    chi = basic_solution(base, estimate.value)
    assert elasticity_warnings(samples, system, robot, estimate, chi) == []
