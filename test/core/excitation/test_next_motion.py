"""The motion for what a first one has left unknown."""

from dataclasses import fields, replace
import time

import numpy as np
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import design, next_motion, WORTH
from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.problem import Known, NextProblem, prediction_error
from robotid_ros.core.excitation.working_motion import working_motion
from robotid_ros.core.findings import select
from robotid_ros.core.model import regressor
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import make_terms
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.results import dump_known, read_known

from .robots import FREE, NONE, quick, robot_named

RATE = 20.0


def settings(**changes):
    return quick(workspace=FREE, validation=NONE, periods=2, **changes)


def rows(robot, trajectory, noise, periods):
    """Return whitened rows of W_b, as many as are independent."""
    times = (np.arange(400) + 0.5) / 400 * trajectory.period
    columns = base_parameters(robot).columns
    W = regressor(robot, *trajectory.sample(times), columns=columns)
    count = RATE * trajectory.period * periods
    return np.vstack([w / s for w, s in zip(W, noise, strict=True)]) * np.sqrt(count / 400)


def known_by(robot, trajectory, noise, periods=2):
    base, W = base_parameters(robot), rows(robot, trajectory, noise, periods)
    unknown, effort = np.full(robot.n, np.nan), 0.3 * robot.limits.effort
    covariance = np.linalg.inv(W.T @ W)
    return Known(
        robot.joints, base.names, base.of(robot.prior), covariance, unknown, noise, effort, RATE
    )


def expected_error(robot, known, covariance):
    """Evaluate the relative error on working motions, mean square over the joints."""
    base, limits = base_parameters(robot), robot.limits
    q, dq, ddq, _ = working_motion(robot, limits.lower, limits.upper, limits.velocity)
    W = regressor(robot, q, dq, ddq, columns=base.columns)
    errors = []
    for j, w in enumerate(W):
        w = w[np.abs(dq[:, j]) > 0.01]
        effort = max(np.mean((w @ known.value) ** 2), (0.5 * known.effort[j]) ** 2)
        errors.append(np.mean(np.sum((w @ covariance) * w, axis=1)) / effort)
    return np.sqrt(np.mean(errors))


def bounded(name):
    """Give a robot the limits that a design makes up, so that both mean the same motions."""
    robot = robot_named(name)
    limits = replace(robot.limits, acceleration=robot.limits.velocity / 0.5)
    return replace(robot, limits=limits)


def test_the_criterion_is_the_mean_square_of_the_errors(rng):
    root, points = rng.normal(size=(20, 6)), rng.normal(size=(50, 6))
    s, goal = root.T @ root, points.T @ points / 50
    value, gradient = prediction_error(s, goal)
    draws = rng.multivariate_normal(np.zeros(6), np.linalg.inv(s), 20_000)
    assert np.exp(value) == pytest.approx(np.sqrt(np.mean((draws @ points.T) ** 2)), rel=0.02)
    turn = rng.normal(size=(6, 6))
    assert prediction_error(turn.T @ s @ turn, turn.T @ goal @ turn)[0] == pytest.approx(value)
    direction = rng.normal(size=(6, 6))
    direction = direction + direction.T
    above, below = (prediction_error(s + h * direction, goal)[0] for h in (1e-5, -1e-5))
    assert np.sum(gradient * direction) == pytest.approx((above - below) / 2e-5, rel=1e-6)
    assert prediction_error(np.diag([-1.0, 1.0]), np.eye(2))[0] == np.inf


@pytest.mark.parametrize('name', ['arm3', 'ur10'])
def test_the_gradient_of_the_problem(name, rng):
    robot = bounded(name)
    first = design(robot, settings(iterations=2, start=(0.0,) * robot.n)).trajectory
    known = known_by(robot, first, 0.01 * robot.limits.effort)
    found = NextProblem(robot, settings(), CollisionScene(robot, FREE), known)
    x = found.random_point(rng)
    direction = rng.normal(size=x.shape)
    values = [found.evaluate(x + h * direction)[0] for h in (1e-5, -1e-5)]
    slope = (values[0] - values[1]) / 2e-5
    assert found.evaluate(x)[1] @ direction == pytest.approx(slope, rel=1e-4)


def test_it_tells_more_than_the_same_again_and_than_a_motion_for_an_unknown_arm():
    robot = bounded('arm3')
    noise = 0.01 * robot.limits.effort
    # The first motion hardly moves the last joint.
    poor = replace(
        robot, limits=replace(robot.limits, velocity=robot.limits.velocity * (1, 1, 0.1))
    )
    first = design(poor, settings(iterations=5)).trajectory
    known = known_by(robot, first, noise)
    told = design(robot, settings(iterations=40), known=known)
    plain = design(robot, settings(iterations=40)).trajectory

    def error(*motions):
        W = np.vstack([rows(robot, motion, noise, 2) for motion in motions])
        return expected_error(robot, known, np.linalg.inv(W.T @ W))

    (note,) = select(told.notes, 'known_before')
    assert note.values['before'] == pytest.approx(error(first), rel=1e-6)
    assert note.values['after'] == pytest.approx(error(first, told.trajectory), rel=0.01)
    assert error(first, told.trajectory) < 0.9 * error(first, plain)
    assert error(first, told.trajectory) < 0.6 * error(first, first)
    assert told.criterion == 'prediction_error' and told.verdict == 'good'


def test_the_next_motion_begins_where_the_present_one_ends(monkeypatch):
    robot = bounded('arm3')
    noise = 0.01 * robot.limits.effort
    present = design(robot, settings(iterations=5)).trajectory.at_speed(0.1)
    known, end = known_by(robot, present, noise, 1), time.monotonic() + 600.0
    found = next_motion(robot, settings(iterations=12), known, present, end)
    assert found is not None and found.at_rest
    assert (found.period, found.order) == (present.period, present.order)
    np.testing.assert_array_equal(found.start, present.start)
    check_trajectory(robot, found, settings(), scene=CollisionScene(robot, FREE))

    def error(*motions):
        W = np.vstack([rows(robot, motion, noise, 1) for motion in motions])
        return expected_error(robot, known, np.linalg.inv(W.T @ W))

    assert error(present, found) < WORTH * error(present, present)
    # Without time, or where noise alone is what limits, it is the same motion again.
    assert next_motion(robot, settings(iterations=30), known, present, time.monotonic()) is None
    told = known_by(robot, found, noise, 1)
    monkeypatch.setattr('robotid_ros.core.excitation.design.WORTH', 0.1)
    assert next_motion(robot, settings(iterations=5), told, found, end) is None


def test_efforts_of_the_next_motion_are_those_of_what_is_known():
    """A description that is too light would let it pull harder than the drives can."""
    robot = bounded('arm3')
    present = design(robot, settings(iterations=2)).trajectory.at_speed(0.5)
    known = known_by(robot, present, 0.01 * robot.limits.effort, 1)
    light = replace(robot, prior=0.1 * robot.prior)
    end = time.monotonic() + 600.0
    found = next_motion(light, settings(iterations=12), known, present, end)
    assert found is not None
    assert max(check_trajectory(robot, found, settings()).effort) < 0.9


def test_what_is_known_comes_as_it_was_told():
    robot = robot_named('arm3')
    present = design(robot, settings(iterations=2)).trajectory
    terms = make_terms(('viscous', 'coulomb', 'stribeck'), {'stribeck_velocity': 0.3})
    wide = with_friction(robot, (terms, *robot.friction[1:]))
    known = known_by(wide, present, 0.01 * robot.limits.effort)
    text = dump_known(known, wide)
    found, same = read_known(text, robot)
    assert same.friction == wide.friction
    for field in fields(Known):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(known, field.name))
    for damaged in ('', '{}', '[1]', text[:-1], text.replace('stribeck"', 'other"')):
        with pytest.raises(ConfigurationError):
            read_known(damaged, robot)


def test_what_the_model_leaves_out_does_not_count():
    """σ that is twice as wide as noise makes it is scaled back to what the verdict expects."""
    robot = bounded('arm3')
    first = design(robot, settings(iterations=2)).trajectory
    known = known_by(robot, first, 0.01 * robot.limits.effort)
    scene = CollisionScene(robot, FREE)
    alone = NextProblem(robot, settings(), scene, known)
    expected = np.full(robot.n, alone.before)
    wide = replace(known, covariance=4.0 * known.covariance, expected=expected)
    found = NextProblem(robot, settings(), scene, wide)
    assert found.before == pytest.approx(alone.before)
    scaled, right = (each.known.T @ each.known for each in (found, alone))
    np.testing.assert_allclose(scaled, right, atol=1e-12 * np.abs(right).max())


def test_what_the_results_leave_wholly_open_is_refused():
    robot = bounded('arm3')
    known = known_by(robot, design(robot, settings(iterations=2)).trajectory, np.ones(3))
    with pytest.raises(ConfigurationError, match='infinite σ: design a motion without these'):
        design(robot, settings(), known=replace(known, covariance=np.inf * known.covariance))


def test_a_joint_too_slow_for_friction_counts_for_nothing():
    robot = bounded('arm3')
    known = known_by(robot, design(robot, settings(iterations=2)).trajectory, np.ones(3))
    slow = replace(
        robot, limits=replace(robot.limits, velocity=robot.limits.velocity * (1, 1, 1e-4))
    )
    found = NextProblem(slow, settings(), CollisionScene(slow, FREE), known)
    assert 0.0 < found.before < np.inf


@pytest.mark.parametrize(
    ('changes', 'words'),
    [({'joints': ('a', 'b', 'c')}, 'other joints'), ({'names': ('x',) * 20}, 'parameters ')],
)
def test_results_of_another_robot_are_refused(changes, words):
    robot = bounded('arm3')
    known = known_by(robot, design(robot, settings(iterations=2)).trajectory, np.ones(3))
    with pytest.raises(ConfigurationError, match=words):
        design(robot, settings(), known=replace(known, **changes))
