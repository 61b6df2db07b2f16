"""What a mixed model opens, and what it then predicts of other motion."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.mixed.variances import KINDS
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.model.friction import SHRUNK
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.pipeline.choices import choose_model
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import LogSet, validate
from robotid_ros.core.regression.delays import remove_delay
from robotid_ros.core.signals.recording import Recording, SignalSettings

from ..conftest import motion, URDF

SETTINGS = IdentificationSettings(essential=False)
PLAIN = IdentificationSettings(essential=False, model='plain')
ROBOT = build_robot(URDF, RobotSettings())
KEYS = 'names', 'value', 'sigma'
LEVEL, DAMPING, NOISE = (2.0, 3.0, 1.5), (0.5, 0.8, 0.4), 0.02


def coulomb(q, dq, load):
    return np.sign(dq)


def stribeck(q, dq, load):
    return np.sign(dq) * (1.0 + 0.8 * np.exp(-np.abs(dq) / 0.15))


def by_load(q, dq, load):
    return np.sign(dq) * (0.2 + 0.08 * np.abs(load))


def presliding(q, dq, load):
    """Integrate springs that slip beyond 3 mrad, one small step after the other."""
    deflection, result = np.zeros(q.shape[1]), []
    for step in np.diff(q, axis=0, prepend=q[:1]):
        deflection = np.clip(deflection + step, -0.003, 0.003)
        result.append(deflection / 0.003)
    return np.array(result)


def recorded(friction=coulomb, seed=0, noise=NOISE, seconds=40.0, scale=1.0):
    """Record an arm whose friction is a law of another code than the package's."""
    bare = build_robot(URDF, RobotSettings(friction={'default': ()}))
    time = np.arange(round(200 * seconds)) / 200.0
    q, dq, ddq = (scale * x for x in motion(time, seed))
    rigid = inverse_dynamics(bare, bare.prior * 1.1, q, dq, ddq)
    tau = rigid + dq * DAMPING + LEVEL * friction(q, dq, rigid)
    tau += noise * np.random.default_rng(seed + 1).normal(size=tau.shape)
    return Recording(ROBOT.joints, time, q, tau)


@cache
def identified(friction=coulomb, plain=False):
    """Identify once what several tests look at."""
    return identify(recorded(friction), ROBOT, PLAIN if plain else SETTINGS)


def residual(found, recording, settings):
    chi = basic_solution(found.base, found.estimate.value)
    return validate(recording, found.robot, chi, settings).total_residual()


def opened(found):
    return {k for k, x in zip(KINDS, found.mixed.shrinkage.penalty, strict=True) if np.isfinite(x)}


def test_where_friction_is_plain_the_truth_is_found():
    found = identify(recorded(noise=0.0), ROBOT, SETTINGS)
    value = dict(zip(found.estimate.names, found.estimate.value, strict=True))
    for j in range(3):
        assert value[f'Fv{j + 1}'] == pytest.approx(DAMPING[j], rel=0.05)
        assert value[f'Fc{j + 1}'] == pytest.approx(LEVEL[j], rel=0.05)
    other = recorded(seed=5, noise=0.0)
    assert residual(found, other, SETTINGS) < 0.01


@pytest.mark.parametrize('seed', range(3))
def test_where_friction_is_plain_nothing_opens(seed):
    assert not opened(identify(recorded(seed=seed), ROBOT, SETTINGS) if seed else identified())


@pytest.mark.parametrize('friction', [stribeck, by_load, presliding])
def test_friction_of_another_law_predicts_other_motion_better(friction):
    other = recorded(friction, seed=5)
    mixed, plain = (identified(friction, plain) for plain in (False, True))
    assert opened(mixed)
    ours, theirs = residual(mixed, other, SETTINGS), residual(plain, other, SETTINGS)
    assert ours < 0.75 * theirs


def test_nothing_is_blown_up_by_a_motion_that_hardly_excites_it():
    """Slow motion leaves no column of low speed that cancels Coulomb friction elsewhere."""
    slow = recorded(scale=0.02, noise=0.05)
    found = identify(slow, ROBOT, SETTINGS)
    value = dict(zip(found.estimate.names, found.estimate.value, strict=True))
    for name, x in value.items():
        if name[:-1] in SHRUNK and not name.startswith('Dq'):
            assert abs(x) < 2.0 * max(LEVEL), name
    for j in range(3):
        assert abs(value[f'Fc{j + 1}']) < 2.0 * LEVEL[j]


@pytest.mark.parametrize('limit', [2.0, np.inf, 0.0])
def test_a_joint_that_stands_still_spoils_nothing(limit):
    """Its columns are zero: the others are known as before, its own are said to be unknown."""
    robot = dataclasses.replace(
        ROBOT, limits=dataclasses.replace(ROBOT.limits, velocity=np.full(3, limit))
    )
    recording = recorded()
    q = recording.position.copy()
    q[:, 2] = 0.3
    dq = np.gradient(q, recording.time, axis=0)
    still = build_robot(URDF, RobotSettings(friction={'default': ()}))
    rigid = inverse_dynamics(still, still.prior, q, dq, np.gradient(dq, recording.time, axis=0))
    tau = rigid + dq * DAMPING + np.sign(dq) * LEVEL
    tau += 0.02 * np.random.default_rng(1).normal(size=tau.shape)
    found = identify(dataclasses.replace(recording, position=q, effort=tau), robot, SETTINGS)
    estimate = {
        n: (v, s) for n, v, s in zip(*(getattr(found.estimate, k) for k in KEYS), strict=True)
    }
    for j in range(2):
        assert estimate[f'Fv{j + 1}'][0] == pytest.approx(DAMPING[j], rel=0.1)
    assert np.isfinite(found.estimate.value).all() and np.isfinite(found.standard.value).all()
    assert abs(estimate['Fv3'][0]) < 1.0 < estimate['Fv3'][1]
    assert select(found.findings, 'hardly_moved')


def test_the_effort_that_holds_a_joint_is_known_of_other_motion():
    """A joint that a controller holds creeps, hardly ever faster than standstill."""

    def held(seed):
        recording = recorded(seed=seed)
        time, q = recording.time, recording.position.copy()
        q[:, 2] = 0.3 + 0.005 * np.sin(0.5 * time)
        dq = np.gradient(q, time, axis=0)
        ddq = np.gradient(dq, time, axis=0)
        bare = build_robot(URDF, RobotSettings(friction={'default': ()}))
        tau = inverse_dynamics(bare, bare.prior * 1.1, q, dq, ddq)
        tau[:, :2] += dq[:, :2] * DAMPING[:2] + np.sign(dq[:, :2]) * LEVEL[:2]
        tau += NOISE * np.random.default_rng(seed).normal(size=tau.shape)
        return dataclasses.replace(recording, position=q, effort=tau)

    found = identify(held(0), ROBOT, SETTINGS)
    chi = basic_solution(found.base, found.estimate.value)
    other = validate(held(5), found.robot, chi, SETTINGS)
    assert other.relative_residual[2] < 0.1


def test_the_same_data_give_the_same_result():
    one, two = identified(stribeck), identify(recorded(stribeck), ROBOT, SETTINGS)
    assert one.mixed.describe() == two.mixed.describe()
    np.testing.assert_array_equal(one.estimate.value, two.estimate.value)
    np.testing.assert_array_equal(one.estimate.covariance, two.estimate.covariance)


def test_what_is_configured_stays_plain():
    terms = {'friction': {'default': ('viscous', 'coulomb', 'offset')}}
    given = build_robot(URDF, RobotSettings(**terms))
    configured = identify(recorded(stribeck), given, SETTINGS)
    plain = identified(stribeck, plain=True)
    assert not SHRUNK & {name[:-1] for name in configured.estimate.names}
    assert plain.mixed is None and configured.method == plain.method == 'wls'
    np.testing.assert_allclose(configured.estimate.value, plain.estimate.value)


def test_several_logs_choose_together():
    logs = tuple(recorded(stribeck, seed) for seed in (0, 3))
    found = identify(LogSet(logs), ROBOT, SETTINGS)
    assert len(found.mixed.shrinkage.errors) == 2 * 15  # each log is a fold, too
    assert residual(found, recorded(stribeck, 5), SETTINGS) < 0.01


def test_chunks_of_a_long_recording_take_the_same_model():
    recording = recorded(stribeck, seconds=60.0)
    whole = identify(recording, ROBOT, SETTINGS)
    chunks = identify(
        [recording.between(0.0, 40.0), recording.between(40.0, 60.0)], ROBOT, SETTINGS
    )
    other = recorded(stribeck, 5)
    assert residual(chunks, other, SETTINGS) < 1.1 * residual(whole, other, SETTINGS)


def test_efforts_without_gravity_are_noticed():
    still = np.zeros((8000, 3))
    recording = recorded()
    bare = build_robot(URDF, RobotSettings(friction={'default': ()}))
    weight = inverse_dynamics(bare, bare.prior * 1.1, recording.position, still, still)
    lifted = Recording(ROBOT.joints, recording.time, recording.position, recording.effort - weight)
    found = identify(lifted, ROBOT, SETTINGS)
    assert found.robot.effort_kind == 'without_gravity' and not found.robot.gravity.any()
    assert select(found.findings, 'no_gravity')
    assert identified().robot.gravity.any()


def test_a_delay_is_removed_only_where_the_choice_shows_it():
    prompt = recorded()
    late = remove_delay(prompt, -0.015)
    for recording, is_late in ((prompt, False), (late, True)):
        assert choose_model(recording, ROBOT, SETTINGS).settings.signals.time_offset == is_late
    (found,) = select(identify(late, ROBOT, SETTINGS).findings, 'delay_removed')
    assert found.values['delay'] == pytest.approx(0.015, abs=1e-3)


def test_a_model_that_cannot_be_chosen_is_told():
    """Filters are compared at 5 Hz: between these gaps, rows are left at a wider band only."""
    whole = recorded()
    kept = whole.time % 0.8 >= 0.6
    gaps = Recording(ROBOT.joints, whole.time[kept], whole.position[kept], whole.effort[kept])
    wide = SignalSettings(cutoff=80.0, band=80.0)
    settings = IdentificationSettings(essential=False, signals=wide)
    found = identify(gaps, ROBOT, settings)
    assert found.mixed is None and select(found.findings, 'model_not_chosen')
    plain = dataclasses.replace(settings, model='plain')
    assert not select(identify(gaps, ROBOT, plain).findings, 'model_not_chosen')
