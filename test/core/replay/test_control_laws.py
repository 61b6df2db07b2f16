"""Control laws against independent loops and against a real drive."""

import dataclasses
import math
from pathlib import Path

from best_cases import tuned_pd
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.replay.control_laws import (
    CascadeControl,
    control_law_of,
    CONTROL_LAWS,
    JointTrajectoryEffort,
    STRATEGIES,
)
from robotid_ros.core.replay.simulation import simulate
from robotid_ros.core.signals.recording import Controller
from robotid_ros.exceptions import UnknownNameError
from robotid_ros.plant.trajectory import Goal, Point
from robotid_ros.plant.trajectory_controller import (
    ControllerSettings,
    GoalTolerances,
    Pid,
    TrajectoryController,
)
from robotid_ros.simulation_settings import GainSettings

from .arms import block

TYPE = 'joint_trajectory_controller/JointTrajectoryController'
EMPS = Path(__file__).parents[4] / 'shared' / 'datasets' / 'emps' / 'ident.npz'


def random_desired(seed, count=40, n=3):
    rng = np.random.default_rng(seed)
    return Motion(*(rng.normal(size=(count, n)) for _ in range(3)))


def pid_outputs(gains, desired, states, rate):
    """Run joints of the simulated robot's own PID, which stands on control_toolbox, in turn."""
    outputs = np.zeros_like(desired.q)
    for j, joint in enumerate(gains):
        pid = Pid(joint)
        for k, (q, dq) in enumerate(states):
            ahead = min(k + 1, len(states) - 1)
            effort = pid.compute(desired.q[k, j] - q[j], desired.dq[k, j] - dq[j], 1.0 / rate)
            outputs[k, j] = effort + joint.ff_velocity_scale * desired.dq[ahead, j]
    return outputs


def recorded(gains):
    """Return what a recorder keeps of a joint's gains: numbers, and the name of the strategy."""
    values = dataclasses.asdict(gains)
    strategy = values.pop('antiwindup_strategy')
    return values | {f'antiwindup_{strategy}': 1.0}


def law_for(gains, rate):
    joints = tuple(f'joint_{k}' for k in range(len(gains)))
    known = {joint: recorded(g) for joint, g in zip(joints, gains, strict=True)}
    return control_law_of(
        Controller('arm', TYPE, rate, joints, ('effort',), known), joints, np.ones(1)
    )


bounds = st.sampled_from([math.inf, 0.02, 0.0])
a_gain = st.floats(0.0, 50.0)
joint_gains = st.builds(
    GainSettings,
    p=a_gain,
    i=st.sampled_from([0.0, 3.0, 400.0]),
    d=a_gain,
    ff_velocity_scale=st.sampled_from([0.0, 2.5]),
    i_clamp=bounds,
    i_clamp_max=bounds,
    i_clamp_min=bounds.map(lambda x: -x),
    u_clamp_max=st.sampled_from([math.inf, 1.5]),
    u_clamp_min=st.sampled_from([-math.inf, -0.5]),
    tracking_time_constant=st.sampled_from([0.0, 0.3]),
    error_deadband=st.sampled_from([0.0, 0.4]),
    antiwindup_strategy=st.sampled_from(STRATEGIES),
)


@settings(max_examples=100)
@given(gains=st.lists(joint_gains, min_size=1, max_size=3), seed=st.integers(0, 1000))
def test_trajectory_controller_law(gains, seed):
    desired = random_desired(seed, n=len(gains))
    states = list(np.random.default_rng(seed + 1).normal(size=(40, 2, len(gains))))
    step = law_for(gains, 250.0).start(desired)
    ours = np.array([step(k, state.ravel()) for k, state in enumerate(states)])
    np.testing.assert_allclose(
        ours, pid_outputs(gains, desired, states, 250.0), rtol=1e-12, atol=1e-12
    )


def test_a_strategy_that_is_not_known_is_refused():
    controller = Controller(
        'arm', TYPE, 100.0, ('a',), ('effort',), {'a': {'antiwindup_new': 1.0}}
    )
    with pytest.raises(UnknownNameError, match=r'anti-windup strategy.*new'):
        control_law_of(controller, ('a',), np.ones(1))


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_whatever_a_recording_holds_of_the_controllers_gains_may_be_configured(strategy):
    held = recorded(GainSettings(antiwindup_strategy=strategy))
    assert set(held) <= set(CONTROL_LAWS[TYPE].gains)


@settings(max_examples=50)
@given(gains=joint_gains, factor=st.floats(0.1, 10.0), seed=st.integers(0, 1000))
def test_scaled_law_scales_the_torque_alone(gains, factor, seed):
    """The gain update of eq. 59 must not change what clamps and integral do."""
    desired, law = random_desired(seed, n=1), law_for([gains], 250.0)
    states = list(np.random.default_rng(seed + 1).normal(size=(40, 2, 1)))
    one, other = (each.start(desired) for each in (law, law.scaled(factor)))
    for k, state in enumerate(states):
        np.testing.assert_allclose(
            other(k, state.ravel()), factor * one(k, state.ravel()), rtol=1e-12
        )


def test_pd_has_the_frequency_and_damping_it_was_tuned_for():
    inertia, gain = np.array([3.6, 0.06]), np.array([2.0, 0.5])
    law = tuned_pd(200.0, np.array([6.0, 60.0]), np.array([1.0, 0.7]), inertia, gain)
    loop = law.loop
    np.testing.assert_allclose(np.sqrt(loop.stiffness / inertia), [6.0, 60.0])
    np.testing.assert_allclose(loop.damping / (2 * np.sqrt(loop.stiffness * inertia)), [1.0, 0.7])


@pytest.mark.parametrize(
    'law',
    [
        CascadeControl(500.0, np.array([20.0]), np.array([60.0]), ki=900.0, differences=True),
        JointTrajectoryEffort(500.0, np.array([900.0]), 300.0, np.array([60.0]), limit=8.0),
    ],
)
def test_scaled_law_keeps_the_motion_of_a_heavier_robot(law):
    t = np.arange(500) / 500.0
    q = np.column_stack([0.2 * np.sin(6 * t)])
    desired = Motion(q, np.gradient(q, t, axis=0), 0 * q)
    light = simulate(block(2.0), law, desired)
    heavy = simulate(block(14.0), law.scaled(7.0), desired)
    np.testing.assert_allclose(heavy.q, light.q, atol=1e-12)
    np.testing.assert_allclose(heavy.tau, 7.0 * light.tau, rtol=1e-9, atol=1e-9)


def test_saturation_and_encoder():
    desired = Motion(*(np.zeros((9, 1)),) * 3)
    q = np.array([[0.0], [0.124], [0.126], [-0.5], [3.0]])
    still = np.zeros(1)

    def run(**options):
        step = JointTrajectoryEffort(100.0, np.array([-10.0]), **options).start(desired)
        return np.array([step(k, np.append(value, still))[0] for k, value in enumerate(q)])

    np.testing.assert_allclose(run(), [0.0, 1.24, 1.26, -5.0, 30.0])
    np.testing.assert_allclose(run(limit=2.0), [0.0, 1.24, 1.26, -2.0, 2.0])
    np.testing.assert_allclose(run(limit=2.0, gain=3.0), [0.0, 3.72, 3.78, -6.0, 6.0])
    np.testing.assert_allclose(run(resolution=0.25), [0.0, 0.0, 2.5, -5.0, 30.0])


def test_cascade_is_the_drive_of_a_real_axis():
    if not EMPS.exists():
        pytest.skip('the recordings of the EMPS axis are not on this machine')
    data = np.load(EMPS)
    q, zero = data['q'], np.zeros_like(data['q'])
    law = CascadeControl(1000.0, data['kp'][0], data['kv'][0], differences=True, limit=10.0)
    step = law.start(Motion(data['q_ref'], zero, zero))
    ours = np.array([step(k, np.append(value, zero[0])) for k, value in enumerate(q)])
    error = np.linalg.norm(ours - data['vir']) / np.linalg.norm(data['vir'])
    assert error < 0.01


@pytest.mark.parametrize(
    'law',
    [
        CascadeControl(500.0, np.array([20.0]), np.array([60.0]), ki=900.0, gain=2.0),
        JointTrajectoryEffort(500.0, np.array([900.0]), 300.0, np.array([60.0]), gain=2.0),
    ],
)
def test_an_integral_starts_in_balance(law):
    still = Motion(np.full((5, 1), 0.3), *(np.zeros((5, 1)),) * 2)
    step = law.start(still, np.array([7.0]))
    np.testing.assert_allclose(step(0, np.append(still.q[0], 0.0)), [7.0])
    np.testing.assert_allclose(law.start(still)(0, np.append(still.q[0], 0.0)), [0.0], atol=1e-15)


@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('integral', [0.0, 400.0])
def test_law_repeats_the_output_of_the_controller(integral, strategy):
    """Feed the law with what controller_state says of a run: it gives the recorded output."""
    gains = [
        GainSettings(
            p=p,
            i=integral,
            d=d,
            ff_velocity_scale=ff,
            i_clamp_max=2.0,
            i_clamp_min=-2.0,
            u_clamp_max=60.0,
            u_clamp_min=-60.0,
            antiwindup_strategy=strategy,
        )
        for p, d, ff in ((700.0, 60.0, 3.0), (300.0, 20.0, 0.0))
    ]
    joints, period = ('joint_0', 'joint_1'), 2_000_000
    controller = TrajectoryController(
        ControllerSettings(joints, (False, False), period, dict(zip(joints, gains, strict=True)))
    )
    controller.activate([0.0, 0.0], [0.0, 0.0])
    points = [
        Point(int(t * 1e9), [np.sin(t), 0.3 * t], [np.cos(t), 0.3 * (t < 0.99)], [], [])
        for t in np.arange(0.0, 1.01, 0.1)
    ]
    points[-1].velocities = [0.0, 0.0]
    controller.start(Goal(joints, 0, points), GoalTolerances())
    rng = np.random.default_rng(8)
    rows = []
    for k in range(450):
        q, dq = rng.normal(size=(2, 2)) * 0.1
        controller.update(k * period, 0.002, q.tolist(), dq.tolist())
        state = controller.state
        desired = state.desired
        rows.append((q, dq, desired.positions, desired.velocities, state.output))
    q, dq, q_r, dq_r, output = (np.array([row[i] for row in rows]) for i in range(5))
    law = law_for(gains, 500.0)
    step = law.start(Motion(q_r, dq_r, 0 * q_r))
    ours = np.array([step(k, np.append(q[k], dq[k])) for k in range(len(q))])
    # The last row's feed-forward is that of a sample that is not in the record.
    np.testing.assert_allclose(ours[:-1], output[:-1], rtol=1e-9, atol=1e-9)
