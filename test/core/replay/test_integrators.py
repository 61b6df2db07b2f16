"""Integration of the direct model against exact solutions, physics and another integrator."""

import dataclasses

import numpy as np
import pinocchio
import pytest
from scipy.integrate import solve_ivp

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.replay import simulation
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.simulation import (
    mass_matrices,
    MIDPOINT,
    RK4,
    runge_kutta,
    simulate,
    smallest_eigenvalue,
    steps_of,
)
from robotid_ros.exceptions import DivergenceError

from .arms import arm, block, Pushed, stepper

# Of the reference: slip speed below which friction is too small, relative and absolute tolerance.
SMOOTHING, TOLERANCES = 1e-6, (1e-9, 1e-12)
TRACKING = JointTrajectoryEffort(500.0, np.array([200.0, 80.0]), 100.0, np.array([20.0, 8.0]))


def adaptive(direct, h, feedback, _):
    """Return a reference step of h [s]: SciPy's LSODA with the signs `s = tanh(w/SMOOTHING)`."""
    slip, n = direct.slip_directions, direct.model.nv
    dry_torque, offset = slip.T * direct.coulomb, direct.offset

    def signs(dq):
        return np.tanh(slip @ dq / SMOOTHING)

    def step(start, tau):
        dq, tau = start[n:], tau - feedback @ start

        def rate(_, state):
            speed = state[n:]
            rest = tau - offset - dry_torque @ signs(speed)
            ddq = direct.acceleration(state[:n].copy(), speed.copy(), rest)
            return np.concatenate([speed, ddq])

        relative, absolute = TOLERANCES
        result = solve_ivp(rate, (0.0, h), start, method='LSODA', rtol=relative, atol=absolute)
        end = result.y[:, -1]
        return end, rate(0.0, start)[n:], signs(dq)

    return step


def simulated_by(integrator, *arguments):
    """Simulate by another integrator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, 'runge_kutta', integrator)
        return simulate(*arguments)


def four_stages(direct, h, feedback, _):
    return runge_kutta(direct, h, feedback, RK4)


def wave(count=1500, rate=500.0):
    t = np.arange(count)[:, None] / rate
    speed = np.array([3.0, 4.2])
    return Motion(
        np.sin(speed * t),
        speed * np.cos(speed * t),
        -(speed**2) * np.sin(speed * t),
    )


def fall(direct, h, duration=0.8, tau=(0.5, -0.2), tableau=RK4):
    step = stepper(direct, h, tableau)
    q, dq = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    for _ in range(round(duration / h)):
        q, dq, _, _ = step(q, dq, np.array(tau))
    return np.concatenate([q, dq])


@pytest.mark.parametrize(('tableau', 'order'), [(RK4, 4), (MIDPOINT, 2)])
def test_order_without_dry_friction(tableau, order):
    direct = arm(friction=(0.0, 0.0))
    exact = fall(direct, 0.0005)
    steps = (0.02, 0.01, 0.005)
    errors = [np.abs(fall(direct, h, tableau=tableau) - exact).max() for h in steps]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - order) < 0.3), orders


def test_two_stages_are_as_good_as_four_where_slips_reverse():
    direct, desired = arm(), wave(700)
    assert steps_of(direct, desired.q[0], 1.0 / TRACKING.rate, 1e-3) == (2, MIDPOINT)
    integrators = (runge_kutta, four_stages, adaptive)
    quick, four, sure = (simulated_by(x, direct, TRACKING, desired) for x in integrators)
    assert 0.0 < np.abs(quick.q - four.q).max() < 0.2 * np.abs(four.q - sure.q).max()
    assert np.abs(quick.q - sure.q).max() < 1.1 * np.abs(four.q - sure.q).max()


def test_four_stages_are_taken_where_two_would_not_do():
    q = np.zeros(2)
    assert steps_of(arm(), q, 2e-3, 2e-3) == (1, RK4)
    assert steps_of(arm(viscous=(30.0, 30.0)), q, 1e-3, 1e-3) == (1, RK4)
    assert steps_of(arm(friction=(0.0, 0.0)), q, 1e-3, 1e-3) == (1, RK4)
    assert steps_of(arm(smooth_friction=lambda q, dq: 0.0 * q), q, 1e-3, 1e-3) == (1, RK4)
    # A period that was computed may be longer by its rounding.
    assert steps_of(arm(), q, np.nextafter(1e-3, 1.0), 1e-3) == (1, MIDPOINT)


def test_no_step_is_longer_than_it_may_be():
    counts = [steps_of(arm(), np.zeros(2), 0.002, longest)[0] for longest in (4e-3, 5e-4)]
    assert counts == [1, 4]


def test_energy_is_conserved_without_friction():
    direct = arm(friction=(0.0, 0.0), viscous=(0.0, 0.0))
    data = direct.model.createData()

    def energy(state):
        q, dq = state[:2], state[2:]
        return 0.5 * dq @ mass_matrices(direct, q[None])[0] @ dq + (
            pinocchio.computePotentialEnergy(direct.model, data, q)
        )

    before, after = (energy(fall(direct, 0.001, t, (0.0, 0.0))) for t in (0.0, 5.0))
    assert abs(after - before) < 1e-8


@pytest.mark.parametrize('h', [0.001, 0.004])
def test_sliding_block_stops_where_it_should_and_stays(h):
    direct, speed, deceleration = block(2.0, friction=3.0), 0.7, 1.5
    step = stepper(direct, h)
    q, dq = np.zeros(1), np.array([speed])
    push = np.zeros(1)
    for _ in range(round(0.6 / h)):
        q, dq, _, _ = step(q, dq, push)
    # Within the step that stops it, the mean force is exact for the speed, not for the way.
    assert q[0] == pytest.approx(speed**2 / (2 * deceleration), abs=deceleration * h**2)
    assert dq[0] == 0.0
    rest = q.copy()
    for _ in range(50):
        q, dq, ddq, slip_sign = step(q, dq, np.array([-2.9]))
    assert dq[0] == 0.0 and q[0] == rest[0]
    assert slip_sign[0] == pytest.approx(-2.9 / 3.0) and ddq[0] == pytest.approx(0.0, abs=1e-12)
    q, dq, ddq, slip_sign = step(q, dq, np.array([-3.1]))
    assert ddq[0] == pytest.approx(-0.05) and slip_sign[0] == -1.0


@pytest.mark.parametrize('sign', [1.0, -1.0])
@pytest.mark.parametrize('late', [0.3, 0.996])
def test_a_block_that_reverses_within_a_step_keeps_its_speed(late, sign):
    """Of a step, it slides on for a share, and back for the rest."""
    mass, friction, force, h = 2.0, 3.0, 9.0, 0.01
    start = late * h * (force + friction) / mass
    back = -(1.0 - late) * h * (force - friction) / mass
    step = stepper(block(mass, friction=friction), h)
    _, dq, _, s = step(np.zeros(1), sign * np.array([start]), -sign * np.array([force]))
    assert dq[0] == pytest.approx(sign * back, rel=1e-9)
    assert s[0] == pytest.approx(sign * (2.0 * late - 1.0))


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_a_block_moves_as_soon_as_it_is_pushed_by_more_than_friction(sign):
    step, push = stepper(block(2.0, friction=3.0), 0.01), sign * np.array([3.0015])
    _, dq, _, s = step(np.zeros(1), np.zeros(1), push)
    assert dq[0] == pytest.approx(sign * 0.01 * 0.0015 / 2.0) and s[0] == sign


@pytest.mark.parametrize('mass', [2.0, 2e-9])
@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_what_friction_holds_does_not_creep(mass, sign):
    """Nor where rounding is large beside its speed; bent arms stop and stay, too."""
    step = stepper(block(mass, friction=3.0), 0.01)
    for push in np.linspace(0.1, 2.9, 30):
        _, dq, _, _ = step(np.zeros(1), np.zeros(1), sign * np.array([push]))
        assert dq[0] == 0.0
    step = stepper(arm(friction=(20.0, 9.0)), 1e-3)
    q, dq = sign * np.array([0.3, -0.2]), sign * np.array([0.5, -0.8])
    for k in range(200):
        q, dq, _, _ = step(q, dq, sign * np.array([1.0, 2.0]))
        assert np.all((dq == 0.0) | (np.abs(dq) > 1e-4))  # at once, with the step that stops it
        if k == 150:
            held = q.copy()
    np.testing.assert_array_equal([q, dq], [held, np.zeros(2)])


@pytest.mark.parametrize(('integrator', 'count'), [(runge_kutta, 300), (adaptive, 50)])
def test_an_offset_is_a_torque(integrator, count):
    """Also where slips reverse."""
    desired, offset = wave(count), np.array([0.9, -0.6])
    shifted = dataclasses.replace(arm(), offset=offset)
    law = dataclasses.replace(TRACKING, i=0.0)
    one = simulated_by(integrator, arm(), law, desired)
    pushed = Pushed(law, np.tile(offset, (count, 1)))
    other = simulated_by(integrator, shifted, pushed, desired)
    assert (np.abs(one.slip_sign) < 1.0).any() == (integrator is runge_kutta)
    np.testing.assert_allclose(one.q, other.q, atol=1e-8)


def test_a_step_without_a_reversal_is_computed_once():
    """Four stages, four accelerations."""
    calls = []
    direct = arm(smooth_friction=lambda q, dq: calls.append(q) or 0.0 * q)
    step, state = stepper(direct, 1e-3), (np.array([0.3, -0.2]), np.array([1.0, 2.0]))
    for _ in range(5):
        state = step(*state, np.zeros(2))[:2]
    assert len(calls) == 20


def test_fast_and_adaptive_integrators_agree():
    desired, direct = wave(700), arm()
    fast = simulate(direct, TRACKING, desired)
    sure = simulated_by(adaptive, direct, TRACKING, desired)
    scale = np.abs(sure.tau).max(axis=0)
    assert np.abs(fast.q - sure.q).max() < 1e-5
    # The turn itself falls anywhere in a step; elsewhere the torques are the same.
    assert np.quantile(np.abs(fast.tau - sure.tau) / scale, 0.99) < 1e-3
    finer = simulate(direct, TRACKING, desired, step=2.5e-4)
    assert np.abs(finer.q - sure.q).max() < 0.3 * np.abs(fast.q - sure.q).max()


@pytest.mark.parametrize('order', [..., np.array([1, 0])])
def test_a_joint_that_friction_holds_stays_where_it_is(order):
    """While another moves and turns, whatever the order of joints."""
    direct = arm(friction=(0.8, 9.0))
    damping, coulomb = np.diag(np.diag(direct.damping)[order]), direct.coulomb[order]
    direct = dataclasses.replace(direct, damping=damping, coulomb=coulomb, order=order)
    q, dq, ddq = wave()
    still = Motion(*(np.column_stack([x[:, 0], x[:1, 1] + 0.0 * x[:, 1]]) for x in (q, dq, ddq)))
    still.dq[:, 1] = 0.0
    law = dataclasses.replace(TRACKING, p=TRACKING.p[order], d=TRACKING.d[order], i=0.0)
    run = simulate(direct, law, Motion(*(x[:, order] for x in still)), step=1e-3)
    moving, held = np.arange(2)[order]
    assert np.ptp(run.q[:, moving]) > 1.0 and not run.dq[:, held].any()
    assert np.ptp(run.q[:, held]) < 2e-9  # of steps in which the other one turns
    assert np.all(np.abs(run.slip_sign[:, held]) < 1.0) and np.ptp(run.slip_sign[:, held]) > 0.1


@pytest.mark.parametrize('settings', [{}, {'step': 5e-4}, {'delay': 2}])
def test_feedback_is_the_same_inside_the_integrator(settings):
    """A limit that is never reached leaves the law to be called."""
    law = dataclasses.replace(TRACKING, i=0.0, gain=2.0)
    called = dataclasses.replace(law, limit=1e9)
    rate = dataclasses.replace(law, rate=1000.0), dataclasses.replace(called, rate=1000.0)
    one, other = (simulate(arm(), each, wave(800, 1000.0), **settings) for each in rate)
    assert np.ptp(one.slip_sign, axis=0).all()
    for mine, same in zip(one[1:], other[1:], strict=True):
        np.testing.assert_allclose(mine, same, rtol=1e-8, atol=1e-9)


def test_every_row_balances():
    direct = arm()
    run = simulate(direct, TRACKING, wave())
    data = direct.model.createData()
    assert (np.abs(run.slip_sign) < 1).any()
    for q, dq, ddq, tau, slip in zip(run.q, run.dq, run.ddq, run.tau, run.slip_sign, strict=True):
        rigid = pinocchio.rnea(direct.model, data, q, dq, ddq)
        friction = direct.damping @ dq + direct.coulomb * slip
        np.testing.assert_allclose(rigid + friction, tau, atol=1e-9)


def test_coupled_inertia_is_that_of_the_joints_when_it_is_diagonal():
    extra = np.array([0.3, 0.2])
    plain, coupled = arm(), arm(coupled_inertia=np.diag(extra))
    plain.model.armature = plain.model.armature + extra
    one, other = (simulate(direct, TRACKING, wave(300)) for direct in (plain, coupled))
    np.testing.assert_allclose(one.q, other.q, atol=1e-10)


def test_coupled_motor_sticks_and_turns_like_the_adaptive_one():
    ratios = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    inertia = 0.1 * np.outer(ratios[2], ratios[2])
    direct = arm(friction=(0.4, 0.2, 0.3), slip_directions=ratios, coupled_inertia=inertia)
    fast = simulate(direct, TRACKING, wave(500))
    sure = simulated_by(adaptive, direct, TRACKING, wave(500))
    assert np.abs(fast.q - sure.q).max() < 2e-5


def test_a_motor_that_sticks_stops_no_joint():
    """Of a motor that turns by the sum of two joints: they go on, one against the other."""
    direct = arm(friction=(50.0,), slip_directions=np.array([[1.0, 1.0]]), gravity=0.0)
    step = stepper(direct, 1e-3)
    q, dq = np.array([0.3, -0.2]), np.array([1.0, -1.0])
    for _ in range(50):
        q, dq, _, _ = step(q, dq, np.zeros(2))
        assert abs(dq.sum()) < 1e-6 and 0.5 < dq[0] < 1.0


def test_steep_smooth_friction_gets_smaller_steps():
    def steep(_, dq):
        return 2.0 * np.tanh(dq / 1e-3)

    direct = arm(friction=(0.0, 0.0), smooth_friction=steep)
    assert steps_of(direct, np.zeros(2), 0.002, 0.001)[0] > 5
    run = simulate(direct, TRACKING, wave(400))
    sure = simulated_by(adaptive, direct, TRACKING, wave(400))
    np.testing.assert_allclose(run.q, sure.q, atol=1e-6)


def test_unstable_loop_is_said_not_returned():
    wild = JointTrajectoryEffort(500.0, np.array([-200.0, -80.0]))
    with pytest.raises(DivergenceError, match='leaves its reference'):
        simulate(arm(), wild, wave())


def test_a_robot_held_at_rest_has_not_left_its_reference():
    q = np.tile([0.3, -0.2], (200, 1))
    held = Motion(q, *np.zeros((2, 200, 2)))
    assert np.abs(simulate(arm(), TRACKING, held).q - q).max() < 1e-3


def test_definiteness_is_seen():
    mass = mass_matrices(arm(), np.column_stack([np.zeros(9), np.linspace(-3.0, 3.0, 9)]))
    inertia = mass.diagonal(axis1=1, axis2=2).max(axis=0)
    assert smallest_eigenvalue(mass) > 0.0
    worse = mass - 1.1 * np.diag(inertia)
    assert smallest_eigenvalue(worse) < 0.0
    mass[4, 0, 1] = mass[4, 1, 0] = 2.0 * inertia[0]
    assert smallest_eigenvalue(mass) < 0.0
