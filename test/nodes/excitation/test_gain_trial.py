"""Gains on trial stay only if that was said; whatever goes wrong sets the old ones again."""

from collections.abc import Mapping

import numpy as np
import pytest
from three_joint_robot import URDF

from robotid_ros.core.excitation.trajectory import point_to_point
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.exceptions import ControllerError, RobotStateError
from robotid_ros.node_settings import GainProposalSettings
from robotid_ros.nodes.excitation.verification_runs import gains_for_motion, on_trial

OLD, NEW = {'gains.a.p': 10.0, 'gains.a.d': 1.0}, {'gains.a.p': 20.0, 'gains.a.d': 2.0}


class FakeController:
    """A controller that may refuse what it is given next."""

    def __init__(self) -> None:
        self.values: dict[str, float] = dict(OLD)
        self.refused = 0

    def set(self, values: Mapping[str, float]) -> None:
        if self.refused:
            self.refused -= 1
            raise ControllerError('refused')
        self.values = dict(values)


class FakeGuardian:
    """Remembers what it would set back."""

    def __init__(self) -> None:
        self.protected: dict[str, float] = {}
        self.gone = False

    def protect(self, parameters: Mapping[str, float]) -> None:
        self.protected = dict(parameters)

    def release(self) -> None:
        if self.gone:
            raise ControllerError('the guardian is gone')
        self.protected = {}


@pytest.fixture
def parts() -> tuple[FakeGuardian, FakeController]:
    return FakeGuardian(), FakeController()


def test_what_is_kept_stays(parts):
    guardian, controller = parts
    with on_trial(*parts, OLD, NEW) as keep:
        assert (controller.values, guardian.protected) == (NEW, OLD)
        keep()
    assert (controller.values, guardian.protected) == (NEW, {})


def test_what_is_not_kept_is_set_back(parts):
    guardian, controller = parts
    with on_trial(*parts, OLD, NEW):
        pass
    assert (controller.values, guardian.protected) == (OLD, {})


@pytest.mark.parametrize('error', [RobotStateError('it swings'), KeyboardInterrupt()])
def test_whatever_ends_the_trial_sets_the_old_gains_again(parts, error: BaseException):
    guardian, controller = parts
    with pytest.raises(type(error)) as caught, on_trial(*parts, OLD, NEW):
        # The guardian ends where it had to cancel the motion.
        guardian.gone = True
        raise error
    assert controller.values == OLD
    if isinstance(error, RobotStateError):
        assert str(caught.value) == 'it swings; the old gains are set again'


def test_gains_that_cannot_be_set_back_are_left_to_the_guardian(parts):
    guardian, controller = parts
    with (
        pytest.raises(ControllerError, match='controller_gains_before'),
        on_trial(*parts, OLD, NEW),
    ):
        controller.refused = 1
    assert (controller.values, guardian.protected) == (NEW, OLD)


def test_gains_are_not_kept_without_a_guardian_that_knows(parts):
    guardian, controller = parts
    with pytest.raises(RobotStateError, match='set again'), on_trial(*parts, OLD, NEW) as keep:
        guardian.gone = True
        keep()
    assert controller.values == OLD


@pytest.mark.parametrize('value', [0.0, np.nan])
def test_no_gains_follow_from_results_without_bodies(value: float):
    robot = build_robot(URDF, RobotSettings())
    rest, speed = np.zeros(robot.n), np.ones(robot.n)
    motion = point_to_point(robot.joints, rest, rest + 0.1, speed, speed)
    with pytest.raises(ControllerError, match='no physically consistent parameters'):
        gains_for_motion(robot, np.full(robot.p, value), motion, {}, GainProposalSettings())
