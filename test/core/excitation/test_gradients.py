"""Exact gradients against finite differences, for every robot and criterion."""

from hypothesis import assume, given, HealthCheck, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.observation_matrix import ObservationModel, ObservedMotion
from robotid_ros.core.excitation.problem import CRITERIA, Problem
from robotid_ros.core.excitation.settings import Margins, Obstacle, Workspace
from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.model import regressor
from robotid_ros.exceptions import UnknownNameError

from .robots import arms, FREE, quick, robot_named

ROBOTS = ('emps', 'scara', 'arm3', 'tx40', 'ur10', 'puma560', 'planar_2r_elastic')


def directional(function, x, direction, step=1e-4):
    """Differentiate by a five-point stencil along a direction."""
    f = [function(x + k * step * direction) for k in (-2, -1, 1, 2)]
    return (f[0] - 8.0 * f[1] + 8.0 * f[2] - f[3]) / (12.0 * step)


def random_motion(robot, rng, count=40):
    return Motion(*(rng.uniform(-1.5, 1.5, (count, robot.n)) for _ in range(3)))


@pytest.mark.parametrize('name', ROBOTS)
def test_matrix_is_the_regressor_of_the_model(name, rng):
    robot = robot_named(name)
    observation, motion = ObservationModel(robot), random_motion(robot, rng)
    expected = np.moveaxis(regressor(robot, *motion), 0, 1)
    np.testing.assert_allclose(observation.matrix(motion), expected, atol=1e-12)


@pytest.mark.parametrize('name', ROBOTS)
def test_gradient_of_the_matrix(name, rng):
    robot = robot_named(name)
    observation = ObservationModel(robot, np.full(robot.n, 3.0))
    motion, step = random_motion(robot, rng), 1e-4
    weights = rng.normal(size=observation.matrix(motion).shape)
    gradient = ObservedMotion(observation, motion).gradient(weights)
    direction = Motion(*(rng.normal(size=x.shape) for x in motion))

    def value(shift):
        moved = Motion(*(x + shift * d for x, d in zip(motion, direction, strict=True)))
        return float(np.sum(weights * observation.matrix(moved)))

    numeric = directional(lambda s: value(float(s)), 0.0, 1.0, step)
    exact = sum(float(np.sum(g * d)) for g, d in zip(gradient, direction, strict=True))
    assert exact == pytest.approx(numeric, rel=1e-8, abs=1e-8 * np.abs(weights).sum() * 1e-3)


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('kind', [*CRITERIA])
def test_gradient_of_the_design(name, kind, rng):
    """All criteria, to 1e-7."""
    assert_exact(robot_named(name), kind, rng)


@given(arms(), st.sampled_from([*CRITERIA]), st.integers(0, 999))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_gradient_of_the_design_of_any_arm(robot, kind, seed):
    problem, x = drawn(robot, kind, np.random.default_rng(seed))
    w = problem.observation.matrix(problem.motion(*problem.unpack(x)))
    # Rounding blurs values by 1e-16 cond(W)², and a step of 1e-3 magnifies that a thousandfold: at
    # a condition of 700, differences were seen to be off by half of the tolerance.
    assume(np.linalg.cond(w[:, :, problem.columns].reshape(-1, len(problem.columns))) < 300.0)
    assert_exact(robot, kind, np.random.default_rng(seed))


def drawn(robot, kind, rng):
    """Make a problem and a random point of it."""
    excitation = quick(criterion=kind, order=4)
    problem = Problem(robot, excitation, CollisionScene(robot, Workspace(self_collision=False)))
    return problem, problem.random_point(rng)


def assert_exact(robot, kind, rng):
    """Compare the gradient at a random point along a random direction."""
    problem, x = drawn(robot, kind, rng)
    direction = rng.normal(size=x.shape) / np.sqrt(len(x))
    gradient = problem.evaluate(x)[1]
    exact = gradient @ direction
    scale = max(abs(exact), 1e-2 * np.linalg.norm(gradient))
    # Long steps leave the parabola, short ones drown in rounding; which is long, the arm decides.
    steps = (3e-5, 1e-3, 3e-4, 1e-4, 3e-3)
    errors = (abs(directional(value_of(problem), x, direction, h) - exact) for h in steps)
    assert any(error < 1e-7 * scale for error in errors)


@given(st.integers(2, 12), st.integers(0, 9999), st.sampled_from(sorted(CRITERIA)))
@settings(max_examples=200, deadline=None)
def test_gradient_of_a_criterion(size, seed, kind):
    """To 1e-7: steps are a fraction of the way to where an eigenvalue crosses another, or zero."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(3 * size, size))
    s, direction = w.T @ w / 9.0, rng.normal(size=(size, size))
    direction = (direction + direction.T) / np.sqrt(2.0)
    scale = 1.0 / np.sqrt(np.diag(s))
    way = min(smooth_way(s, direction), smooth_way(*(np.outer(scale, scale) * (s, direction))))
    objective = CRITERIA[kind].objective
    gradient = objective(s)[1]
    numeric = directional(lambda m: objective(m)[0], s, direction, 4e-3 * way)
    size_of = max(abs(numeric), 1e-2 * np.linalg.norm(gradient) * np.linalg.norm(direction))
    assert abs(float(np.sum(gradient * direction)) - numeric) < 1e-7 * size_of


def smooth_way(s, direction):
    """Least step along a direction that could join eigenvalues, or bring one to zero."""
    values = np.linalg.eigvalsh(s)
    return min(np.diff(values).min(), values[0]) / (2.0 * np.linalg.norm(direction, 2))


def test_criteria_agree_with_their_definitions(rng):
    w = rng.normal(size=(50, 6)) * np.arange(1, 7)
    s = w.T @ w
    value = {k: c.report(c.objective(s)[0]) for k, c in CRITERIA.items()}
    scaled = w / np.linalg.norm(w, axis=0)
    assert value['condition'] == pytest.approx(np.linalg.cond(w))
    assert value['normalised_condition'] == pytest.approx(np.linalg.cond(scaled))
    assert value['frobenius'] == pytest.approx(np.linalg.cond(s, 'fro'))
    assert value['d_optimal'] == pytest.approx(-np.log(np.linalg.det(s)) / 6.0)
    assert value['smallest'] == pytest.approx(-np.linalg.svd(w, compute_uv=False)[-1])


def test_unknown_criteria_are_named():
    with pytest.raises(UnknownNameError, match='use one of condition'):
        robot = robot_named('arm3')
        Problem(robot, quick(criterion='volume'), CollisionScene(robot, FREE))


@pytest.mark.parametrize(
    ('name', 'count'), [('emps', 4), ('scara', 11), ('tx40', 61), ('ur10', 58)]
)
def test_base_columns(name, count, rng):
    """As many as the rank, and the others depend on them."""
    observation = ObservationModel(robot_named(name))
    motion = random_motion(robot_named(name), rng, 100)
    w = observation.matrix(motion).reshape(-1, observation.width)
    chosen = Problem(robot_named(name), quick(), free_scene(name)).columns
    assert len(chosen) == count
    assert np.linalg.matrix_rank(w[:, chosen]) == np.linalg.matrix_rank(w, tol=1e-8) == count


@pytest.mark.parametrize('start', [(), (0.3, -0.4, 0.5)])
def test_gradient_of_what_exceeds_the_bounds(start, rng):
    """A start off the middle of its range is part of what a joint uses."""
    problem = Problem(robot_named('arm3'), quick(start=start), free_scene('arm3'))
    problem.weight = 1e4
    x = 10.0 * problem.random_point(rng)
    assert np.abs(problem.usage(x)).max(axis=(1, 2)).min() > 1.0
    direction = rng.normal(size=x.shape)
    numeric = directional(value_of(problem), x, direction, 1e-6)
    assert problem.evaluate(x)[1] @ direction == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize('name', ['condition', 'normalised_condition'])
def test_smoothed_conditions_are_above_and_come_near(name, rng):
    w, step = rng.normal(size=(40, 6)), rng.normal(size=(6, 6))
    s, step = w.T @ w, step + step.T
    objective = CRITERIA[name].objective
    values = [objective(s, sharpness)[0] for sharpness in (1.0, 4.0, 64.0, 1e6)]
    assert values == sorted(values, reverse=True)
    assert values[-2] > objective(s)[0] == pytest.approx(values[-1], abs=1e-5)
    numeric = directional(lambda y: objective(y, 4.0)[0], s, step, 1e-6)
    assert np.sum(objective(s, 4.0)[1] * step) == pytest.approx(numeric, rel=1e-6)


def free_scene(name):
    return CollisionScene(robot_named(name), Workspace(self_collision=False))


@pytest.mark.parametrize('name', ['arm3', 'tx40', 'ur10'])
def test_gradient_of_the_scene(name, rng):
    """Distances are found to 1e-6 m, so the step is wide and the comparison loose."""
    robot = robot_named(name)
    sphere = Obstacle('sphere', (0.5, 0.0, 0.5), size=(0.1,))
    box = {'lower': (-0.6, -0.6, 0.1), 'upper': (0.6, 0.6, 1.2)}
    scene = CollisionScene(
        robot, Workspace(ground=0.0, distance=0.05, obstacles={'ball': sphere}, **box)
    )
    worst = []
    for q in rng.uniform(-1.5, 1.5, (120, 1, robot.n)):
        value, gradient = scene.penalty(q)
        if value > 0.0 and scene.clearances(q).min() > -0.04:
            direction = rng.normal(size=q.shape)
            numeric = directional(lambda x: scene.penalty(x)[0], q, direction, 2e-4)
            exact = float(np.sum(gradient * direction))
            worst.append(abs(exact - numeric) / (1.0 + abs(numeric)))
    assert len(worst) > 5
    assert np.median(worst) < 3e-2


@pytest.mark.parametrize('name', ['tx40', 'ur10'])
def test_gradient_of_the_design_among_bodies(name, rng):
    """The scene's penalty goes through all coefficients; distances are found to 1e-6 m."""
    robot = robot_named(name)
    workspace = Workspace(ground=0.0, lower=(-0.7, -0.7, 0.1), upper=(0.7, 0.7, 1.3))
    problem = Problem(robot, quick(), CollisionScene(robot, workspace))
    errors = []
    for x in (problem.random_point(rng) for _ in range(5)):
        problem.weight = 50.0
        assert problem.scene.penalty(places(problem, x))[0] > 0.0
        direction = rng.normal(size=x.shape) / np.sqrt(len(x))
        numeric = directional(value_of(problem), x, direction, 1e-4)
        errors.append(abs(problem.evaluate(x)[1] @ direction - numeric) / abs(numeric))
    assert np.median(errors) < 1e-2


@pytest.mark.parametrize('weight', [50.0, 5000.0])
def test_gradient_of_the_design_above_effort_limits(weight, rng):
    """A tenth of the drives: most of a motion needs more."""
    robot = robot_named('ur10')
    problem = Problem(robot, quick(margins=Margins(effort=0.9)), CollisionScene(robot, FREE))
    problem.weight = weight
    for x in (problem.random_point(rng) for _ in range(5)):
        tau = problem.observation.matrix(problem.motion(*problem.unpack(x))) @ problem.robot.prior
        assert (np.abs(tau) > problem.design_limits.effort).any()
        direction = rng.normal(size=x.shape) / np.sqrt(len(x))
        numeric = directional(value_of(problem), x, direction, 1e-5)
        assert problem.evaluate(x)[1] @ direction == pytest.approx(numeric, rel=1e-4)


def value_of(problem):
    """Return the value of a problem as a function of its variables."""
    return lambda x: problem.evaluate(x)[0]


def places(problem, x):
    start, c = problem.unpack(x)
    return start + problem.collision_basis @ c
