"""Pairs that keep their distance whatever joints do: proven, never guessed."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.distance_bounds import keeps_distance
from robotid_ros.core.excitation.settings import Workspace

from .robots import robot_named


@settings(max_examples=20, deadline=None)
@given(
    st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.2, 0.6), st.sampled_from((-0.05, 0.05))
)
def test_what_is_proven_is_so(first, second, depth, slack):
    """A distance with one narrow pit, somewhere; whether it is below the least one is known."""
    pit, half = np.array([first, second]), np.full(2, np.pi)

    def distance_at(x):
        return 1.0 - depth * max(0.0, 1.0 - 4.0 * float(np.linalg.norm(x - pit)))

    least = 1.0 - depth + slack
    proven = keeps_distance(distance_at, np.zeros(2), half, np.full(2, 4.0 * depth), least)
    assert proven == (slack < 0.0)


def test_what_takes_too_long_is_not_proven():
    assert not keeps_distance(lambda x: 1.0, np.zeros(2), np.ones(2), np.ones(2), 1.0 - 1e-9)


@pytest.mark.parametrize(('distance', 'lasting'), [(0.005, 3), (0.02, 2)])
def test_pairs_left_to_themselves_never_come_near(distance, lasting, rng):
    """Links of the UR10 that are next but one pass each other by 15 mm and more."""
    robot = robot_named('ur10')
    scene = CollisionScene(robot, Workspace(distance=distance, ground=0.0))
    q = rng.uniform(-np.pi, np.pi, (200, robot.n))
    found = np.array([scene._distances(x) for x in scene._model_order(q)])
    apart = scene._always_apart
    assert apart.sum() == lasting
    assert (found[:, apart] >= distance).all()
    assert scene.penalty(q)[0] > 0.0 and not scene.penalty(q)[1][:, apart].any()
