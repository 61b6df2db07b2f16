"""DIDIM: noise-free data give the truth back; what cannot work is said."""

import dataclasses
import types

from best_cases import tuned_pd
import numpy as np
import pytest

from robotid_ros.core.diagnostics.data_quality import disagreement_warnings
from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.findings import finding, select
from robotid_ros.core.identification_settings import IdentificationSettings, ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import CoupledMotorSettings, RobotSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.observation_system import Rows
from robotid_ros.core.replay.control_laws import ControlLaw, JointTrajectoryEffort
from robotid_ros.core.replay.didim import anderson_mixing, didim, MAX_MIXING_WEIGHT
from robotid_ros.core.replay.replay_problem import make_replay_problem, ReplayProblem, Torque
from robotid_ros.core.replay.simulated_observation import with_all_rows
from robotid_ros.core.replay.simulation import direct_model, simulate
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Controller, Recording, Reference, SignalSettings
from robotid_ros.exceptions import (
    ControllerError,
    DivergenceError,
    RecordingError,
    UnknownNameError,
)

from .arms import parameters, planar_urdf

RATE = 500.0
TIGHT = ReplaySettings(
    decimation=5, residual_tolerance=1e-9, parameter_tolerance=1e-8, iterations=30, step=0.002
)
OMEGA, INERTIA = np.array([20.0, 40.0]), np.array([3.0, 0.7])
P, D = np.array([3000.0, 600.0]), np.array([200.0, 40.0])


def wave(duration=8.0, speed=1.0):
    t = np.arange(round(duration * RATE))[:, None] / RATE
    rng = np.random.default_rng(1)
    q, dq, ddq = (np.zeros((t.size, 2)) for _ in range(3))
    for harmonics in ((1, 1), (2, 3), (3, 4), (5, 6)):
        w = speed * 2.0 * np.pi / 8.0 * np.array(harmonics)
        a = rng.uniform(0.2, 0.6, 2)
        q += a * (1.0 - np.cos(w * t))
        dq += a * w * np.sin(w * t)
        ddq += a * w * w * np.cos(w * t)
    return Motion(q, dq, ddq)


def case_of(
    settings=TIGHT, coupled=False, noise=0.0, law=None, duration=8.0, speed=1.0, friction=None
):
    """Return a replay of torques that the package itself simulated, and the true parameters."""
    couplings = {'wrist': CoupledMotorSettings((1.0, 1.0))} if coupled else {}
    robot = build_robot(
        planar_urdf(),
        RobotSettings(
            couplings=couplings,
            gravity=(0.0, -9.81, 0.0),
            friction=friction or {},
            friction_constants={'default': {'ripple_order': 15.0}},
        ),
    )
    base = base_parameters(robot)
    chi = parameters(robot, 4)
    law = law or JointTrajectoryEffort(RATE, P, 0.0, D)
    desired = wave(duration, speed)
    run = simulate(direct_model(robot, chi), law, desired, step=settings.step)
    tau = run.tau + noise * run.tau.std(axis=0) * np.random.default_rng(2).normal(size=run.q.shape)
    torque = Torque(np.arange(len(tau)) * 1.0, tau, np.ones(len(tau), dtype=bool), RATE)
    measured = Motion(run.q, run.dq, run.ddq)
    return ReplayProblem(robot, base, law, desired, torque, measured, settings), base.of(chi)


@pytest.mark.parametrize('start', ['regular', 'regular_zz', 'prior'])
def test_truth_from_any_start_without_noise(start):
    replay, true = case_of()
    found = didim(replay, replay.initial_parameters(start))
    np.testing.assert_allclose(found.estimate.value, true, atol=1e-6)
    last = found.history.iterations[-1]
    assert last.torque_error.max() < 1e-6
    assert last.position_error.max() < 1e-6


@pytest.mark.parametrize('coupled', [False, True])
def test_truth_with_integral_feed_forward_and_coupling(coupled):
    law = JointTrajectoryEffort(RATE, P, np.array([2000.0, 500.0]), D, np.array([5.0, 2.0]))
    replay, true = case_of(coupled=coupled, law=law)
    found = didim(replay, replay.initial_parameters('regular'))
    np.testing.assert_allclose(found.estimate.value, true, atol=1e-6)


def test_truth_with_springs_and_ripple():
    terms = ('viscous', 'coulomb', 'offset', 'spring', 'ripple')
    replay, true = case_of(friction={'default': terms})
    found = didim(replay, replay.initial_parameters('regular'))
    assert {'Kq1', 'Kq2', 'Rc1', 'Rs2'} <= set(found.estimate.names)
    np.testing.assert_allclose(found.estimate.value, true, atol=1e-6)


def test_regular_start_makes_the_mass_matrix_one():
    replay, _ = case_of(duration=1.0)
    np.testing.assert_allclose(replay.inertia(replay.initial_parameters('regular')), [1.0, 1.0])


def test_few_steps_and_honest_sigma_with_noise():
    replay, true = case_of(ReplaySettings(decimation=5, step=0.002), noise=0.03)
    seen = []
    found = didim(replay, replay.initial_parameters('regular'), progress=seen.append)
    assert found.history.steps <= 4
    assert np.all(np.abs(found.estimate.value - true) <= 4.5 * found.estimate.sigma)
    assert [record.number for record in seen] == list(range(found.history.steps + 1))
    rows = [*found.history.rows()]
    assert rows[0]['torque error joint_1'] > rows[-1]['torque error joint_1'] > 0.0


def test_position_is_never_looked_at():
    replay, _ = case_of(ReplaySettings(decimation=5, step=0.002), noise=0.03)
    wrong = dataclasses.replace(replay, measured=Motion(*(-2.0 * x for x in replay.measured)))
    with_motion = didim(replay, replay.initial_parameters('regular'))
    without = didim(wrong, wrong.initial_parameters('regular'))
    np.testing.assert_array_equal(with_motion.estimate.value, without.estimate.value)


def test_soft_loop_is_warned_of():
    soft = JointTrajectoryEffort(RATE, P / 40.0, 0.0, D / 6.0)
    replay, _ = case_of(ReplaySettings(decimation=5, step=0.002), law=soft, noise=0.01)
    found = didim(replay, replay.initial_parameters('prior'))
    assert select(found.history.findings, 'loop_slow')


def test_wrong_torques_end_in_an_error_with_the_last_estimate():
    replay, _ = case_of(ReplaySettings(decimation=5, step=0.002, iterations=6))
    wrong = replay.torque._replace(tau=-replay.torque.tau)
    with pytest.raises(DivergenceError) as caught:
        didim(dataclasses.replace(replay, torque=wrong), replay.initial_parameters('regular'))
    assert caught.value.iteration >= 1
    assert caught.value.estimate is not None


def test_inertia_that_is_none_is_refused():
    replay, _ = case_of(duration=1.0)
    chi = replay.initial_parameters('regular')
    chi[replay.robot.column('Ia2')] -= 2.0
    with pytest.raises(DivergenceError, match=r'not positive definite.*joint_2'):
        didim(replay, chi)


def recording_of(replay, law):
    """Return what a session's bag would hold of a replay: one update late, with gaps."""
    run = simulate(
        direct_model(replay.robot, parameters(replay.robot, 4)), law, replay.desired, step=0.002
    )
    time = 100.0 + np.arange(len(run.q)) / RATE
    kept = np.random.default_rng(3).uniform(size=len(time)) > 0.01
    gains = {
        joint: {'p': P[j], 'd': D[j], 'i': 0.0} for j, joint in enumerate(replay.robot.joints)
    }
    return Recording(
        replay.robot.joints,
        time,
        run.q,
        np.vstack([run.tau[:1], run.tau[:-1]]),
        reference=Reference(time[kept], *(x[kept] for x in replay.desired[:3])),
        controller=Controller(
            'arm_controller',
            'joint_trajectory_controller/JointTrajectoryController',
            RATE,
            replay.robot.joints,
            ('effort',),
            gains,
        ),
    )


def test_recording_alone_is_enough():
    law = JointTrajectoryEffort(RATE, P, 0.0, D)
    replay, true = case_of(law=law)
    recording = recording_of(replay, law)
    samples = prepare(recording, replay.robot, SignalSettings())
    whole = make_replay_problem(recording, replay.robot, replay.base, TIGHT, samples)
    found = didim(whole, whole.initial_parameters())
    np.testing.assert_allclose(found.estimate.value, true, atol=2e-3)


def test_unknown_law_is_refused_with_the_remedy():
    replay, _ = case_of(duration=1.0)
    recording = recording_of(replay, replay.law)
    given = replay.robot, replay.base, TIGHT, prepare(recording, replay.robot, SignalSettings())
    # Gains of such a controller mean nothing, and it may have none.
    position = dataclasses.replace(
        recording.controller, command_interfaces=('position',), gains={}
    )
    with pytest.raises(ControllerError, match=r'commands position, not efforts.*identify by WLS'):
        make_replay_problem(dataclasses.replace(recording, controller=position), *given)
    with pytest.raises(ControllerError, match='does not hold the controller'):
        make_replay_problem(dataclasses.replace(recording, controller=None), *given)
    with pytest.raises(RecordingError, match='does not hold the reference'):
        make_replay_problem(dataclasses.replace(recording, reference=None), *given)


def test_a_gain_that_the_law_does_not_have_is_refused_where_it_is_configured():
    replay, _ = case_of(duration=1.0)
    recording = recording_of(replay, replay.law)
    samples = prepare(recording, replay.robot, SignalSettings())

    def law_of(law: str, gains: dict[str, float], recorded: dict[str, float]) -> ControlLaw:
        by_joint = dict.fromkeys(replay.robot.joints, gains) if gains else {}
        given = dataclasses.replace(TIGHT, law=law, rate=RATE, gains=by_joint)
        held = {joint: {'p': 3.0, **recorded} for joint in replay.robot.joints}
        controller = dataclasses.replace(recording.controller, gains=held)
        again = dataclasses.replace(recording, controller=controller)
        return make_replay_problem(again, replay.robot, replay.base, given, samples).law

    with pytest.raises(UnknownNameError, match="gain of the control law 'Kp': did you mean 'kp'"):
        law_of('cascade', {'Kp': 20.0, 'kv': 5.0}, {})
    with pytest.raises(UnknownNameError, match="gain of the control law 'kv': use one of p, i, d"):
        law_of('', {'p': 20.0, 'kv': 5.0}, {})
    np.testing.assert_array_equal(law_of('cascade', {'kp': 20.0, 'kv': 5.0}, {}).kv, 5.0)
    # A recorded controller has others, which no law needs.
    np.testing.assert_array_equal(law_of('', {}, {'angle_wraparound': 1.0}).p, 3.0)


def test_identify_by_didim():
    law = JointTrajectoryEffort(RATE, P, 0.0, D)
    replay, true = case_of(law=law)
    lines = []
    settings = IdentificationSettings(method='didim', replay=TIGHT)
    found = identify(recording_of(replay, law), replay.robot, settings, progress=lines.append)
    np.testing.assert_allclose(found.estimate.value, true, atol=2e-3)
    assert found.method == 'didim' and found.history.steps > 1
    assert any('DIDIM iteration 1' in line for line in lines)


@pytest.mark.parametrize(
    ('share', 'expected'), [(0.9, set()), (0.5, {'motion_doubtful'}), (0.25, {'motion_wrong'})]
)
def test_a_loop_that_is_not_the_robots_is_told(share, expected):
    # A PD loop on the position alone lags by its bandwidth, and needs a motion that is slow.
    replay, _ = case_of(
        dataclasses.replace(TIGHT, residual_tolerance=0.02, parameter_tolerance=0.02),
        noise=0.02,
        law=tuned_pd(RATE, OMEGA, np.ones(2), INERTIA),
        speed=0.5,
        duration=16.0,
    )
    slow = dataclasses.replace(replay, law=tuned_pd(RATE, share * OMEGA, np.ones(2), INERTIA))
    slow = dataclasses.replace(slow, a_priori_inertia=INERTIA)
    try:
        said = didim(slow, slow.initial_parameters('regular')).history.findings
    except DivergenceError:
        said = [finding('motion_wrong', ['j'], ratio=9.0)]
    names = ('motion_doubtful', 'motion_wrong')
    assert {name for name in names if select(said, name)} == expected


@pytest.mark.parametrize(('share', 'expected'), [(1.0, False), (0.3, True)])
def test_gains_that_change_within_the_motion_are_told(share, expected):
    before = JointTrajectoryEffort(RATE, P, 0.0, D)
    after = JointTrajectoryEffort(RATE, share * P, 0.0, share * D)

    def start(desired, initial_effort=None):
        first, second = (law.start(desired, initial_effort) for law in (before, after))
        return lambda k, state: (first if k < 2000 else second)(k, state)

    replay, _ = case_of(ReplaySettings(decimation=5, step=0.002), law=before)
    chi = parameters(replay.robot, 4)
    law = types.SimpleNamespace(rate=RATE, start=start)
    run = simulate(direct_model(replay.robot, chi), law, replay.desired, step=0.002)
    torque = replay.torque._replace(tau=run.tau)
    changed = dataclasses.replace(replay, torque=torque, measured=Motion(run.q, run.dq, run.ddq))
    said = didim(changed, changed.initial_parameters('regular')).history.findings
    assert bool(select(said, 'motion_doubtful', 'motion_wrong')) is expected


def test_what_a_recording_says_of_its_gains_is_in_the_result():
    law = JointTrajectoryEffort(RATE, P, 0.0, D)
    replay, _ = case_of(law=law, duration=4.0)
    note = finding('gains_changed', ['joint_2'])
    recording = dataclasses.replace(recording_of(replay, law), notes=(note,))
    settings = IdentificationSettings(method='didim', essential=False, replay=TIGHT)
    assert note in identify(recording, replay.robot, settings).findings


def test_both_methods_from_one_recording():
    law = JointTrajectoryEffort(RATE, P, 0.0, D)
    replay, true = case_of(law=law)
    recording = recording_of(replay, law)
    settings = IdentificationSettings(method='both', essential=False, replay=TIGHT)
    found = identify(recording, replay.robot, settings)
    assert (found.method, found.compared.method) == ('wls', 'didim')
    np.testing.assert_allclose(found.compared.estimate.value, true, atol=2e-3)
    assert found.history.steps == found.compared.history.steps > 1
    # Without the controller, or its gains, WLS stands, and says what is missing.
    assert recording.controller is not None
    for controller in (None, dataclasses.replace(recording.controller, gains={})):
        without = dataclasses.replace(recording, controller=controller)
        alone = identify(without, replay.robot, settings)
        assert alone.compared is None
        np.testing.assert_array_equal(alone.estimate.names, found.estimate.names)
        (said,) = select(alone.findings, 'nothing_to_compare')
        reason = said.values['reason']
        assert 'controller' in reason or 'holds no gains of' in reason


def test_disagreement_is_told_where_both_are_sure():
    replay, _ = case_of(noise=0.02)
    found = didim(replay, replay.initial_parameters('regular')).estimate
    moved = np.array(found.value)
    k = int(np.argmin(found.relative_sigma))
    moved[k] *= 1.5
    assert disagreement_warnings(found, found) == []
    (said,) = disagreement_warnings(found, dataclasses.replace(found, value=moved))
    assert said.values['parameters'] == (found.names[k],)


def test_rows_of_held_joints_tell_of_a_wrong_law_too():
    # A quarter of the rows is not fitted: the simulated joint is held there, by half of the torque
    # that was measured, which leaves √(1/4)·0.5 = 25 % of all torque unexplained.
    W, Y = np.ones((1, 100, 1)), np.ones((1, 100))
    W[0, 75:] = 0.5
    valid = np.arange(100)[None] < 75
    system = Rows(('Fc1',), ('N·m',), ('joint_1',), W, Y, valid, np.arange(100.0))
    assert system.total_residual(np.ones(1)) == 0.0
    assert with_all_rows(system).total_residual(np.ones(1)) == pytest.approx(0.25, abs=5e-3)


@pytest.mark.parametrize('sigma', [1.0, 0.0])
@pytest.mark.parametrize('first', [1.0, -1.0])
def test_a_linear_iteration_ends_at_its_fixed_point(first, sigma):
    """Also one without noise, whose σ are 0, and whatever the signs of its parameters."""
    A, c = np.array([[0.5, 0.1], [-0.2, 0.3]]), np.array([first, -2.0])
    values = [np.array([3.0, 1.0]) * first]
    for _ in range(2):
        values.append(A @ values[-1] + c)
    fits = np.array([A @ value + c for value in values])
    found = anderson_mixing(np.array(values), fits, np.full(2, sigma))
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(2) - A, c), rtol=1e-9)


def test_units_of_parameters_do_not_matter():
    """With fewer steps than parameters the mixing weighs these by their σ."""
    values, fits = np.random.default_rng(1).normal(size=(2, 3, 5))
    sigma, units = np.array([0.1, 1.0, 2.0, 0.5, 3.0]), np.array([1.0, 1e3, 1e-2, 1.0, 50.0])
    found = anderson_mixing(values, fits, sigma)
    other = anderson_mixing(values * units, fits * units, sigma * units)
    np.testing.assert_allclose(other, found * units, rtol=1e-9)


@pytest.mark.parametrize('sign', [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)])
def test_steps_that_are_nearly_parallel_are_not_extrapolated(sign):
    """f_2 is γ_1 and γ_2 of the two differences before it: large γ are refused, of any sign."""
    values, differences = np.zeros((3, 2)), np.array([[1.0, 0.0], [0.5, 1.0]])
    for share in (0.49, 0.51):
        weights = share * MAX_MIXING_WEIGHT * np.array(sign)
        last = weights @ differences
        fits = np.array([last - differences.sum(axis=0), last - differences[1], last])
        found = anderson_mixing(values, fits, np.ones(2))
        if share > 0.5:
            assert found is None
        else:
            np.testing.assert_allclose(found, 0.0, atol=1e-12)
