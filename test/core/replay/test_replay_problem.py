"""The data of a closed-loop method: times, transient, loop dynamics, parameters of a base."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import RobotSettings
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.replay_problem import ReplayProblem, Torque

from .arms import planar_urdf

RATE, ROWS = 100.0, 2000
STIFFNESS, DAMPING = np.array([300.0, 80.0]), np.array([9.0, 12.0])
INERTIA = np.array([3.0, 0.2])


def replay_of(integral=0.0, urdf=None, **fields):
    robot, zeros = build_robot(urdf or planar_urdf(), RobotSettings()), np.zeros((ROWS, 2))
    law, still = JointTrajectoryEffort(RATE, STIFFNESS, integral, DAMPING), Motion(*[zeros] * 3)
    torque = Torque(np.arange(ROWS) * 1.0, zeros, np.ones(ROWS, dtype=bool), RATE)
    return ReplayProblem(robot, base_parameters(robot), law, still, torque, still, **fields)


def test_loops_have_the_poles_of_a_mass_on_a_spring_with_a_damper():
    """J s² + D s + K = 0: |s| is ω_n where it oscillates, and −(s₁ + s₂)/2 is ζ ω_n."""
    omega, zeta = replay_of().loop_dynamics(INERTIA)
    for j in range(2):
        poles = np.roots([INERTIA[j], DAMPING[j], STIFFNESS[j]])
        assert omega[j] == pytest.approx(np.sqrt(np.prod(poles).real))
        assert zeta[j] * omega[j] == pytest.approx(-poles.sum().real / 2.0)


def test_the_transient_is_that_of_the_slowest_loop_and_of_its_integral():
    """5/ω_n, 5 p/i [s], but not more than a fifth of the recording for the latter."""
    known = replay_of(a_priori_inertia=INERTIA)
    assert known.transient == pytest.approx(5.0 / np.sqrt(300.0 / 3.0))
    times = np.array([0.3, 0.4])
    integral = dataclasses.replace(known, law=replay_of(STIFFNESS / times).law)
    assert integral.transient == pytest.approx(5.0 * 0.4)
    long = dataclasses.replace(known, law=replay_of(STIFFNESS / 9.0).law)
    assert long.transient == pytest.approx(ROWS / RATE / 5.0)
    assert dataclasses.replace(long, restart=10).transient == 0.0


def test_updates_have_the_times_of_the_recording():
    time = replay_of(start=7.0).time
    assert (len(time), time[0]) == (ROWS, 7.0)
    np.testing.assert_allclose(np.diff(time), 1.0 / RATE)


def test_links_without_a_mass_get_one_and_nothing_else_changes():
    replay = replay_of(urdf=planar_urdf().replace('<mass value="1"/>', '<mass value="0"/>'))
    filled, prior = replay.filled_prior(), replay.robot.prior
    names = [p.name for p in replay.robot.parameters]
    changed = {names[k]: filled[k] for k in np.flatnonzero(filled != prior)}
    assert changed == {'M2': 1.0}


def test_standard_parameters_are_those_of_a_base():
    replay = replay_of()
    value = np.random.default_rng(0).normal(size=replay.base.rank)
    chi = replay.standard_parameters(value)
    np.testing.assert_allclose(replay.base.of(chi), value, atol=1e-12)
