"""Elastic robots: against balances written with Pinocchio, and parameters found again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, regressor, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.settings import CoupledMotorSettings, ElasticSettings
from robotid_ros.core.parameters.essential import restrict
from robotid_ros.core.pipeline.estimation import fit_with_instruments
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.recording import Recording, Samples, SignalSettings
from robotid_ros.exceptions import ConfigurationError, RecordingError, UnknownNameError
from robotid_ros.files.collect_results import save
from robotid_ros.files.export.identified_model import identified_urdf
from robotid_ros.files.results import read_results

URDF = Path(__file__).parents[3] / 'urdf'
STIFFNESS = {'planar_2r_elastic': 20000.0, 'puma560': 2000.0}
RATE, PERIOD = 200.0, 10.0


def build(name='planar_2r_elastic', **changes):
    count = 2 if name == 'planar_2r_elastic' else 6
    joints = tuple(f'joint_{j + 1}' for j in range(count))
    settings = RobotSettings(
        friction={'default': ('viscous', 'coulomb', 'offset')},
        elastic=ElasticSettings(joints=joints),
    )
    return build_robot((URDF / f'{name}.urdf').read_text(), replace(settings, **changes))


def truth(robot, name='planar_2r_elastic'):
    """Take the URDF's parameters, with motors, friction and springs of round numbers."""
    values = {'Ia': 0.5, 'Fv': 2.0, 'Fc': 3.0, 'off': -0.4, 'K': STIFFNESS[name], 'Fvl': 0.2}
    return np.array(
        [values.get(p.symbol, v) for p, v in zip(robot.parameters, robot.prior, strict=True)]
    )


def derivatives(x):
    """First two derivatives of one period, by its Fourier series."""
    omega = 2j * np.pi * np.fft.rfftfreq(len(x), 1.0 / RATE)[:, None]
    spectrum = np.fft.rfft(x, axis=0)
    return tuple(np.fft.irfft(omega**k * spectrum, len(x), axis=0) for k in (1, 2))


def motion(robot, chi, seed=0):
    """One period of an elastic robot's motion, exact: links first, then what motors must do."""
    rng = np.random.default_rng(seed)
    n, t = robot.rigid.n, np.arange(int(RATE * PERIOD)) / RATE
    phase = 2.0 * np.pi / PERIOD * np.outer(t, np.arange(1, 6))
    links = 0.4 * np.sin(phase) @ rng.normal(size=(5, n)) / 2.0
    links += 0.4 * np.cos(phase) @ rng.normal(size=(5, n)) / 2.0
    q = np.hstack([links, links[:, robot.elastic_joints]])
    dq, ddq = derivatives(q)
    # With motors where the links are, springs are slack: what is missing is what they carry.
    load = inverse_dynamics(robot, chi, q, dq, ddq)[:, robot.elastic_joints]
    stiffness = [chi[robot.column(f'K{j + 1}')] for j in robot.elastic_joints]
    q[:, n:] += load / stiffness
    dq, ddq = derivatives(q)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau[:, robot.elastic_joints] = 0.0  # but for rounding it is
    return Samples(robot.joints, t, q, dq, ddq, tau, RATE, np.ones(q.shape, dtype=bool))


@pytest.mark.parametrize('name', STIFFNESS)
def test_rows_are_the_balances_of_link_and_drive(name):
    robot = build(name).elastic
    chi, n = truth(robot, name), robot.rigid.n
    rng = np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, 20, 2 * n))
    spring = STIFFNESS[name] * (q[:, :n] - q[:, n:])
    data = robot.model.createData()
    link = np.array(
        [
            pinocchio.rnea(robot.model, data, *rows)
            for rows in zip(q[:, :n], dq[:, :n], ddq[:, :n], strict=True)
        ]
    )
    drive = 0.5 * ddq[:, n:] + 2.0 * dq[:, n:] + 3.0 * np.sign(dq[:, n:]) - 0.4
    expected = np.hstack([link + spring, link + drive])
    stacked = np.einsum('jnp,p->nj', regressor(robot, q, dq, ddq), chi)
    np.testing.assert_allclose(stacked, expected, atol=1e-9 * np.abs(expected).max())
    direct = inverse_dynamics(robot, chi, q, dq, ddq)
    np.testing.assert_allclose(direct, expected, atol=1e-9 * np.abs(expected).max())


def test_springs_to_the_ground_act_on_the_side_that_has_them():
    plain, sprung = (
        build(
            friction={'default': ('viscous', *terms)},
            elastic=ElasticSettings(joints=('joint_1',), link_friction={'default': terms}),
        ).elastic
        for terms in ((), ('spring',))
    )
    q, dq, ddq = np.random.default_rng(4).normal(size=(3, 6, len(sprung.joints)))
    values = dict(zip((p.name for p in plain.parameters), plain.prior, strict=True))
    values |= {'Kq1': 3.0, 'Kql1': 5.0, 'Kq2': 7.0}
    chi = [np.array([values.get(p.name, 0.0) for p in r.parameters]) for r in (plain, sprung)]
    one, other = (
        inverse_dynamics(robot, own, q, dq, ddq)
        for robot, own in zip((plain, sprung), chi, strict=True)
    )
    names = [p.name for p in sprung.parameters if p.symbol.startswith('Kq')]
    assert names == ['Kq1', 'Kql1', 'Kq2']
    W = regressor(sprung, q, dq, ddq)
    np.testing.assert_allclose((W @ chi[1]).T, other, atol=1e-9)
    motor = sprung.joints.index('joint_1_motor')
    np.testing.assert_allclose((other - one)[:, motor], 3.0 * q[:, motor] + 5.0 * q[:, 0])


def test_fourteen_parameters_a_joint_with_names_and_units():
    robot = build(friction={'default': ('viscous', 'coulomb')}).elastic
    assert robot.p == 28
    first = {p.name: p.unit for p in robot.parameters[:14]}
    assert list(first)[10:] == ['Ia1', 'Fv1', 'Fc1', 'K1']
    assert first['K1'] == 'N·m/rad'
    assert robot.joints == ('joint_1', 'joint_2', 'joint_1_motor', 'joint_2_motor')


def test_classes_are_those_of_the_paper():
    base = base_parameters(build().elastic)
    classes = dict(zip((p.name for p in build().elastic.parameters), base.classes, strict=True))
    assert base.rank == 16
    for name in ('K1', 'K2', 'Ia1', 'Ia2', 'Fv1', 'Fc2', 'ZZ2', 'MX2'):
        assert classes[name] == 'identifiable'
    assert classes['ZZ1'] == classes['M2'] == 'in combination'
    assert classes['M1'] == classes['MZ2'] == classes['XX1'] == 'unidentifiable'


@pytest.mark.parametrize('method', ['ols', 'wls'])
@pytest.mark.parametrize('name', STIFFNESS)
def test_every_base_parameter_is_found_again(name, method):
    robot = build(name).elastic
    base, chi = base_parameters(robot), truth(robot, name)
    system = observe(motion(robot, chi), robot, base)
    true, estimate = base.of(chi), fit(system, method)
    for found in (estimate, fit_with_instruments(system, robot, estimate)[1]):
        np.testing.assert_allclose(found.value, true, rtol=1e-6, atol=1e-6 * 0.01)


def test_rigid_joints_and_friction_of_links_are_found_again():
    elastic = ElasticSettings(joints=('joint_2',), link_friction={'default': ('viscous',)})
    robot = build(elastic=elastic).elastic
    assert robot.joints == ('joint_1', 'joint_2', 'joint_2_motor')
    base, chi = base_parameters(robot), truth(robot)
    assert {'K2', 'Fvl2'} <= set(base.names)
    assert 'K1' not in base.names
    estimate = fit(observe(motion(robot, chi), robot, base), 'wls')
    np.testing.assert_allclose(estimate.value, base.of(chi), rtol=1e-6, atol=1e-8)


def recording(samples, noise=1e-7, effort=None):
    shape, rng = samples.q.shape, np.random.default_rng(5)
    tau = samples.tau if effort is None else effort
    return Recording(samples.joints, samples.time, samples.q + noise * rng.normal(size=shape), tau)


SETTINGS = IdentificationSettings(
    essential=False, signals=SignalSettings(averaging=False, time_offset=False)
)


@pytest.mark.parametrize('published_by', ['motor', 'joint', 'both'])
def test_effort_counts_wherever_it_is_published(published_by):
    robot = build()
    samples = motion(robot.elastic, truth(robot.elastic))
    motor = samples.tau[:, 2:] + 0.01 * np.random.default_rng(2).normal(size=(2000, 2))
    missing = np.full_like(motor, np.nan)
    sides = {'motor': (missing, motor), 'joint': (motor, missing), 'both': (motor, motor)}
    found = identify(recording(samples, effort=np.hstack(sides[published_by])), robot, SETTINGS)
    value = dict(zip(found.base.names, found.estimate.value, strict=True))
    assert value['K1'] == pytest.approx(20000.0, rel=0.01)
    assert found.fitted.relative_residual.max() < 0.02
    assert not select(found.findings, 'spring_not_shown')


def test_other_methods_serve_or_say_that_they_do_not():
    robot = build()
    samples = motion(robot.elastic, truth(robot.elastic))
    effort = np.hstack([samples.tau[:, 2:]] * 2)
    effort += 0.01 * np.random.default_rng(2).normal(size=effort.shape)
    measured = recording(samples, effort=effort)
    for method in ('ols', 'irls', 'iv'):
        found = identify(measured, robot, replace(SETTINGS, method=method))
        value = found.estimate.value[found.base.names.index('K1')]
        assert value == pytest.approx(20000.0, rel=0.01)
    with pytest.raises(ConfigurationError, match='didim'):
        identify(measured, robot, replace(SETTINGS, method='didim'))


def test_an_elastic_model_of_a_rigid_robot_is_told_so():
    robot = build()
    stiff = np.where(
        [p.symbol == 'K' for p in robot.elastic.parameters], 1e12, truth(robot.elastic)
    )
    samples = motion(robot.elastic, stiff)
    effort = np.hstack([samples.tau[:, 2:]] * 2)
    effort += 0.01 * np.random.default_rng(2).normal(size=effort.shape)
    with pytest.raises(RecordingError, match=r'take the joint out of robot\.elastic'):
        identify(recording(samples, noise=0.0, effort=effort), robot, SETTINGS)
    found = identify(recording(samples, noise=1e-6, effort=effort), robot, SETTINGS)
    assert len(select(found.findings, 'spring_not_shown')) == 2


@pytest.mark.parametrize(
    ('changes', 'error', 'text'),
    [
        ({'elastic': ElasticSettings(joints=('elbow',))}, UnknownNameError, 'elbow'),
        (
            {'elastic': ElasticSettings(joints=('joint_1',), motors=('joint_2',))},
            ConfigurationError,
            'two names per elastic joint',
        ),
        (
            {'elastic': ElasticSettings(joints=('joint_1',), motors=('a', 'b'))},
            ConfigurationError,
            '2 values',
        ),
        (
            {'elastic': ElasticSettings(joints=('joint_1',), stiffness=(1.0, 2.0))},
            ConfigurationError,
            'stiffness',
        ),
        (
            {
                'elastic': ElasticSettings(
                    joints=('joint_1',), link_friction={'joint_2': ('viscous',)}
                )
            },
            UnknownNameError,
            'joint_2',
        ),
        (
            {'couplings': {'wrist': CoupledMotorSettings((1.0, 1.0))}},
            ConfigurationError,
            'couplings',
        ),
    ],
)
def test_bad_settings_are_refused_with_a_remedy(changes, error, text):
    with pytest.raises(error, match=text):
        build(**changes)


def test_springs_come_back_from_the_files(tmp_path):
    robot = build()
    chi = truth(robot.elastic)
    samples = motion(robot.elastic, chi)
    effort = np.hstack([samples.tau[:, 2:]] * 2)
    effort += 0.01 * np.random.default_rng(4).normal(size=effort.shape)
    measured = recording(samples, effort=effort)
    save(identify(measured, robot, SETTINGS), measured, tmp_path)
    results = read_results(tmp_path)
    found = {entry.name: entry for entry in results.base}
    assert abs(found['K1'].value / 20000.0 - 1.0) < 0.01
    assert found['K1'].unit == 'N·m/rad'
    assert found['K1'].joint == 'joint_1'
    assert [row.joint for row in results.identification] == list(robot.recorded_joints)
    assert list(results.consistent) == list(robot.joints)


def test_description_of_an_elastic_robot_is_that_of_its_links():
    robot = build()
    values = dict(zip((p.name for p in robot.parameters), robot.prior, strict=True))
    values['ZZ2'] += 0.1
    rigid = np.array([values[p.name] for p in robot.parameters])
    elastic = np.array([values.get(p.name, 2e4) for p in robot.elastic.parameters])
    assert identified_urdf(robot.elastic, elastic) == identified_urdf(robot, rigid)


def test_instruments_do_not_soften_springs():
    robot = build().elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    softer, right = [], []
    for seed in range(5):
        noise = 1e-3 * np.random.default_rng(seed).normal(size=clean.q.shape)
        system = observe(replace(clean, q=clean.q + noise), robot, base)
        estimate = fit(system, 'wls')
        _, better = fit_with_instruments(system, robot, estimate)
        k = base.names.index('K2')
        softer.append(estimate.value[k] / 20000.0 - 1.0)
        right.append(better.value[k] / 20000.0 - 1.0)
    assert np.mean(softer) < -0.2
    assert abs(np.mean(right)) < 0.05


def test_a_restricted_estimate_is_the_least_squares_one_without_the_column():
    robot = build().elastic
    base = base_parameters(robot)
    clean = motion(robot, truth(robot))
    noise = 0.1 * np.random.default_rng(0).normal(size=clean.tau.shape)
    system = observe(replace(clean, tau=clean.tau + noise), robot, base)
    whole = fit(system, 'ols')
    kept = [k for k in range(base.rank) if k != 3]
    fewer = system.select(kept)
    found = restrict(replace(whole, covariance=whole.classical), kept, fewer)
    np.testing.assert_allclose(found.value, fit(fewer, 'ols').value, rtol=1e-6)
    with pytest.raises(UnknownNameError):
        fit(fewer, 'ml')
