"""The identification model against RNEA, the direct model against the inverse one."""

import dataclasses

from forward_dynamics import forward_dynamics
from hypothesis import given, settings, strategies as st
import mujoco
import numpy as np
import pinocchio
import pytest

from robotid_ros.core.model import (
    CoupledMotorSettings,
    inverse_dynamics,
    mass_matrix,
    model_with,
    regressor,
)
from robotid_ros.core.model.dynamics import PathDynamics
from robotid_ros.core.model.friction import FRICTION_TERMS, make_terms
from robotid_ros.exceptions import ConfigurationError

from .arms import arm, urdf

COUPLED = {'wrist': CoupledMotorSettings((0.0, 1.0, 0.0, -2.0))}
WAYS = {'speed_scale': 2.0, 'load_scale': 1.5, 'load_low': 0.5, 'load_high': 3.0}
WAYS |= {'position_low': -1.0, 'position_high': 1.0, 'position_mean': 1e-12}
ORDERS = {'ripple_order': 7.0, 'ripple_order_2': 21.0, 'ripple_order_3': 60.0, **WAYS}
VARIANTS = [
    {},
    {'joints': ('turn', 'waist', 'slide', 'arm')},
    {'joints': ('slide', 'arm'), 'locked': {'turn': 0.4}},
    {'couplings': COUPLED, 'rotor_inertia': False},
    {'friction': {'default': ('viscous', 'stiction'), 'arm': ('makkar', 'offset')}},
    {'gravity': (0.0, 6.0, -3.0), 'friction': {'default': ()}},
    {'friction': {'default': ('viscous', 'coulomb', 'load_coulomb'), 'slide': ('load_coulomb',)}},
    {'friction': {'default': ('viscous', 'spring'), 'arm': ('load_coulomb', 'spring')}},
    {
        'friction': {'default': ('ripple',), 'arm': ('ripple', 'ripple_2')},
        'friction_constants': {'default': ORDERS},
    },
]


@pytest.mark.parametrize('variant', VARIANTS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_regressor_times_parameters_is_inverse_dynamics(variant, seed):
    robot = arm(**variant)
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.normal(size=(3, 7, robot.n))
    chi = rng.normal(size=robot.p)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    W = regressor(dataclasses.replace(robot, load_parameters=chi), q, dq, ddq)
    assert W.shape == (robot.n, 7, robot.p)
    scale = np.abs(W).max() * np.abs(chi).max() * robot.p
    np.testing.assert_allclose((W @ chi).T, tau, atol=1e-9 * scale)
    massless = chi.copy()  # as minimal parameters are
    massless[robot.body_columns[:, 9]] = 0.0
    for values in (chi, massless):
        exact, dynamics = inverse_dynamics(robot, values, q, dq, ddq), PathDynamics(robot, values)
        links, drives = dynamics.links(q, dq, ddq), dynamics.drives
        near = inverse_dynamics(robot, values, q, dq, ddq, links=links, drives=drives)
        np.testing.assert_allclose(near, exact, atol=1e-7 * np.abs(exact).max())
    model, bodies = model_with(robot, chi, armature=False), robot.body_columns.ravel()
    data, back = model.createData(), np.argsort(robot.order)
    states = zip(*(x[:, robot.order] for x in (q, dq, ddq)), strict=True)
    links = [pinocchio.rnea(model, data, *state)[back] for state in states]
    np.testing.assert_allclose((W[:, :, bodies] @ chi[bodies]).T, links, atol=1e-9 * scale)


@pytest.mark.parametrize('side', [1.0, -1.0, 1e5, 1e-5])
def test_first_moments_without_a_mass_are_those_of_the_regressor(side):
    """Of base parameters alone: a link that slides without a mass has a regressor only."""
    robot = arm(friction={'default': ()})
    q, zero = np.full((robot.n, robot.n), 0.4), np.zeros((robot.n, robot.n))
    chi = np.zeros(robot.p)
    for start in robot.first_columns:
        chi[start : start + 9] = side * np.array([9.0, 1.0, 1.0, 9.0, 1.0, 9.0, 3.0, 1.0, 2.0])
    still = inverse_dynamics(robot, chi, q, zero, zero)
    columns = inverse_dynamics(robot, chi, q, zero, np.eye(robot.n)) - still
    np.testing.assert_allclose(mass_matrix(robot, chi, q[0]), columns.T, atol=1e-6 * abs(side))
    W = regressor(robot, q, zero, zero)
    np.testing.assert_allclose(still.T, W @ chi, atol=1e-12 * abs(side))


def test_prior_gives_the_torque_of_the_description():
    robot = arm()
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, 20, robot.n))
    model = robot.model
    data = model.createData()
    expected = np.array(
        [pinocchio.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)]
    )
    expected += 0.5 * dq + 0.25 * np.sign(dq)
    np.testing.assert_allclose(inverse_dynamics(robot, robot.prior, q, dq, ddq), expected)


def test_blocks_do_not_show():
    robot = arm()
    rng = np.random.default_rng(2)
    q, dq, ddq = rng.normal(size=(3, 600, robot.n))
    whole = regressor(robot, q, dq, ddq)
    parts = [regressor(robot, q[k : k + 1], dq[k : k + 1], ddq[k : k + 1]) for k in range(600)]
    rounding = 1e-14 * np.abs(whole).max()
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0.0, atol=rounding)


@pytest.mark.parametrize('variant', VARIANTS[:4])
def test_forward_dynamics_undoes_inverse_dynamics(variant):
    robot = arm(**variant)
    rng = np.random.default_rng(3)
    q, dq, tau = rng.normal(size=(3, robot.n))
    ddq = forward_dynamics(robot, robot.prior, q, dq, tau)
    again = inverse_dynamics(robot, robot.prior, q[None], dq[None], ddq[None])[0]
    np.testing.assert_allclose(again, tau, rtol=1e-9, atol=1e-9)


def test_mass_matrix_is_the_torque_of_unit_accelerations():
    robot = arm(couplings=COUPLED, joints=('turn', 'slide', 'arm', 'waist'))
    chi = robot.prior.copy()
    chi[robot.column('Ia1')], chi[robot.column('Ia24')] = 0.3, 0.7
    q, zero = np.full((robot.n, robot.n), 0.4), np.zeros((robot.n, robot.n))
    still = inverse_dynamics(robot, chi, q, zero, zero)
    columns = inverse_dynamics(robot, chi, q, zero, np.eye(robot.n)) - still
    np.testing.assert_allclose(mass_matrix(robot, chi, q[0]), columns.T, atol=1e-10)


@pytest.mark.parametrize('variant', VARIANTS[:4])
def test_mass_matrix_of_parameters_that_no_body_has(variant):
    """Least squares give negative masses too: composite bodies of them have none of their own."""
    robot = arm(**variant)
    rng = np.random.default_rng(8)
    chi, q = rng.normal(size=robot.p), rng.normal(size=(20, robot.n))
    zero, unit = np.zeros((robot.n, robot.n)), np.eye(robot.n)
    for pose, matrix in zip(q, mass_matrix(robot, chi, q), strict=True):
        poses = np.tile(pose, (robot.n, 1))
        W = regressor(robot, poses, zero, unit) - regressor(robot, poses, zero, zero)
        np.testing.assert_allclose(matrix, W @ chi, atol=1e-12 * np.abs(chi).max() * robot.p)
        np.testing.assert_array_equal(matrix, mass_matrix(robot, chi, pose))


def test_permuted_joints_have_permuted_torques():
    plain, other = arm(), arm(joints=('turn', 'waist', 'slide', 'arm'))
    index = [plain.joints.index(joint) for joint in other.joints]
    q, dq, ddq = np.random.default_rng(4).normal(size=(3, 5, plain.n))
    np.testing.assert_allclose(
        inverse_dynamics(other, other.prior, q[:, index], dq[:, index], ddq[:, index]),
        inverse_dynamics(plain, plain.prior, q, dq, ddq)[:, index],
    )


def test_model_with_prior_is_the_description():
    robot = arm()
    model = model_with(robot, robot.prior)
    for ours, theirs in zip(model.inertias, robot.model.inertias, strict=True):
        assert ours.isApprox(theirs, 1e-12) or theirs.mass == 0.0 or ours.mass > 0.0
    q = np.full(robot.n, 0.2)
    data, other = model.createData(), robot.model.createData()
    np.testing.assert_allclose(
        pinocchio.crba(model, data, q), pinocchio.crba(robot.model, other, q), atol=1e-12
    )


def test_a_mass_below_nothing_is_kept():
    robot = arm()
    chi = np.array(robot.prior)
    chi[robot.first_columns + 9] = -2.0
    masses = [inertia.mass for inertia in model_with(robot, chi).inertias]
    np.testing.assert_array_equal(masses[1:], -2.0)


def test_armature_is_the_inertia_of_the_rotors():
    robot = arm(joints=('turn', 'slide', 'arm', 'waist'))
    chi, q = robot.prior.copy(), np.full(robot.n, 0.2)
    for k in range(robot.n):
        chi[robot.column(f'Ia{k + 1}')] = 0.3 + k
    for model, expected in (
        (model_with(robot, chi), mass_matrix(robot, chi, q)),
        (model_with(robot, chi, armature=False), mass_matrix(robot, robot.prior, q)),
    ):
        upper = np.triu(pinocchio.crba(model, model.createData(), q))
        found = (upper + np.triu(upper, 1).T)[
            np.ix_(np.argsort(robot.order), np.argsort(robot.order))
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize('name', sorted(n for n, kind in FRICTION_TERMS.items() if kind.of_path))
def test_friction_along_a_path_is_in_regressor_and_torque_alike(name):
    robot = arm(friction={'default': ('viscous', name)}, friction_constants={'default': ORDERS})
    q = np.cumsum(np.random.default_rng(6).normal(size=(40, robot.n)), axis=0)
    dq, ddq = np.gradient(q, axis=0), np.zeros_like(q)
    chi = np.random.default_rng(7).normal(size=robot.p)
    W = regressor(robot, q, dq, ddq, successive=True)
    np.testing.assert_allclose(
        inverse_dynamics(robot, chi, q, dq, ddq, successive=True), (W @ chi).T, atol=1e-9
    )
    plain = regressor(robot, q, dq, ddq)
    own = [
        [robot.column(f'{s}{j + 1}') for s in FRICTION_TERMS[name].symbols] for j in range(robot.n)
    ]
    others = np.setdiff1d(np.arange(robot.p), own)
    np.testing.assert_array_equal(W[:, :, others], plain[:, :, others])
    for j, columns in enumerate(own):
        values = robot.friction[j][1].columns(q[:, j], dq[:, j], successive=True)
        np.testing.assert_array_equal(W[j][:, columns].T, values)


@pytest.mark.parametrize('name', sorted(FRICTION_TERMS))
def test_friction_opposes_motion_and_is_odd_where_symmetric(name):
    robot = arm(friction={'default': (name,)}, friction_constants={'default': ORDERS})
    term = robot.friction[0][0]
    dq = np.array([-1.5, -0.2, 0.2, 1.5])
    columns = np.array(term.columns(dq, dq, np.array([2.0, -1.0, -1.0, 2.0])))
    assert columns.shape == (len(term.kind.symbols), 4)
    assert set(term.kind.positive) <= set(term.kind.symbols)
    for symbol, column in zip(term.kind.symbols, columns, strict=True):
        if symbol in term.kind.positive:
            assert np.all(column * dq >= 0.0)
    if name in ('offset', 'direction'):
        np.testing.assert_allclose(columns, columns[:, ::-1])
    elif 'asymmetric' not in name and 'ripple' not in name:
        np.testing.assert_allclose(columns, -columns[:, ::-1])


@pytest.mark.parametrize('name', sorted(FRICTION_TERMS))
def test_dry_friction_is_whole_at_speed_and_viscous_friction_proportional(name):
    robot = arm(friction={'default': (name,)}, friction_constants={'default': ORDERS})
    term, dq = robot.friction[0][0], np.array([0.5, 4.0, 8.0])
    whole = {
        'load_coulomb': np.array([2.0, 3.0, 0.0]),
        'root_viscous': np.array([0.5 ** (1 / 3), 4.0 ** (1 / 3), 2.0]),
    }
    columns = term.columns(np.cumsum(dq), dq, np.array([2.0, -3.0, 0.0]))
    for symbol, column in zip(term.kind.symbols, columns, strict=True):
        if name in whole:
            np.testing.assert_allclose(column, whole[name])
        elif symbol in ('Fc', 'Fcp'):
            np.testing.assert_allclose(column, 1.0)
        elif symbol in ('Fv', 'Fvp'):
            np.testing.assert_array_equal(column, dq)
        elif symbol in ('Fcm', 'Fvm'):  # of motion the other way
            np.testing.assert_array_equal(column, 0.0)


@pytest.mark.parametrize('name', ['smooth_coulomb', 'stiction', 'viscous', 'coulomb', 'ripple'])
def test_steep_friction_of_the_speed_jumps_at_standstill(name):
    """It has its whole change within less speed than filters resolve."""
    for steepness, order in ((20.0, 1e3), (2000.0, 7.0)):
        constants = {'stiction_steepness': steepness, 'tanh_steepness': steepness}
        (term,) = make_terms((name,), constants | {'ripple_order': order})
        slow = 0.003 * np.array([-1.0, 1.0])
        change = max(abs(np.diff(column)[0]) for column in term.columns(slow * 0.0, slow))
        assert term.has_step == (change > 1.0)


def test_terms_that_cannot_be_together_or_lack_a_constant_are_refused():
    with pytest.raises(ConfigurationError, match='coulomb share the parameter Fc'):
        make_terms(('viscous', 'coulomb', 'smooth_coulomb'), {})
    with pytest.raises(ConfigurationError, match="'ripple' needs 'ripple_order'"):
        make_terms(('viscous', 'ripple'), {'ripple_order_2': 3.0})


def test_a_spring_pulls_as_in_mujoco():
    robot = arm(friction={'default': ('spring', 'offset')}, joints=())
    model = mujoco.MjModel.from_xml_string(urdf())
    place = [int(model.joint(name).dofadr[0]) for name in robot.joints]
    stiffness, rest = np.array([30.0, 5.0, 80.0, 2.0]), np.array([0.4, -0.2, 0.1, 3.0])
    model.jnt_stiffness[place], model.qpos_spring[place] = stiffness, rest
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    chi = robot.prior.copy()
    for j in range(robot.n):
        chi[robot.column(f'Kq{j + 1}')] = stiffness[j]
        chi[robot.column(f'off{j + 1}')] = -stiffness[j] * rest[j]
    q, dq, ddq = np.random.default_rng(8).normal(size=(3, 5, robot.n))
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    for k in range(len(q)):
        data.qpos[place], data.qvel[place], data.qacc[place] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(tau[k], data.qfrc_inverse[place], rtol=1e-6, atol=1e-6)
        found = forward_dynamics(robot, chi, q[k], dq[k], tau[k])
        np.testing.assert_allclose(found, ddq[k], atol=1e-6)


def test_load_dependent_friction_is_a_share_of_what_the_links_take():
    plain = arm(friction={'default': ()}, rotor_inertia=False)
    robot = arm(friction={'default': ('load_coulomb',)}, rotor_inertia=False)
    rng = np.random.default_rng(3)
    q, dq, ddq = rng.normal(size=(3, 9, robot.n))
    chi = np.array(robot.prior)
    chi[[robot.column(f'Fl{j}') for j in range(1, robot.n + 1)]] = share = [0.1, 0.2, 0.05, 0.0]
    links = inverse_dynamics(plain, plain.prior, q, dq, ddq)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    W = regressor(dataclasses.replace(robot, load_parameters=chi), q, dq, ddq)
    np.testing.assert_allclose((W @ chi).T, tau, atol=1e-9)
    np.testing.assert_allclose(tau, links + share * np.abs(links) * np.sign(dq), atol=1e-12)
    found = [forward_dynamics(robot, chi, *state) for state in zip(q, dq, tau, strict=True)]
    np.testing.assert_allclose(found, ddq, atol=1e-8)
