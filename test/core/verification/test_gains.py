"""Gains that follow from the inertia: their margins, what limits them, what they are worth."""

import dataclasses

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy import signal

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.findings import finding
from robotid_ros.core.identification_settings import GainProposalSettings
from robotid_ros.core.model import inverse_dynamics, mass_matrix, Robot
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.simulation import direct_model
from robotid_ros.core.verification import gains as module
from robotid_ros.core.verification.gains import (
    GAIN_MARGIN,
    GainProposal,
    JointGains,
    largest_eigenvalue,
    loop_delay,
    margins,
    PHASE_MARGIN,
    place_poles,
    propose_gains,
    smallest_step,
)
from robotid_ros.core.verification.tracking import Tracking
from robotid_ros.exceptions import ControllerError
from robotid_ros.simulation_settings import GainSettings

from ..replay.plant_arm import GAINS, JOINTS, RATE, run_arm, session, SETTINGS, true_parameters

positive = st.floats(1e-3, 1e4)


@settings(max_examples=50)
@given(p=positive, d=positive, inertia=positive, omega=st.floats(0.1, 100.0))
def test_closed_loop_has_the_wanted_poles_when_no_bound_is_hit(p, d, inertia, omega):
    new, _, damping = place_poles(np.array([p, 0.0, d]), inertia, np.float64(omega), 0.7, 1e12)
    poles = np.roots([inertia, damping, new])
    assert np.abs(poles) == pytest.approx(omega, rel=1e-6)
    assert -poles.real / np.abs(poles) == pytest.approx(0.7, rel=1e-6)


@settings(max_examples=50)
@given(p=positive, i=positive, d=positive, inertia=positive, factor=st.floats(1.0, 10.0))
def test_no_gain_changes_by_more_than_the_factor(p, i, d, inertia, factor):
    new = place_poles(np.array([p, i, d]), inertia, np.float64(30.0), 1.0, factor)
    for old, value in zip((p, i, d), new, strict=True):
        assert old / factor * (1 - 1e-12) <= value <= old * factor * (1 + 1e-12)


def test_present_bandwidth_is_kept_and_only_damping_moves():
    old = JointGains(p=400.0, i=8.0, d=10.0, inertia=1.0)
    omega = np.float64(old.natural_frequency)
    p, i, d = place_poles(np.array([400.0, 8.0, 10.0]), 1.0, omega, 1.0, 100.0)
    assert (p, i) == pytest.approx((400.0, 8.0))
    new = JointGains(p, i, d, 1.0)
    assert new.damping == pytest.approx(1.0)
    assert new.natural_frequency == pytest.approx(old.natural_frequency)


def test_a_gain_of_zero_stays_zero():
    new = place_poles(np.array([100.0, 0.0, 0.0]), 1.0, np.float64(20.0), 1.0, 3.0)
    assert new[1:].tolist() == [0.0, 0.0]


def open_loop(inertia: float, gains: tuple[float, float, float], rate: float, delay: int):
    """Return angular frequencies [rad/s] and L of one joint, of SciPy's discretisation."""
    plant = (np.eye(2, k=1), np.array([[0.0], [1.0 / inertia]]), np.eye(2), np.zeros((2, 1)))
    A, B, *_ = signal.cont2discrete(plant, 1.0 / rate)
    w = np.geomspace(1e-3 * rate, np.pi * rate, 50_000)
    z = np.exp(1j * w / rate)
    p, i, d = gains
    # (z − A)⁻¹ B of two states, by Cramer's rule.
    determinant = (z - A[0, 0]) * (z - A[1, 1]) - A[0, 1] * A[1, 0]
    q = ((z - A[1, 1]) * B[0, 0] + A[0, 1] * B[1, 0]) / determinant
    v = (A[1, 0] * B[0, 0] + (z - A[0, 0]) * B[1, 0]) / determinant
    return w, z ** (-delay) * ((p + i / rate * z / (z - 1.0)) * q + d * v)


@pytest.mark.parametrize('delay', [0, 1, 3])
@pytest.mark.parametrize('gains', [(900.0, 0.0, 60.0), (900.0, 9000.0, 60.0), (400.0, 0.0, 20.0)])
def test_margins_of_one_joint_are_those_of_its_frequency_response(gains, delay):
    inertia, rate = 1.3, 500.0
    _, L = open_loop(inertia, gains, rate, delay)
    crossing = np.flatnonzero((L.imag[:-1] * L.imag[1:] < 0.0) & (L.real[:-1] < 0.0))
    factors = np.array([*(-1.0 / L.real[crossing]), -1.0 / L.real[-1] if L.real[-1] < 0 else 32.0])
    expected = np.exp(np.abs(np.log(factors)).min())
    unity = np.flatnonzero((np.abs(L[:-1]) > 1.0) & (np.abs(L[1:]) <= 1.0))
    phase = np.angle(-L[unity]).min()
    found = margins(np.full((1, 1, 1), inertia), np.array([gains]).T, rate, delay)
    assert found == pytest.approx((min(expected, 32.0), phase), rel=3e-3)


def test_eigenvalues_are_the_growth_of_the_loops_themselves():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    mass, rate, delay = root @ root.T + np.eye(3), 200.0, 2
    for factor in (1.0, 12.0):
        p, i, d = gains = factor * np.array([[900.0] * 3, [500.0, 0.0, 200.0], [60.0] * 3])
        q, v, integral, waiting = rng.normal(size=3), np.zeros(3), np.zeros(3), [np.zeros(3)] * 2
        sizes, scale = [], 0.0
        for _ in range(4000):
            integral = integral - i / rate * q
            waiting.append(integral - p * q - d * v)
            a = np.linalg.solve(mass, waiting.pop(0))
            q, v = q + v / rate + 0.5 * a / rate**2, v + a / rate
            # As large as before, so that no number overflows.
            size = np.sqrt(sum((x**2).sum() for x in (q, v, integral, *waiting)))
            q, v, integral, *waiting = (x / size for x in (q, v, integral, *waiting))
            scale += np.log(size)
            sizes.append(scale)
        growth = np.exp((sizes[-1] - sizes[1999]) / 2000.0)
        assert largest_eigenvalue(mass, gains, rate, delay) == pytest.approx(growth, rel=1e-3)


def test_coupled_loops_have_the_margins_of_their_worst_direction():
    mass, rate = np.array([[[2.0, 0.9], [0.9, 1.0]]]), 500.0
    # p and d in proportion to the diagonal: loops decouple along the scaled mass matrix's axes.
    scale = np.diagonal(mass[0])
    gains = np.array([900.0, 0.0, 60.0])[:, None] * scale
    directions = np.linalg.eigvalsh(mass[0] / np.sqrt(np.outer(scale, scale)))
    each = [margins(np.full((1, 1, 1), x), gains[:, :1] / scale[0], rate, 1) for x in directions]
    assert margins(mass, gains, rate, 1) == pytest.approx(tuple(np.min(each, axis=0)), rel=2e-3)


def test_a_loop_that_is_not_stable_has_no_margin():
    assert margins(np.ones((1, 1, 1)), np.array([[1e6], [0.0], [0.0]]), 500.0, 1) == (1.0, 0.0)


def test_counts_of_an_encoder_are_seen():
    count, rng = 2.0 * np.pi / 4096, np.random.default_rng(0)
    position = np.round(rng.normal(size=(500, 1)) / count) * count
    assert smallest_step(np.hstack([position, position + np.nan]))[0] == pytest.approx(count)


@pytest.fixture(scope='module')
def arm() -> tuple[Robot, np.ndarray, Motion]:
    """Return the arm of the plant, its true parameters, and the motion that it was asked for."""
    robot = session().robot
    physics, (*_, q, dq, ddq) = run_arm(SETTINGS)
    rows = slice(round(0.5 * RATE), round(3.5 * RATE))
    return robot, true_parameters(physics, robot), Motion(q[rows], dq[rows], ddq[rows])


def propose(
    arm: tuple[Robot, np.ndarray, Motion], delay: float | None = None, **wanted: float
) -> GainProposal:
    robot, chi, motion = arm
    controller = session().recording.controller
    assert controller is not None
    settings = GainProposalSettings(**wanted)
    return propose_gains(robot, chi, controller, motion.q, motion, settings, delay=delay)


def test_gains_are_as_stiff_as_their_margins_allow(arm):
    robot, chi, motion = arm
    found = propose(arm, change=20.0)
    assert found.better
    assert found.new_margins[0] >= GAIN_MARGIN * 0.999
    assert found.new_margins[1] >= PHASE_MARGIN * 0.999
    # A little stiffer, and a margin is lost somewhere.
    assert min(found.new_margins[0] / GAIN_MARGIN, found.new_margins[1] / PHASE_MARGIN) < 1.25
    diagonal = np.diagonal(mass_matrix(robot, chi, motion.q[::400]), axis1=1, axis2=2)
    for j, gains in enumerate(found.new.values()):
        assert gains.inertia == pytest.approx(diagonal[:, j].max(), rel=0.02)
        for inertia in (diagonal[:, j].min(), diagonal[:, j].max()):
            # As SciPy sees each joint's own loop.
            _, L = open_loop(inertia, (gains.p, gains.i, gains.d), RATE, 1)
            unity = np.flatnonzero((np.abs(L[:-1]) > 1.0) & (np.abs(L[1:]) <= 1.0))
            assert np.angle(-L[unity]).min() > PHASE_MARGIN
            crossing = np.flatnonzero((L.imag[:-1] * L.imag[1:] < 0.0) & (L.real[:-1] < 0.0))
            assert (-L.real[crossing]).max(initial=0.0) < 1.0 / GAIN_MARGIN


def test_a_late_drive_bears_softer_gains(arm):
    soft, stiff = (propose(arm, change=20.0, delay=delay) for delay in (6e-3, None))
    for joint in JOINTS:
        assert soft.new[joint].p < 0.5 * stiff.new[joint].p


def test_a_delay_is_what_the_recording_says():
    held, removed = (
        finding('efforts_held', delay=5e-4),
        finding('delay_removed', delay=3e-3, sigma=1e-4),
    )
    assert [loop_delay(x) for x in ((), (held,), (held, removed))] == [None, 5e-4, 3e-3]


def test_the_error_that_is_predicted_is_that_of_the_plant(arm):
    """MuJoCo with the plant's own controller, nothing of which the simulation knows."""
    found = propose(arm)
    errors = []
    for gains in (found.old, found.new):
        own = {j: GainSettings(p=g.p, i=g.i, d=g.d) for j, g in gains.items()}
        _, (q, _, _, wanted, *_) = run_arm(dataclasses.replace(SETTINGS, gains=own))
        errors.append(
            np.sqrt(np.mean((wanted - q)[round(0.5 * RATE) : round(3.5 * RATE)] ** 2, axis=0))
        )
    assert found.better
    assert found.ratio == pytest.approx(tuple(errors[1] / errors[0]), rel=0.03)


def test_gains_that_would_be_softer_are_not_better(arm):
    found = propose(arm, bandwidth=0.1)
    assert not found.better and not found.why
    assert [g.p for g in found.new.values()] == [0.5 * GAINS[joint].p for joint in JOINTS]
    assert min(found.ratio) > 1.5


@pytest.mark.parametrize(
    ('damping', 'limit', 'why'),
    [(1.0, 1.5, ''), (1.0, 0.9, 'saturates'), (1e-3, 1.5, 'swings'), (-0.1, 1.5, 'swings')],
)
def test_a_simulation_finds_what_swings_and_what_saturates(arm, damping, limit, why):
    """Without friction and with next to no damping it goes on; limits bound what is unstable."""
    robot, chi, motion = arm
    chi = np.where([p.symbol in ('Fv', 'Fc', 'off') for p in robot.parameters], 0.0, chi)
    short = Motion(*(x[:2000] for x in motion))
    short = Motion(short.q + 0.3 * (np.arange(2000) > 1990)[:, None], *short[1:])
    needed = np.abs(inverse_dynamics(robot, chi, *(x[:1900] for x in motion))).max(axis=0)
    bounded = dataclasses.replace(robot.limits, effort=limit * needed)
    robot = dataclasses.replace(robot, limits=bounded)
    p, d = (np.array([getattr(GAINS[j], k) for j in JOINTS]) for k in 'pd')
    law = JointTrajectoryEffort(RATE, p, d=damping * d, limit=robot.largest_efforts)
    calm = Motion(*(x[:1900] for x in motion)) if not why or why == 'saturates' else short
    assert module._simulated(robot, direct_model(robot, chi), law, calm, 1)[1] == why


def test_gains_that_a_simulation_does_not_bear_are_not_proposed(arm, monkeypatch):
    calls = []

    def swings(robot, direct, law, motion, delay):
        calls.append(law.p)
        return Tracking(robot.joints, np.zeros(2), np.ones((2, 3))), 'swings' * (len(calls) > 1)

    monkeypatch.setattr(module, '_simulated', swings)
    found = propose(arm)
    assert (found.why, found.new, found.better) == ('swings', found.old, False)
    # Softer and softer ones were tried.
    assert len(calls) > 4 and (np.diff(calls[1:], axis=0) <= 0.0).all()


@pytest.mark.parametrize('value', [0.0, np.nan])
def test_no_gains_follow_from_results_without_bodies(arm, value: float):
    robot, _, motion = arm
    with pytest.raises(ControllerError, match='no physically consistent parameters'):
        propose((robot, np.full(robot.p, value), motion))


def test_margins_are_those_that_are_asked_for():
    assert 20.0 * np.log10(module.GAIN_MARGIN) == pytest.approx(6.0)
    assert np.degrees(module.PHASE_MARGIN) == pytest.approx(45.0)
