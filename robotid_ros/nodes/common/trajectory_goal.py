"""One goal of FollowJointTrajectory: send, accept, watch, cancel; every wait is bounded."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
import uuid

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from rclpy.action import ActionClient
from rclpy.node import Node
from unique_identifier_msgs.msg import UUID

from ...core.excitation.trajectory import Waypoints
from ...exceptions import ControllerError, RobotStateError
from .controller import ACTION, CANCEL, cancel_request, CANCELLED, ControllerClient, HardwareClient
from .messages import duration_message, to_time, trajectory_message
from .waiting import result_of, wait_until

_STATUS_TEXTS = {
    GoalStatus.STATUS_ABORTED: 'aborted',
    GoalStatus.STATUS_CANCELED: 'cancelled by somebody else',
}
# Of a goal that the controller itself ended: it was deactivated, or took another goal.
ENDED_BY_CONTROLLER = FollowJointTrajectory.Result.INVALID_GOAL
PATH_VIOLATED = FollowJointTrajectory.Result.PATH_TOLERANCE_VIOLATED
END_VIOLATED = FollowJointTrajectory.Result.GOAL_TOLERANCE_VIOLATED
_ERROR_TEXTS = {
    PATH_VIOLATED: 'a joint left its path tolerance',
    END_VIOLATED: 'a joint did not reach its goal',
}


class TrajectoryClient(ControllerClient):
    """A controller and its action; waits end in `ControllerError` after a `timeout` [s]."""

    def __init__(self, node: Node, controller: str, timeout: float):
        super().__init__(node, controller, timeout)
        self._node, self.action = node, f'{controller}/{ACTION}'
        self._client = ActionClient(node, FollowJointTrajectory, self.action)
        self.hardware = HardwareClient(node, controller)
        self._cancel = node.create_client(CancelGoal, f'{controller}/{CANCEL}')

    def wait_for_server(self) -> None:
        """Wait for the action server."""
        wait_until(
            lambda: self._client.server_is_ready() and self._cancel.service_is_ready(),
            self.timeout,
            what=f"nobody serves the action '{self.action}': activate the controller",
        )

    def send(
        self,
        goal_id: uuid.UUID,
        points: Waypoints,
        path: Sequence[float],
        end: Sequence[float],
        goal_time: float,
        stamp: int = 0,
    ) -> 'TrajectoryGoal':
        """
        Send a goal; return it, not yet accepted. Whoever may have to cancel it knows its id.

        Tolerances (n,) are on the way and at the `end` [rad or m], and `goal_time` the time to
        come within these [s]. The motion begins or began at a stamp [ns], 0: as it is received.
        """
        trajectory = trajectory_message(points)
        trajectory.header.stamp = to_time(stamp)
        path_tolerance, goal_tolerance = (
            [JointTolerance(name=name, position=float(x)) for name, x in rows]
            for rows in (zip(points.joints, values, strict=True) for values in (path, end))
        )
        goal = FollowJointTrajectory.Goal(
            trajectory=trajectory,
            path_tolerance=path_tolerance,
            goal_tolerance=goal_tolerance,
            goal_time_tolerance=duration_message(goal_time),
        )
        name = UUID(uuid=list(goal_id.bytes))
        handle = self.call_in_executor(lambda: self._client.send_goal_async(goal, goal_uuid=name))
        return TrajectoryGoal(self, points.joints, handle)

    def call_in_executor(self, function: Callable[[], Any]) -> Any:
        """Call in the executor: the client loses an answer taken before it notes its request."""
        executor = self._node.executor
        assert executor is not None
        return result_of(executor.create_task(function), self.timeout, 'this node')

    def cancel(self, goal_id: uuid.UUID, timeout: float) -> bool:
        """Cancel a goal; True when the controller confirms that it does not run any more."""
        with suppress(ControllerError):
            future = self._cancel.call_async(cancel_request(goal_id))
            return result_of(future, timeout, self.action).return_code in CANCELLED
        return False


class TrajectoryGoal:
    """A goal that was sent; `violated` is the tolerance by which the controller has stopped it."""

    def __init__(self, client: TrajectoryClient, joints: Sequence[str], handle: Any):
        self._client, self._joints, self._handle = client, joints, handle
        self._result: Any = None
        self.violated: int | None = None

    def accepted(self) -> bool:
        """Return whether the controller has accepted it; False while there is no answer."""
        if self._result is None and self._handle.done():
            handle = self._handle.result()
            if not handle.accepted:
                raise ControllerError(
                    f"'{self._client.action}' refused the trajectory: the controller's log says "
                    'why (is it active, does it control exactly these joints?)'
                )
            self._result = self._client.call_in_executor(handle.get_result_async)
        return self._result is not None

    def finished(self) -> bool:
        """Return whether the motion has succeeded."""
        if self._result is None or not self._result.done():
            return False
        answer = self._result.result()
        # A cancelled goal has error code 0: only the status shows it.
        if answer.status == GoalStatus.STATUS_SUCCEEDED:
            return True
        code, text = answer.result.error_code, answer.result.error_string
        if answer.status == GoalStatus.STATUS_ABORTED and code in _ERROR_TEXTS:
            text, self.violated = text or _ERROR_TEXTS[code], code
        end = _STATUS_TEXTS.get(answer.status, f'ended with status {answer.status}')
        parts = [end, text]  # what the controller itself says comes first
        if code == ENDED_BY_CONTROLLER:
            parts.append(self._client.hardware.explain_end(self._joints))
        details = ': '.join(filter(None, parts))
        raise RobotStateError(f'the controller stopped the motion, {details}')
