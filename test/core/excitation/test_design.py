"""Designs keep every limit, are reproducible, and their figures are those of the trajectory."""

from dataclasses import replace
import itertools
import os
import subprocess
import sys
import time

from hypothesis import given, HealthCheck, settings, strategies as st
import numpy as np
import pytest
import yaml

from robotid_ros.core.excitation.design import Design, design
from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.settings import Margins, ValidationSettings
from robotid_ros.core.findings import select
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.files.trajectory_file import read_design

from .robots import CONFIG, FREE, NONE, quick, robot_named, worst

# The command, without Bokeh and its page.
COMMAND = """
import sys
sys.modules['bokeh'] = None
from robotid_ros.entry import robotid
sys.exit(robotid())
"""


def test_only_the_start_that_leads_is_refined():
    one, three = (
        design(robot_named('scara'), quick(starts=n, iterations=90, validation=NONE))
        for n in (1, 3)
    )
    # A start is a third of its stages: (3 + 2) / 3 instead of 3 times as many evaluations.
    assert three.evaluations < 2.2 * one.evaluations
    assert three.value <= 1.001 * one.value


@given(
    st.sampled_from(['emps', 'scara', 'arm3']),
    st.sampled_from(['mfs', 'bspline', 'quintic']),
    st.integers(2, 6),
    st.floats(2.0, 20.0),
    st.integers(0, 9999),
    st.floats(0.0, 0.2),
)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_designs_keep_all_limits(name, family, order, period, seed, margin):
    robot = robot_named(name)
    excitation = quick(
        family=family,
        order=order,
        period=period,
        seed=seed,
        iterations=4,
        margins=Margins(*(margin,) * 5),
        validation=NONE,
        workspace=FREE,
    )
    result = design(robot, excitation)
    for quantity, share in worst(robot, result.trajectory, excitation).items():
        assert share.max() <= 1.0 + 1e-6, quantity
        reported = np.array(getattr(result.usage, quantity))
        # The check is exact where sampling is not, and the other way round for finite differences.
        assert (share <= reported * (1.0 + 1e-3) + 1e-4).all(), quantity


def test_same_seed_same_trajectory():
    robot, excitation = robot_named('scara'), quick(iterations=4, workspace=FREE)
    one, two = design(robot, excitation), design(robot, excitation)
    other = design(robot, replace(excitation, seed=1))
    assert one.trajectory == two.trajectory
    assert one.validation == two.validation
    assert one.trajectory.hash not in (other.trajectory.hash, one.validation.hash)


@pytest.mark.parametrize('name', ['scara', 'arm3'])
def test_default_design_of_a_configuration_is_reproduced(name, tmp_path):
    """Two processes, one of them told to use more threads, make the same file of the same seed."""
    text = yaml.safe_load((CONFIG / f'{name}.yaml').read_text())
    # The first start ends nearly where the best of three does. It ends by itself: where the
    # clock ends it, two processes end it at different places.
    text['/**']['ros__parameters']['excitation'] |= {'starts': 1, 'time_limit': 3600.0}
    config = tmp_path / f'{name}.yaml'
    config.write_text(yaml.safe_dump(text))
    hashes, values = [], []
    for count in ('1', '4'):
        path = tmp_path / f'{count}.yaml'
        command = [sys.executable, '-c', COMMAND, 'design', str(config), '-o', str(path)]
        threads = dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), count)
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), **threads}
        subprocess.run(command, check=True, env=environment)
        made = read_design(path)
        assert not select(made.notes, 'search_stopped')
        hashes.append((made.trajectory.hash, made.validation.hash))
        values.append(made.value)
    assert hashes[0] == hashes[1]
    stored = read_design(CONFIG / 'trajectories' / f'{name}.yaml')
    # Another processor rounds otherwise and may end elsewhere, but hardly worse.
    assert values[0] == pytest.approx(stored.value, rel=0.25)


@pytest.mark.parametrize('name', ['arm3', 'tx40', 'ur10'])
def test_search_improves_on_its_start(name):
    result = design(robot_named(name), quick(iterations=80, validation=NONE, workspace=FREE))
    start = design(robot_named(name), quick(iterations=1, validation=NONE, workspace=FREE))
    assert result.value < 0.9 * start.value


def test_figures_are_those_of_the_trajectory():
    robot = robot_named('arm3')
    result = design(robot, quick())
    # The search sees a smoothed sign(dq) on fewer samples.
    assert result.value == pytest.approx(result.condition_numbers['raw'], rel=0.5)
    assert Design.from_dict(result.to_dict()) == result


def test_start_of_choice():
    robot = robot_named('scara')
    excitation = quick(start=(0.4, -0.3))
    result = design(robot, excitation)
    np.testing.assert_array_equal(result.trajectory.start, [0.4, -0.3])


def test_a_start_that_takes_nearly_all_of_a_drive_leaves_a_good_motion():
    """Shrinking about such a start mends nothing: the search itself has to keep the efforts."""
    robot, start = robot_named('ur10'), (0.0, -0.6, 0.6, -1.2, 0.5, 0.3)
    still = np.zeros((1, robot.n))
    held = np.abs(inverse_dynamics(robot, robot.prior, np.array([start]), still, still))[0]
    margin = 1.0 - (held / robot.limits.effort).max() / 0.97
    excitation = quick(
        start=start,
        iterations=80,
        margins=Margins(effort=margin),
        validation=NONE,
        workspace=FREE,
    )
    result = design(robot, excitation)
    assert not result.shortcomings
    assert max(result.usage.velocity) > 0.3


@pytest.mark.parametrize('interrupt', ['stop', 'ctrl-c', 'time'])
def test_best_so_far_is_kept(interrupt):
    robot = robot_named('arm3')
    calls = []

    def progress(state):
        calls.append(state)
        if len(calls) == 5 and interrupt == 'ctrl-c':
            raise KeyboardInterrupt
        return len(calls) == 5 and interrupt == 'stop'

    excitation = quick(time_limit=0.0 if interrupt == 'time' else 60.0, validation=NONE)
    result = design(robot, excitation, progress)
    assert len(calls) == (0 if interrupt == 'time' else 5)
    assert check_trajectory(robot, result.trajectory, excitation)


@pytest.mark.parametrize('kind', ['seed', 'none'])
def test_the_time_limit_is_that_of_search_and_validation(kind, monkeypatch):
    """Each look at this clock takes a second: that many evaluations, whatever the machine."""
    clock = itertools.count()
    monkeypatch.setattr(time, 'monotonic', lambda: float(next(clock)))
    excitation = quick(starts=1000, time_limit=200.0, validation=ValidationSettings(kind=kind))
    result = design(robot_named('arm3'), excitation)
    assert 40 < result.evaluations <= 180
    assert result.elapsed <= 220.0
    assert (result.validation is not None) == (kind == 'seed')
    assert select(result.notes, 'search_stopped')


def test_a_search_without_time_for_one_look_in_each_direction_is_poor():
    result = design(robot_named('arm3'), quick(time_limit=0.0, validation=NONE))
    assert (result.verdict, result.to_dict()['verdict']) == ('poor', 'poor')
    (short,) = select(result.shortcomings, 'search_too_short')
    assert short.values == {'evaluations': 0, 'variables': 30}


def test_a_badly_conditioned_design_is_poor_and_others_are_good():
    robot, excitation = robot_named('scara'), quick(validation=NONE)
    good = design(robot, excitation)
    assert (good.verdict, good.shortcomings) == ('good', ())
    bound = 0.9 * good.condition_numbers['normalised']
    poor = design(robot, replace(excitation, largest_condition=bound))
    assert poor.trajectory == good.trajectory
    assert len(poor.shortcomings) == len(select(poor.shortcomings, 'badly_conditioned')) == 1


def test_what_is_not_checked_is_said():
    result = design(robot_named('scara'), quick(validation=NONE, workspace=FREE))
    unchecked = 'no_collision_geometry', 'self_collision_unchecked', 'ground_unchecked'
    assert len(select(result.unchecked, *unchecked)) == len(result.unchecked) == 2
    assert select(result.unchecked, 'ground_unchecked')
