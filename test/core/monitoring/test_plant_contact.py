"""On the simulated robot, whose physics are not ours: no effort without a push, and the push."""

from functools import lru_cache

import numpy as np
from plant_recording import arm, D, JOINTS, P, START, URDF
import pytest

from robotid_ros.core.identification_settings import ContactSettings
from robotid_ros.core.model.dynamics import RobotDynamics
from robotid_ros.core.monitoring.external_effort import ExternalEffortEstimator, ExternalWrench
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import SimulationSettings

FORCE = np.array([12.0, -20.0, 8.0])
PUSHED, RELEASED, SECONDS = 2.0, 2.6, 4.0
SETTINGS = SimulationSettings(
    initial_positions=START, inertial_error=0.1, viscous=(0.5, 0.277, 0.1),
    coulomb=(1.7, 0.8, 0.7), limit_effort=False,
)  # fmt: skip


@lru_cache
def run(moving):
    """Return model, q, τ, Jᵀ w and w at 500 Hz; a wrench acts on the last link for a while."""
    physics = Physics(URDF, SETTINGS, JOINTS)
    truth = {joint.name: joint.values for joint in physics.true_parameters()}
    robot = arm()
    chi = np.array([truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters])
    model = RobotDynamics(robot, chi)
    time = np.arange(round(SECONDS * 1000)) * 1e-3
    w = 2.0 * np.pi * np.array([0.5, 0.4, 0.6]) * moving
    q_ref = START + 0.5 * (1.0 - np.cos(np.outer(time, w)))
    dq_ref = 0.5 * w * np.sin(np.outer(time, w))
    rows, effort = [], np.zeros(3)
    link = robot.model.frames[-1].name
    for k, (wanted, speed) in enumerate(zip(q_ref, dq_ref, strict=True)):
        acts = PUSHED <= time[k] < RELEASED
        if k in (round(1000 * PUSHED), round(1000 * RELEASED)):
            physics.push(link, [*FORCE, 0.0, 0.0, 0.0] if acts else [0.0] * 6)
        rows.append((physics.position, physics.velocity, effort, acts))
        effort = P * (wanted - physics.position) + D * (speed - physics.velocity)
        physics.step(effort.tolist())
    q, _, tau, acts = (np.array(column)[::2] for column in zip(*rows, strict=True))
    frame = len(robot.model.frames) - 1
    true = [model.jacobian(x, frame).T @ np.r_[FORCE, 0.0, 0.0, 0.0] for x in q]
    return model, time[::2], q, tau, np.array(true) * acts[:, None]


def observed(moving):
    model, time, q, tau, true = run(moving)
    estimator = ExternalEffortEstimator(model, ContactSettings(), standstill=0.02)
    found = [
        estimator.take(round(t * 1e9), *state) for t, *state in zip(time, q, tau, strict=True)
    ]
    first = next(k for k, seen in enumerate(found) if seen is not None)
    return model, time[first:], found[first:], true[first:]


def test_nothing_is_seen_without_a_push():
    _, time, found, _ = observed(True)
    free = [seen for t, seen in zip(time, found, strict=True) if t < PUSHED or t > RELEASED + 0.4]
    r, hidden = (
        np.array(x) for x in ([s.effort for s in free], [s.below + s.above for s in free])
    )
    sliding = hidden < 0.01 * hidden.max(axis=0)
    size = np.abs(run(True)[3]).max(axis=0)
    assert sliding.mean() > 0.5
    for joint in range(3):
        # Half a period of the controller, by which reported efforts are late, is what is left.
        assert np.abs(r[sliding[:, joint], joint]).max() < 0.005 * size[joint]
    # Where joints turn round, what is seen is what friction may hide.
    below, above = np.array([s.below for s in free]), np.array([s.above for s in free])
    assert np.maximum(r - below, -r - above).max(axis=0) == pytest.approx(0.0, abs=0.05)


def test_the_force_of_a_push_in_motion_is_found():
    model, time, found, true = observed(True)
    # Three joints tell the force where it acts without a torque.
    wrench, sigma = ExternalWrench(model, '', 1000.0, 1e-3), np.full(3, 0.1)
    late = np.flatnonzero((time > RELEASED - 0.2) & (time < RELEASED))
    for seen, expected in ((found[k], true[k]) for k in late):
        assert seen.effort == pytest.approx(expected, abs=0.03 * np.abs(expected).max())
        force = wrench.estimate(seen.position, seen.effort, sigma)[0][:3]
        assert np.linalg.norm(force - FORCE) < 0.1 * np.linalg.norm(FORCE)


def test_at_rest_what_is_not_found_of_a_push_is_what_friction_may_hide():
    _, time, found, true = observed(False)
    for seen, expected, t in zip(found, true, time, strict=True):
        # Once the filters have settled.
        if not any(0.0 <= t - begin < 0.3 for begin in (PUSHED, RELEASED)):
            assert (seen.effort - seen.below <= expected + 0.05).all()
            assert (expected - 0.05 <= seen.effort + seen.above).all()


def test_the_wrench_of_a_posture_is_what_its_efforts_tell():
    model = run(False)[0]
    frame = len(model.robot.model.frames) - 1
    sigma, force = np.full(3, 1e-3), np.array([10.0, -5.0, 3.0])
    wrench = ExternalWrench(model, '', 100.0, 1e-4)
    q = np.array([0.3, 0.7, -1.1])
    J = model.jacobian(q, frame)
    found, spread = wrench.estimate(q, J[:3].T @ force, sigma)
    assert found[:3] == pytest.approx(force, abs=1e-2) and (spread[:3] < 0.1).all()
    # Stretched, it cannot feel a push along itself: that is left near zero and said so.
    q = np.array([0.3, 0.7, 0.0])
    J = model.jacobian(q, frame)
    blind = np.linalg.svd(J[:3].T)[2][-1]
    assert np.abs(J[:3].T @ blind).max() < 1e-9
    found, spread = wrench.estimate(q, J[:3].T @ (force + 50.0 * blind), sigma)
    assert found[:3] == pytest.approx(force - (force @ blind) * blind, abs=1e-2)
    assert np.linalg.norm(spread[:3]) == pytest.approx(100.0, rel=0.01)
