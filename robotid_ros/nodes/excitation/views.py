"""The designed motion as an animation, on a topic that moves nothing."""

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.excitation import Design, Waypoints, waypoints
from ...exceptions import RobotStateError

TOPIC = '~/preview'


class Preview:
    """
    Plays a design's motions in real time, as joint states that a robot_state_publisher can show.

    Parameters
    ----------
    node : whose executor publishes
    group : callbacks that never run at the same time as it

    """

    def __init__(self, node: Node, group: CallbackGroup):
        self._node = node
        self._publisher = node.create_publisher(JointState, TOPIC, 10)
        self._motions: list[Waypoints] = []
        self._next = 0
        self._timer = node.create_timer(1.0, self._publish, group, autostart=False)

    def play(self, design: Design, rate: float) -> float:
        """
        Begin with the excitation, one period of it; the validation follows.

        Parameters
        ----------
        design : what to show
        rate : messages per second [Hz]

        Returns
        -------
        How long it takes [s].

        Raises
        ------
        RobotStateError : the topic is that of a robot's joint states

        """
        self._check_topic_is_free()
        plans = (design.trajectory, design.validation)
        self._motions = [waypoints(plan, rate) for plan in plans if plan is not None]
        self._next = 0
        self._timer.timer_period_ns = round(1e9 / rate)
        self._timer.reset()
        return sum(motion.duration for motion in self._motions)

    def stop(self) -> bool:
        """Stop the animation; return whether it was playing."""
        playing = not self._timer.is_canceled()
        self._timer.cancel()
        return playing

    def _check_topic_is_free(self) -> None:
        """Refuse to mix the joint states of a robot with those of a preview."""
        topic = self._publisher.topic_name
        robot = {'/joint_states', self._node.resolve_topic_name('joint_states')}
        if topic in robot or self._node.count_publishers(topic) > 1:
            raise RobotStateError(
                f"'{topic}' carries the joint states of a robot: remap 'excitation/preview' to a "
                'topic on which nobody else publishes'
            )

    def _publish(self) -> None:
        motion = self._motions[0]
        message = JointState(
            name=list(motion.joints),
            position=motion.q[self._next].tolist(),
            velocity=motion.dq[self._next].tolist(),
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
        self._next += 1
        if self._next == len(motion.time):
            self._motions, self._next = self._motions[1:], 0
            if not self._motions:
                self.stop()
