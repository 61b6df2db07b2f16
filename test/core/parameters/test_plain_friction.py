"""Plain friction that stands for others: what it is fitted to, and how far it is from that."""

from hypothesis import given, strategies as st
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, CoupledMotorSettings, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.friction import FRICTION_TERMS
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.parameters.plain_friction import plain_equivalent, plain_friction
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import LogSet
from robotid_ros.core.signals.recording import Recording

from ..conftest import motion, URDF
from ..model.arms import arm

positive = st.floats(1e-3, 1e3)
offsets = st.floats(-100.0, 100.0)


def values_of(plain):
    return np.array([plain.viscous, plain.coulomb, plain.offset])


@given(positive, positive, offsets)
def test_plain_friction_stays_as_it_is(viscous, coulomb, offset):
    dq = np.random.default_rng(0).normal(size=200)
    friction = viscous * dq + coulomb * np.sign(dq) + offset
    named = plain_equivalent(dq, friction, (viscous, coulomb, offset))
    assert values_of(named).tolist() == [viscous, coulomb, offset] and named.exact
    found = plain_equivalent(dq, friction)
    np.testing.assert_allclose(values_of(found), [viscous, coulomb, offset], atol=1e-9)
    assert found.exact and found.rms <= 1e-12 * np.abs(friction).max()


def test_both_directions_make_a_mean_and_an_offset():
    dq = np.random.default_rng(1).normal(size=500)
    found = plain_equivalent(dq, 2.0 * dq + np.where(dq > 0.0, 3.0, -1.0))
    np.testing.assert_allclose(values_of(found), [2.0, 2.0, 1.0], rtol=1e-12)
    assert found.exact


@pytest.mark.parametrize('root', [-3.0, -1.0, 0.5, 4.0])
@pytest.mark.parametrize('coulomb', [-1.0, 0.2, 2.0])
def test_it_is_the_bounded_least_squares_solution(root, coulomb):
    """By a second solver; speeds that occur twice as often count twice."""
    rng = np.random.default_rng(2)
    dq = np.concatenate([rng.uniform(-2.0, 2.0, 300), np.repeat(rng.uniform(0.1, 0.3, 40), 5)])
    friction = 0.8 * dq + coulomb * np.sign(dq) + root * np.cbrt(dq) + 0.1 * np.cos(9.0 * dq)
    found = plain_equivalent(dq, friction, (0.8, coulomb, 0.0))
    A = np.column_stack([dq, np.sign(dq), np.ones_like(dq)])
    bounds = ([0.0, 0.0, -np.inf], np.inf)
    expected = lsq_linear(A, friction, bounds, method='bvls')
    np.testing.assert_allclose(values_of(found), expected.x, rtol=1e-6, atol=1e-7)
    missed = np.sqrt(np.mean((A @ values_of(found) - friction) ** 2))
    assert found.rms == pytest.approx(missed)
    assert found.relative == pytest.approx(missed / np.sqrt(np.mean(friction**2)))
    assert not found.exact


def test_what_the_samples_do_not_tell_stays():
    dq = np.random.default_rng(3).uniform(0.1, 1.0, 100)  # one way only
    friction = 0.8 * dq + 2.0 + 0.7 + 0.5 * np.cbrt(dq)
    found = plain_equivalent(dq, friction, (0.8, 2.0, 0.7))
    assert found.coulomb - found.offset == pytest.approx(2.0 - 0.7)
    assert plain_equivalent(dq, 0.0 * dq).exact and plain_equivalent(dq, 0.0 * dq).rms == 0.0


CONSTANTS = {
    **{'ripple_order': 7.0, 'ripple_order_2': 21.0, 'ripple_order_3': 60.0},
    **{'speed_scale': 1.5, 'load_scale': 10.0, 'load_low': 1.0, 'load_high': 30.0},
    **{'position_low': -1.0, 'position_high': 1.0, 'position_mean': 0.1},
}


@pytest.mark.parametrize(
    'term', [name for name in FRICTION_TERMS if name not in ('spring', 'position')]
)
def test_every_term_counts_as_the_model_has_it(term):
    """Its residual is the torque that is missed, by inverse dynamics, whatever the term."""
    robot = arm(friction={'default': (term, 'spring')}, friction_constants={'default': CONSTANTS})
    rng = np.random.default_rng(4)
    chi = np.array(robot.prior)
    drives = np.array([p.symbol not in INERTIAL for p in robot.parameters])
    chi[drives] = rng.uniform(0.5, 1.0, drives.sum())
    q, dq, ddq = (np.tile(x, 2)[:, : robot.n] for x in motion(np.arange(2000) / 200.0, 1))
    moving = np.abs(dq) > 0.02
    found = plain_friction(robot, chi, Motion(q, dq, ddq))
    others = np.array([p.symbol in (*INERTIAL, 'Ia', 'Kq') for p in robot.parameters])
    friction = inverse_dynamics(robot, chi, q, dq, ddq, successive=True)
    friction -= inverse_dynamics(robot, np.where(others, chi, 0.0), q, dq, ddq)
    assert [*found] == [*robot.joints]
    for j, plain in enumerate(found.values()):
        speed, torque = dq[moving[:, j], j], friction[moving[:, j], j]
        A = np.column_stack([speed, np.sign(speed), np.ones_like(speed)])
        missed = np.sqrt(np.mean((A @ values_of(plain) - torque) ** 2))
        assert plain.recorded and plain.rms == pytest.approx(missed, rel=1e-6, abs=1e-9)
        least = lsq_linear(A, torque, ([0.0, 0.0, -np.inf], np.inf), method='bvls')
        assert plain.rms <= np.sqrt(2.0 * least.cost / len(torque)) * (1.0 + 1e-9) + 1e-9


def test_of_a_motor_that_turns_several_joints_nothing_is_negative():
    ratios = {'wrist': CoupledMotorSettings((0.0, 1.0, 0.0, -2.0))}
    robot = arm(friction={'default': ('viscous',)}, couplings=ratios)
    chi = np.array(robot.prior)
    chi[[robot.column('Fv24'), robot.column('Fc24')]] = -0.1, 0.7
    q, dq, ddq = (np.tile(x, 2)[:, :4] for x in motion(np.arange(2000) / 200.0, 1))
    found = plain_friction(robot, chi, Motion(q, dq, ddq))
    assert [*found] == [*robot.joints, 'wrist']
    assert found['wrist'].viscous == 0.0 and 0.0 < found['wrist'].coulomb < 0.7
    assert found['arm'].exact and not found['wrist'].exact


def test_without_a_recording_all_speeds_up_to_the_limit_count_alike():
    robot = arm(friction={'default': ('root_viscous', 'coulomb')})
    chi = np.array(robot.prior)
    chi[[robot.column(f'Fr{k}') for k in range(1, 5)]] = 2.0
    found = plain_friction(robot, chi)['slide']
    speed = np.linspace(-3.0, 3.0, 20001)
    speed = speed[np.abs(speed) >= 0.02]
    expected = plain_equivalent(
        speed, 2.0 * np.cbrt(speed) + chi[robot.column('Fc3')] * np.sign(speed)
    )
    assert not found.recorded and found.offset == 0.0
    np.testing.assert_allclose(values_of(found)[:2], values_of(expected)[:2], rtol=0.02)
    assert found.relative == pytest.approx(expected.relative, rel=0.02)


@pytest.mark.parametrize('of_one', [True, False])
def test_an_identification_has_it_at_the_speeds_of_its_recording(of_one):
    """Of several logs, too: those that were slow count as the others do."""
    terms = ('viscous', 'coulomb', 'root_viscous', 'offset')
    robot = build_robot(URDF, RobotSettings(friction={'default': terms}, rotor_inertia=True))
    chi = np.array(robot.prior)
    for k in (1, 2, 3):
        for symbol, value in (('Ia', 0.2), ('Fv', 1.5), ('Fc', 2.0), ('Fr', -0.7), ('off', 0.1)):
            chi[robot.column(f'{symbol}{k}')] = value
    time, logs, speeds = np.arange(6000) / 200.0, [], []
    for seed, slower in ((0, 1.0), (1, 3.0)):
        q, dq, ddq = motion(time / slower, seed)
        dq, ddq = dq / slower, ddq / slower**2
        logs.append(Recording(robot.joints, time, q, inverse_dynamics(robot, chi, q, dq, ddq)))
        speeds.append(dq)
    settings = IdentificationSettings(essential=False)
    found = identify(logs[1] if of_one else LogSet(tuple(logs)), robot, settings)
    dq = speeds[1] if of_one else np.vstack(speeds)
    for j, plain in enumerate(found.plain_friction.values()):
        speed = dq[np.abs(dq[:, j]) > 0.02, j]
        truth = 1.5 * speed + 2.0 * np.sign(speed) - 0.7 * np.cbrt(speed) + 0.1
        expected = plain_equivalent(speed, truth)
        assert plain.recorded and plain.relative == pytest.approx(expected.relative, rel=0.1)
        np.testing.assert_allclose(values_of(plain), values_of(expected), rtol=0.03, atol=0.01)
