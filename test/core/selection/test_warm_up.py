"""Friction that falls while a joint warms up is chosen where it does, and all else is right."""

from functools import lru_cache

import numpy as np
from plant_recording import arm, JOINTS, plant, sines, URDF
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import coldness, WARM_UPS
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.warm_up import fit_warm
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.selection.model_selection import select_model
from robotid_ros.core.selection.warm_up import jumps, possible_change, saved_by_change, SHARES
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording

RATE, SECONDS, SHARE = 100.0, 60.0, 0.3
SETTINGS = IdentificationSettings(essential=False)
FREE = build_robot(URDF, RobotSettings(joints=JOINTS))


@lru_cache
def recorded(viscous=0.0, coulomb=0.0, seed=0):
    """Record an arm whose second joint has that much more friction while it is cold."""
    rng, time, q, dq, tau = sines(SECONDS, RATE, seed)
    own = q[:, 1]
    cold = coldness(own, SHARE * np.abs(np.diff(own)).sum())
    tau[:, 1] += cold * (viscous * dq[:, 1] + coulomb * np.sign(dq[:, 1]))
    noise = rng.normal(size=(2, *q.shape))
    return Recording(JOINTS, time, q + 2e-5 * noise[0], tau + 0.02 * noise[1])


def falls(friction):
    return [[t.name for t in terms if t.name in WARM_UPS] for terms in friction]


@pytest.mark.parametrize(
    ('viscous', 'coulomb'), [(0.2, 0.0), (0.0, 0.3), (0.2, 0.2)], ids=['viscous', 'dry', 'both']
)
def test_friction_that_falls_is_found_and_all_else_is_right(viscous, coulomb):
    result = identify(recorded(viscous, coulomb), FREE, SETTINGS)
    wanted = [name for name, size in zip(WARM_UPS, (viscous, coulomb), strict=True) if size]
    assert falls(result.selection.candidate.friction) == [[], wanted, []]
    assert falls(result.robot.friction) == [[], [], []]
    kept = result.selection.configuration(result.robot)['robot']
    assert kept['friction'][JOINTS[1]][3:] == wanted
    assert (
        0.8 < min(kept['friction_constants'][JOINTS[1]][f'{name}_way'] for name in wanted) < 20.0
    )
    base, estimate, truth = result.base, result.estimate, plant().base(arm())
    # Those at the end of the recording, when the joint is warm; none is of a cold one.
    assert not any(name.startswith(('Fvw', 'Fcw')) for name in base.names)
    error = estimate.value - np.array([truth[name] for name in base.names])
    assert np.all(np.abs(error) <= 3.0 * estimate.sigma)
    said = [text for text in result.warnings if 'warmed up' in text]
    assert len(said) == len(wanted)
    assert not any('friction changed' in text for text in result.warnings)
    for name, size in (('Fvw2', viscous), ('Fcw2', coulomb)):
        for text in said:
            if name in text:
                value, sigma = map(float, text.split(f'{name} = ')[1].split(' as')[0].split(' ± '))
                assert abs(value - size) <= 3.0 * sigma < 0.9 * size


def test_without_a_fall_none_is_chosen_and_nothing_is_computed(monkeypatch):
    monkeypatch.setattr('robotid_ros.core.model.friction.coldness', lambda *_: pytest.fail())
    robot, _, _ = select_model(recorded(), FREE, SETTINGS, warm_up=True)
    assert falls(robot.friction) == [[], [], []]


def test_parts_of_a_recording_are_not_looked_at_for_it():
    """What falls in one chunk would begin anew in the next."""
    robot, _, _ = select_model(recorded(0.2), FREE, SETTINGS)
    assert falls(robot.friction) == [[], [], []]


def test_what_falls_is_estimated_beside_all_else():
    """The torque that is left holds none of it, and σ are those of all parameters together."""
    names = ('viscous', 'coulomb', 'offset', 'viscous_warm_up')
    way = SHARE * np.abs(np.diff(recorded(0.2).position[:, 1])).sum()
    friction = {'default': names[:3], 'joint_2': names}
    robot = arm(friction=friction, friction_constants={'default': {'viscous_warm_up_way': way}})
    base, samples = base_parameters(robot), prepare(recorded(0.2), robot, SETTINGS.signals)
    system = observe(samples, robot, base)
    warm, estimate, notes = fit_warm(samples, system, robot, 'wls', 1)
    same, plain, none = fit_warm(samples, system, arm(), 'wls', 1)
    assert same is system and not none and len(notes) == 1
    place = system.names.index('Fv2')
    assert (
        estimate.classical[place, place]
        > 1.1
        * (plain.classical * (estimate.sigma_torque[1] / plain.sigma_torque[1]) ** 2)[place, place]
    )
    np.testing.assert_allclose(
        warm.relative_residual(estimate.value)[1], estimate.residual[1], rtol=0.05
    )
    assert estimate.residual[1] < 0.7 * plain.residual[1]
    assert estimate.value.shape == estimate.sigma.shape == (len(base.names),)


def test_what_a_change_saves_is_what_one_more_column_does():
    """As a fit of all rows has it; whatever unit and zero there is, and only where it falls."""
    rng, places, friction = np.random.default_rng(5), np.array([0, 1, 3]), 1
    rows = rng.normal(size=(6, 50, 5))
    warmer = rng.normal(size=6)
    rows[..., 4] = rows[..., places] @ [1.0, 0.7, -0.4] + 0.3 * rng.normal(size=(6, 50))
    rows[..., 4] += 0.2 * warmer[:, None] * rows[..., friction]
    products = np.einsum('kra,krb->kab', rows, rows)
    A, y = rows[..., places].reshape(300, 3), rows[..., 4].ravel()
    more = np.column_stack([A, (warmer[:, None] * rows[..., friction]).ravel()])
    value, squares = np.zeros(4), [np.linalg.lstsq(columns, y)[1][0] for columns in (A, more)]
    value[places] = 1.1, 0.6, -0.4  # weighted with other joints, not the best of this one alone
    share = (squares[0] - squares[1]) / np.sum((y - A @ value[places]) ** 2)

    def saved(factor, falls):
        factors = np.array([np.ones(6), factor])  # the first one changes nothing, nor saves
        return saved_by_change(products, places, friction, value, factors, falls)

    assert saved(warmer, True) == pytest.approx(share)
    assert saved(-warmer, False) == pytest.approx(share)
    assert saved(3.0 * warmer + 20.0, True) == pytest.approx(share)
    assert saved(-warmer, True) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize('at', [2.0, 2.5, 3.5, 4.0, 5.5, 6.0])
@pytest.mark.parametrize('way', [0.1, 0.2, 0.4, 1.0, 3.0])
def test_a_jump_explains_a_jump_better_and_warming_up_what_warms_up(at, way):
    """Of eight blocks; where the jump is inside of a block, that one has both in part."""
    rng = np.random.default_rng(6)
    rows = np.sign(rng.normal(size=(8, 400, 2)))
    middle = (np.arange(8) + 0.5) / 8.0
    warms = np.exp(-middle / np.array(SHARES)[:, None])
    for fall, jumped in (
        (np.clip(at - np.arange(8.0), 0.0, 1.0), True),
        (np.exp(-middle / way), False),
    ):
        rows[..., 1] = (1.0 + fall[:, None]) * rows[..., 0]
        products = np.einsum('kra,krb->kab', rows, rows)
        value = np.array([1.0 + fall.mean()])
        at_once, warm = (
            saved_by_change(products, np.array([0]), 0, value, factors, True)
            for factors in (jumps(8), warms)
        )
        assert (at_once > warm) == jumped


def test_friction_may_change_by_the_temperature_or_by_the_way():
    """Of blocks that differ in length; the reference is what a joint has at the end."""
    edges, step = np.array([-np.inf, 1.0, 4.0, np.inf]), np.array([22.0, 30.0, 26.0])
    time = np.arange(100) / 10.0
    degrees = step[np.searchsorted(edges[1:-1], time, side='right')]
    degrees[-10:] = 27.0
    turns = np.concatenate([np.linspace(0.0, 0.7, 31), np.linspace(0.7, -0.2, 69)])
    q = np.column_stack([turns, 0.0 * time])
    joints = ('a', 'b')
    recording = Recording(joints, time, q, q, temperature=np.column_stack([degrees] * 2))
    found = possible_change(recording, edges, 0)
    assert (found.what, found.falls) == ('temperature', False)
    np.testing.assert_allclose(np.diff(found.of_blocks), [[8.0, -4.0 + 10.0 / 60.0]])
    assert [term.constants for term in found.terms[0]] == [{'reference_temperature': 27.0}] * 2
    recording = Recording(joints, time, q, q)
    found = possible_change(recording, edges, 0)
    assert (found.what, found.falls) == ('warm-up', True)
    middle = np.array([0.5 * 0.7 / 3.0, 2.5 * 0.7 / 3.0, 0.7 + 0.9 * 3.95 / 6.9]) / 1.6
    expected = [1.0 - middle, *(np.exp(-middle / share) for share in SHARES)]
    np.testing.assert_allclose(found.of_blocks, expected, atol=0.02)
    ways = [value for terms in found.terms for term in terms for value in term.constants.values()]
    np.testing.assert_allclose(ways, np.repeat(SHARES, 2) * (0.7 + 0.9))
    assert possible_change(recording, edges, 1) is None


def test_coldness_falls_from_one_to_nothing_by_the_way_alone():
    q = np.concatenate([np.linspace(0.0, 2.0, 50), np.full(30, 2.0), np.linspace(2.0, 0.0, 200)])
    cold = coldness(q, 1.5)
    assert cold[0] == 1.0 and cold[-1] == 0.0 and np.all(np.diff(cold) <= 0.0)
    assert np.ptp(cold[50:80]) == 0.0
    assert cold[60] == pytest.approx(
        (np.exp(-2 / 1.5) - np.exp(-4 / 1.5)) / (1 - np.exp(-4 / 1.5))
    )
    np.testing.assert_allclose(
        coldness(q, 1e7),
        1.0 - np.concatenate([[0], np.cumsum(np.abs(np.diff(q)))]) / 4.0,
        atol=1e-6,
    )
    assert not coldness(np.ones(5), 1.0).any()
