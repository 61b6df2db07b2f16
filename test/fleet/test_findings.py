"""What is wrong is found, and nobody else is accused."""

import dataclasses
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from small_fleet import scara

from robotid_ros.core.findings import select
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.fleet.pooling import (
    DRIFT,
    drifts,
    effort_gains,
    inverted_joints,
    OUTLIER,
    PAYLOAD,
    Robots,
    unlike_the_others,
)
from robotid_ros.fleet.session import factors_of, IDENTIFIED

ROBOTS, SESSIONS = 8, 6
START = datetime(2025, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def fleet():
    """Draw robots of one type that differ as robots do; gives robots of a seed."""
    robot, chi = scara()
    base = base_parameters(robot)
    typical = base.of(chi)
    sigma = 0.01 * np.abs(typical) + 1e-4

    def draw(seed):
        rng = np.random.default_rng(seed)
        own = typical + sigma * rng.normal(size=(ROBOTS, base.rank))
        owner = np.repeat(np.arange(ROBOTS), SESSIONS)
        sessions = own[owner] + sigma * rng.normal(size=(len(owner), base.rank))
        return Robots(
            'scara', robot, base, tuple(f'r{k}' for k in range(ROBOTS)),
            own, np.broadcast_to(sigma / 2, own.shape), np.ones(ROBOTS),
            sessions, np.broadcast_to(sigma, sessions.shape), owner,
            tuple(START + timedelta(days=30 * (k % SESSIONS)) for k in range(len(owner))),
        )  # fmt: skip

    return draw


def add(robots, robot, parameter, values):
    """Add values to the sessions of a robot, their mean to its pool."""
    column = robots.base.names.index(parameter)
    sessions, pooled = robots.sessions.copy(), robots.values.copy()
    sessions[robots.of(robot), column] += values
    pooled[robot, column] += np.mean(values)
    return dataclasses.replace(robots, sessions=sessions, values=pooled)


def test_of_a_hundred_fleets_where_nothing_is_wrong_few_have_findings(fleet):
    accused = {'unlike': 0, 'drift': 0}
    for seed in range(100):
        robots = fleet(seed)
        accused['unlike'] += bool(unlike_the_others(robots, set(), 0.01))
        accused['drift'] += bool(drifts([(robots, set())]))
    assert max(accused.values()) <= 4  # of one expected; 5 or more have a chance of 0.4 %


@pytest.mark.parametrize('seed', range(5))
def test_a_drift_is_found_with_its_date_and_not_in_others(fleet, seed):
    robots = add(fleet(seed), 3, 'Fc1', 0.2 * np.array([0, 0, 0, 1, 1, 1]))
    (found,) = drifts([(robots, set())])
    told = found.values
    assert select([found], DRIFT) and (told['robot'], told['parameter']) == ('r3', 'Fc1')
    assert told['since'] == '2025-04-01' and told['p'] < 0.01


def test_a_payload_is_told_by_its_mass_and_an_outlier_by_its_parameter(fleet):
    robots = fleet(2)
    chi = np.zeros(robots.model.p)
    for symbol, value in {'M': 2.0, 'MX': 0.2, 'ZZ': 0.02}.items():
        chi[robots.model.column(f'{symbol}2')] = value
    values = robots.values.copy()
    values[5] += robots.base.of(chi)
    (found,) = unlike_the_others(dataclasses.replace(robots, values=values), set(), 0.01)
    assert select([found], PAYLOAD) and found.joints == ('joint_2',)
    assert found.values['robot'] == 'r5' and found.values['mass'] > 0.0
    worn = add(robots, 4, 'Fv2', np.full(SESSIONS, 0.2))
    (found,) = unlike_the_others(worn, set(), 0.01)
    assert select([found], OUTLIER)
    assert (found.values['robot'], found.values['parameter']) == ('r4', 'Fv2')


def test_an_inverted_effort_is_found_from_the_factors(fleet, store):
    robots = fleet(3)
    row = next(row for row in store.current() if row['status'] == IDENTIFIED)
    system = factors_of(row)
    typical = np.array([p['value'] for p in row['parameters']])
    robots = dataclasses.replace(robots, values=np.broadcast_to(typical, robots.values.shape))
    turned = system.Y.copy()
    turned[1] *= -1.0
    systems = [system] * (ROBOTS - 1) + [dataclasses.replace(system, Y=turned)]
    (found,) = inverted_joints(robots, systems)
    assert (found.values['robot'], found.joints) == ('r7', ('joint_2',))
    gains, rest = effort_gains(systems[-1], typical)
    assert gains == pytest.approx([1.0, -1.0], abs=0.02) and rest.max() < 0.1
