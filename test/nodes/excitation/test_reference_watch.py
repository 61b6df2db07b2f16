"""A controller that follows another trajectory than the one that was sent is noticed."""

from types import SimpleNamespace

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import point_to_point
from robotid_ros.exceptions import RobotStateError
from robotid_ros.nodes.excitation.checks import LATE, PERSISTENCE, ReferenceWatch

JOINTS = ('a', 'b')
POINTS = point_to_point(
    JOINTS, np.zeros(2), np.array([1.0, -2.0]), np.full(2, 1.0), np.full(2, 2.0)
)
TOLERANCE = np.array([0.1, 0.1])


def run(reference, until=None, as_planned=True, period=0.01):
    """Look at the references of a motion, as the monitor does; return when it was stopped."""
    watch = ReferenceWatch(POINTS, TOLERANCE)
    for now in np.arange(0.0, until or POINTS.duration + 0.5, period):
        positions = reference(now)
        state = SimpleNamespace(
            joint_names=['b', 'a'], reference=SimpleNamespace(positions=positions[::-1])
        )
        clock = SimpleNamespace(as_planned=as_planned, elapsed=now)
        try:
            watch.check([state], clock, now)
        except RobotStateError as error:
            return now, str(error)
    return None


def sent(now, late=0.0):
    return POINTS.sample(np.clip([now - late], 0.0, POINTS.duration)).q[0].tolist()


@pytest.mark.parametrize('late', [-0.9 * LATE, 0.0, 0.9 * LATE])
def test_the_motion_that_was_sent_may_be_seen_a_little_late(late: float):
    assert run(lambda now: sent(now, late)) is None


@pytest.mark.parametrize('begin', [0.0, 1.0])
def test_another_motion_is_told_by_the_joint(begin: float):
    """Joint b goes elsewhere from then on, at 0.5 rad/s."""

    def reference(now):
        a, b = sent(min(now, begin))
        return [a, b + 0.5 * max(now - begin, 0.0)]

    stopped, said = run(reference)
    assert "the controller's reference of b is" in said
    # Beyond the tolerance after 0.2 s and what it should have moved itself, then it has to last.
    assert begin + PERSISTENCE < stopped < begin + 1.0


def test_a_motion_that_was_cancelled_is_told_from_another_one():
    stopped, said = run(lambda now: sent(min(now, 0.8)))
    assert said.endswith('it was cancelled')
    assert 0.8 + PERSISTENCE < stopped < 1.8


def test_a_short_disagreement_is_none():
    def reference(now):
        jump = 5.0 if 1.0 < now < 1.0 + 0.8 * PERSISTENCE else 0.0
        return [x + jump for x in sent(now)]

    assert run(reference) is None


def test_where_the_time_is_not_known_nothing_is_compared():
    assert run(lambda now: [9.0, 9.0], as_planned=False) is None
