"""Gains on trial stay only if that was said; whatever goes wrong sets the old ones again."""

from collections.abc import Mapping
from pathlib import Path

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robotid_ros.core.excitation.trajectory import point_to_point, Waypoints
from robotid_ros.core.identification_settings import GainProposalSettings
from robotid_ros.core.model import build_robot
from robotid_ros.core.verification.feed_forward import with_rests
from robotid_ros.exceptions import ControllerError, RobotStateError, SilentRobotError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.results import Results
from robotid_ros.nodes.common.controller import ControllerDescription
from robotid_ros.nodes.common.model_node import VerifiedModel
from robotid_ros.nodes.excitation.verifications import (
    grown,
    MotionLog,
    on_trial,
    propose_after_run,
)

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
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


def test_a_controller_that_is_silent_is_said_at_once_and_left_to_the_guardian(parts):
    guardian, controller = parts
    with (
        pytest.raises(SilentRobotError, match='no states; the guardian sets the old') as caught,
        on_trial(*parts, OLD, NEW),
    ):
        raise SilentRobotError('no states', ('a',))
    assert (controller.values, guardian.protected, caught.value.joints) == (NEW, OLD, ('a',))


def test_what_ended_the_trial_is_said_before_what_came_of_it(parts):
    with (
        pytest.raises(ControllerError, match='it swings; the controller may still have the new'),
        on_trial(*parts, OLD, NEW),
    ):
        parts[1].refused = 1
        raise RobotStateError('it swings')


def test_gains_are_not_kept_without_a_guardian_that_knows(parts):
    guardian, controller = parts
    with pytest.raises(RobotStateError, match='set again'), on_trial(*parts, OLD, NEW) as keep:
        guardian.gone = True
        keep()
    assert controller.values == OLD


def test_gains_are_proposed_for_the_run_that_was_logged():
    configuration = load(CONFIG)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    results = Results('scara', 'wls', 'now', robot.joints, (), (), ())
    model = VerifiedModel(Path(), results, robot, robot.prior, robot.prior)
    gains = {'joint_1': (3400.0, 225.0), 'joint_2': (220.0, 7.4)}
    rows = [(f'gains.{joint}', *pd) for joint, pd in gains.items()]
    values = {f'{name}.{gain}': g for name, *pd in rows for gain, g in zip('pd', pd, strict=True)}
    values |= {'joints': robot.joints, 'command_interfaces': ['effort'], 'update_rate': 1000}
    ends = np.outer((0.0, 0.3, 1.0, 2.0), (1.0, 1.0))
    points = with_rests(point_to_point(robot.joints, *ends))
    states, joint_states = [], []
    for k in range(round(points.duration * 1000.0)):
        state = JointTrajectoryControllerState(joint_names=list(robot.joints))
        state.reference.positions = state.feedback.positions = [0.0, 0.0]
        state.error.positions = [1e-3, 2e-3]
        measured = JointState(name=list(robot.joints), position=[1e-7 * k, 2e-7 * k])
        for message, kept in ((state, states), (measured, joint_states)):
            message.header.stamp.nanosec = k * 1_000_000 % 10**9
            message.header.stamp.sec = k * 1_000_000 // 10**9
            kept.append(serialize_message(message))
    description = ControllerDescription.from_parameters('arm', values)
    log = MotionLog(robot.joints, states, joint_states)
    tracking, found = propose_after_run(log, description, points, model, GainProposalSettings())
    np.testing.assert_allclose(tracking.rms, [1e-3, 2e-3])
    assert found.better and max(found.ratio) < 0.7
    assert {joint: (g.p, g.d) for joint, g in found.old.items()} == gains


def test_a_motion_grows_to_a_share_of_itself_and_is_smooth():
    ends = np.array([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    whole = point_to_point(('a', 'b'), *ends)
    times = np.linspace(0.0, whole.duration, 2001)
    whole = Waypoints(whole.joints, times, *whole.sample(times))
    part = grown(whole, 0.5)
    np.testing.assert_allclose(part.q[[0, -1]], [[0.0, 2.0], [1.0, 1.0]])
    np.testing.assert_allclose([part.dq[[0, -1]], part.ddq[[0, -1]]], 0.0, atol=1e-9)
    share = ((part.q - part.q[0]) / (whole.q[-1] - whole.q[0])).max(axis=1)
    assert (np.diff(share) >= 0.0).all()
    for value, slope in ((part.q, part.dq), (part.dq, part.ddq)):
        steps = np.gradient(value, times, axis=0)
        np.testing.assert_allclose(steps[1:-1], slope[1:-1], atol=1e-4)
