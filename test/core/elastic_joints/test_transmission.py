"""Play and hysteresis of a transmission: of a simulated drive, chosen, and with their sizes."""

from dataclasses import replace
from functools import lru_cache
from math import copysign, cos, sin

import numpy as np
import pytest

from robotid_ros.core.elastic_joints import transmission
from robotid_ros.core.elastic_joints.transmission import (
    _choose,
    _predicted,
    _Rows,
    _scores,
    _searched,
)
from robotid_ros.core.finding_codes import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.friction import make_terms, TERMS
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.validation import validate
from robotid_ros.core.regression.observation_system import decimate
from robotid_ros.core.signals.recording import Recording

from ..model.arms import ROD

# A rod that hangs on a motor: inertia about the axis, first moment, motor, friction, spring.
INERTIA, MOMENT, ROTOR, VISCOUS, COULOMB, LINK_VISCOUS, STIFFNESS = (
    0.6,
    1.2,
    0.3,
    2.0,
    1.0,
    0.3,
    2e3,
)
WIDTH, FRICTION, DISTANCE = 2e-3, 1.5, 5e-4
RATE, SECONDS, SUBSTEPS = 200, 30, 50
SETTINGS = IdentificationSettings(essential=False)


def robot(**elastic):
    settings = RobotSettings(
        friction={'default': ('viscous', 'coulomb')},
        elastic=ElasticSettings(('a',), link_friction={'a': ('viscous',)}, **elastic),
    )
    return build_robot(ROD, settings)


@lru_cache
def simulated(width=0.0, friction=0.0):
    """Integrate rod and motor in small steps, with a spring that has play and slips."""
    dt = 1.0 / (RATE * SUBSTEPS)
    q = dq = th = dth = z = 0.0
    rows = []
    for k in range(SECONDS * RATE * SUBSTEPS):
        t = k * dt
        wanted = 0.7 * sin(1.9 * t) + 0.25 * sin(5.3 * t)
        speed = 0.7 * 1.9 * cos(1.9 * t) + 0.25 * 5.3 * cos(5.3 * t)
        u = 400.0 * (wanted - th) + 20.0 * (speed - dth)
        if k % SUBSTEPS == 0:
            rows.append((q, th, u))
        d = q - th
        spring = STIFFNESS * (d - max(-width / 2, min(width / 2, d)))
        z = max(-DISTANCE, min(DISTANCE, z + (dq - dth) * dt))
        spring += friction * z / DISTANCE
        ddq = (-9.81 * MOMENT * sin(q) - LINK_VISCOUS * dq - spring) / INERTIA
        ddth = (u - VISCOUS * dth - copysign(COULOMB, dth) + spring) / ROTOR
        dq, dth = dq + ddq * dt, dth + ddth * dt
        q, th = q + dq * dt, th + dth * dt
    return np.array(rows)


def recorded(width=0.0, friction=0.0, noise=2e-6, seed=0):
    rng, rows = np.random.default_rng(seed), simulated(width, friction)
    q = rows[:, :2] + noise * rng.normal(size=(len(rows), 2))
    effort = np.column_stack([np.full(len(rows), np.nan), rows[:, 2]])
    effort += 0.1 * rng.normal(size=effort.shape)
    return Recording(('a', 'a_motor'), np.arange(len(rows)) / RATE, q, effort)


def identified(*simulation, **elastic):
    return identify(recorded(*simulation), robot(**elastic), SETTINGS)


def terms(result):
    return {term.name: term.constants for term in result.robot.transmission[0]}


def values(result):
    return dict(zip(result.estimate.names, result.estimate.value.tolist(), strict=True))


def basic(result):
    return basic_solution(result.base, result.estimate.value)


def within(result, sigmas, **others):
    names = ('YY1', 'MZ1', 'MX1', 'Ia1', 'Fv1', 'Fc1', 'K1', 'Fvl1')
    sizes = (INERTIA, -MOMENT, 0.0, ROTOR, VISCOUS, COULOMB, STIFFNESS, LINK_VISCOUS)
    truth = dict(zip(names, sizes, strict=True)) | others
    for name, value, sigma in zip(
        result.estimate.names, result.estimate.value, result.estimate.sigma, strict=True
    ):
        assert abs(value - truth[name]) <= sigmas * sigma, name


@pytest.mark.parametrize('noise', [0.0, 1e-5, 1e-4])
def test_a_spring_alone_gets_neither(noise):
    result = identified(0.0, 0.0, noise)
    assert not terms(result)
    assert not select(result.findings, 'transmission_found')
    within(result, 3.0)


def test_noise_of_encoders_larger_than_the_deflection_is_no_play():
    """It is in the deflection and in the sign of that alike, but not in what the link predicts."""
    assert not terms(identified(0.0, 0.0, 1e-2))


def chosen_of_a_period(seed, play):
    """Choose for one period of a link whose torque has ten harmonics, all of them unknown."""
    count, harmonics = 400, np.arange(1, 11)
    rng, phase = np.random.default_rng(seed), np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    angles = phase[:, None] * harmonics
    link = np.hstack([np.sin(angles), np.cos(angles)])
    wound = link @ (rng.normal(size=20) / np.tile(harmonics, 2))
    noise = 0.15 * wound.std() * rng.normal(size=count)
    deflection = wound + play * wound.std() * np.sign(wound) + noise
    path, used = (deflection, np.gradient(deflection)), np.ones(count, dtype=bool)
    rows = _Rows(deflection, link, lambda: link[:, 0], link[:, :0], used, path, 1)
    return [term.name for term in _choose(rows)]


def test_one_period_that_determines_the_link_badly_without_a_part_of_it_shows_no_play_by_chance():
    """Without a block the others say little of it, and any column may happen to bend that."""
    assert not any(chosen_of_a_period(seed, 0.0) for seed in range(20))
    assert all('backlash' in chosen_of_a_period(seed, 0.5) for seed in range(4))


def test_a_deflection_that_jumps_against_the_torque_is_no_play():
    recording = recorded(0.0, 0.0, 1e-5)
    q = recording.position.copy()
    q[:, 0] -= 5e-4 * np.tanh((q[:, 0] - q[:, 1]) / 1e-4)
    found = identify(replace(recording, position=q), robot(), SETTINGS)
    assert 'backlash' not in terms(found)


@pytest.mark.parametrize('noise', [1e-5, 1e-4])
def test_play_is_chosen_and_has_its_width(noise):
    result = identified(WIDTH, 0.0, noise)
    assert list(terms(result)) == ['backlash']
    width = terms(result)['backlash']['backlash_width']
    assert width == pytest.approx(WIDTH, rel=0.03)
    # By how far both flanks are apart: within it there is no spring at all.
    found = values(result)
    assert -found['Kbd1'] / found['K1'] * width == pytest.approx(WIDTH, rel=0.01)
    within(result, 3.0, Kbd1=values(result)['Kbd1'])
    (told,) = select(result.findings, 'transmission_found')
    assert told.joints == ('a',) and told.values['terms'] == ('backlash',)
    assert told.values['sizes'] == (width,)
    rigid = identified(WIDTH, 0.0, noise, transmission={'a': ()})
    assert abs(values(rigid)['K1'] - STIFFNESS) > 0.2 * STIFFNESS
    assert result.estimate.residual[0] < 0.2 * rigid.estimate.residual[0]


def test_hysteresis_is_chosen_and_has_its_force_and_distance():
    result = identified(0.0, FRICTION, 1e-5)
    assert list(terms(result)) == ['hysteresis']
    assert terms(result)['hysteresis']['hysteresis_distance'] == pytest.approx(DISTANCE, rel=0.06)
    found = values(result)
    assert found['Fhd1'] == pytest.approx(FRICTION, rel=0.03)
    assert found['K1'] == pytest.approx(STIFFNESS, rel=0.01)
    # The validation follows the path of the deflection, too.
    again = validate(recorded(0.0, FRICTION, 1e-5, 1), result.robot, basic(result), SETTINGS)
    assert again.total_residual() < 0.02


def test_both_are_told_apart():
    result = identified(WIDTH, FRICTION, 1e-5)
    assert sorted(terms(result)) == ['backlash', 'hysteresis']
    found, width = values(result), terms(result)['backlash']['backlash_width']
    assert found['Fhd1'] == pytest.approx(FRICTION, rel=0.03)
    assert found['K1'] == pytest.approx(STIFFNESS, rel=0.02)
    assert -found['Kbd1'] / found['K1'] * width == pytest.approx(WIDTH, rel=0.03)


def rows_of(shape=None, size=0.0, keep=1):
    """Return rows of a link behind a spring, L + K d + size · shape = 0, L of three columns."""
    rng, t = np.random.default_rng(1), np.arange(1600.0 * keep) / (200.0 * keep)
    d = 1e-3 * (np.cos(1.9 * t) + 0.6 * np.sin(5.3 * t + 0.4))
    q = d, np.gradient(d)
    path = 0.0 if shape is None else size * shape.columns(*q, successive=True)[0]
    torque = -STIFFNESS * d - path
    friction = rng.normal(size=len(t))
    link = np.column_stack([torque + friction, friction, np.sin(3.0 * t)])
    rows = [decimate(x.reshape(1, len(t), -1), keep)[0] for x in (d, link, torque, friction)]
    deflection, torque = rows[0][:, 0], rows[2][:, 0]
    used = np.arange(len(torque)) % 50 != 7
    return _Rows(deflection, rows[1], lambda: torque, rows[3], used, q, keep)


@pytest.mark.parametrize('start', [0.13, 0.8, 1.0, 1.17, 2.9, 7.0])
@pytest.mark.parametrize('name', ['backlash', 'hysteresis'])
def test_width_and_distance_are_found_from_far(name, start):
    (constant,), true = TERMS[name].constants, 4e-4
    (shape,) = make_terms((name,), {constant: true})
    rows = rows_of(shape, -STIFFNESS if name == 'backlash' else FRICTION, keep=2)
    (found,) = _searched(rows, make_terms((name,), {constant: start * true}))
    assert found.name == name
    assert found.constants[constant] == pytest.approx(true, rel=1e-3)


def test_the_link_alone_tells_the_width_of_a_play(monkeypatch):
    """It is wound up by the torque over K, and by half of the width besides."""
    monkeypatch.setattr(transmission, '_searched', lambda _, terms: terms)
    (shape,) = make_terms(('backlash',), {'backlash_width': 4e-4})
    rows = rows_of(shape, -STIFFNESS)
    outside = np.abs(rows.deflection) > 2e-4
    (found,) = _choose(replace(rows, used=rows.used & outside))
    assert found.constants['backlash_width'] == pytest.approx(4e-4, rel=1e-2)


@pytest.mark.parametrize('start', [0, 80])
def test_a_hysteresis_follows_the_path_that_the_link_predicts(start):
    """Against the deflection, and from the side that it comes from: away from 0 or towards it."""
    (shape,) = make_terms(('hysteresis',), {'hysteresis_distance': 3e-4})
    rows = rows_of(shape, 0.01 * FRICTION)
    own = slice(start, None)
    path = tuple(x[own] for x in rows.path)
    assert (path[0][0] * path[1][0] > 0.0) == (start == 0)
    part = replace(rows, deflection=path[0], link=rows.link[own], used=rows.used[own], path=path)
    found = _predicted(part, [], 'hysteresis', 3e-4)
    np.testing.assert_allclose(found, -shape.columns(*path, successive=True)[0], atol=0.1)


def test_blocks_are_predicted_by_fits_of_the_others():
    rows, rng = rows_of(), np.random.default_rng(2)
    rows = replace(rows, deflection=rng.normal(size=1600), used=np.ones(1600, dtype=bool))
    column = rng.normal(size=1600)
    (score, _), size = _scores(rows, [column])
    A, y = np.column_stack([rows.link, column]), rows.deflection
    assert size == pytest.approx(np.linalg.lstsq(A, y)[0][-1:])
    for k, out in enumerate(np.array_split(np.arange(1600), 8)):
        kept = np.setdiff1d(np.arange(1600), out)
        value = np.linalg.lstsq(A[kept], y[kept])[0]
        assert score.errors[k] == pytest.approx(np.sum((y[out] - A[out] @ value) ** 2))
        assert score.powers[k] == pytest.approx(np.sum(y[out] ** 2))
