"""
Topics that are read in batches, many messages at a time.

An executor spends several times longer on a message than it takes to store it, and its queue
overflows when Python is late. A `BatchedSubscription` leaves messages in the middleware's queue
until somebody takes them: from a timer, or from the thread that watches the robot.
"""

from collections import deque
from collections.abc import Callable, Iterator
import time
from typing import Any, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from .waiting import run_in_executor, wait_until

# How many messages `take_newest` decodes at once, and for how long [s]: half a second of 1 kHz;
# of a flood, or of what arrives faster than it is decoded, as many as leave whoever watches the
# robot its period. It is processor time: a thread that a busy machine holds up meanwhile would
# take what it did not look at for silence.
NEWEST, DECODING_TIME = 500, 0.02


class SerializedMessage(NamedTuple):
    """One message: serialized (CDR), and when it was received and published [ns, system time]."""

    data: bytes
    received: int
    published: int


def decode(data: bytes, message_type: type) -> Any | None:
    """Return a message, None of data that do not follow its type."""
    try:
        return deserialize_message(data, message_type)
    except Exception:  # the middleware raises whatever the bytes lead to
        return None


class _NeverExecutedGroup(ReentrantCallbackGroup):
    """Keeps an executor from waiting for a subscription."""

    def can_execute(self, entity: object) -> bool:
        return False


class BatchedSubscription:
    """Subscription without callback: `depth` messages wait, the last `kept` stay in `recent`."""

    def __init__(
        self,
        node: Node,
        message_type: type,
        topic: str,
        *,
        depth: int = 1000,
        latched: bool = False,
        kept: int = 0,
    ):
        self._node, self._depth = node, depth
        self.recent: deque[SerializedMessage] = deque(maxlen=kept)
        self.message_type, self.latched = message_type, latched
        # A profile that connects to every publisher that is there, as reliable as they allow; best
        # effort connects to all who come later.
        offered = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
        offers = [info.qos_profile for info in offered]
        reliable, best_effort = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
        transient_local, volatile = DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE
        all_reliable = bool(offers) and all(offer.reliability == reliable for offer in offers)
        all_keep = all(offer.durability == transient_local for offer in offers)
        qos = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=depth,
            reliability=reliable if latched or all_reliable else best_effort,
            durability=transient_local if latched and all_keep else volatile,
        )
        given = message_type, topic, lambda _: None, qos
        group = _NeverExecutedGroup()
        self._subscription = node.create_subscription(*given, callback_group=group, raw=True)

    @property
    def topic(self) -> str:
        """Full name, after remapping."""
        return str(self._subscription.topic_name)

    @property
    def publishers(self) -> frozenset[bytes]:
        """Ids of the publishers; one that was started anew has another id."""
        infos = self._node.get_publishers_info_by_topic(self.topic)
        return frozenset(bytes(info.endpoint_gid) for info in infos)

    def take_serialized(self) -> Iterator[SerializedMessage]:
        """Take what has arrived, oldest first; of a flood no more than the queue holds."""
        handle = self._subscription.handle
        for _ in range(self._depth):
            with handle:
                taken = handle.take_message(self.message_type, True)
            if taken is None:
                return
            data, info = taken
            published = info['source_timestamp']
            received = info['received_timestamp'] or published
            self.recent.append(sample := SerializedMessage(data, received, published))
            yield sample

    def take_messages(self) -> Iterator[Any]:
        """Take what has arrived as messages, oldest first."""
        messages = (self.decode(sample) for sample in self.take_serialized())
        return (message for message in messages if message is not None)

    def decode(self, sample: SerializedMessage) -> Any | None:
        """Return a message, None of one that does not follow its type."""
        return decode(sample.data, self.message_type)

    def wait_for_latest(
        self, timeout: float, what: str, is_usable: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        """Wait until something usable has arrived; return the newest, or raise `what`."""
        (newest,) = wait_until(
            lambda: self.take_newest(is_usable, 1, timeout)[0], timeout, what=what
        )
        return newest

    def take_newest(
        self,
        is_usable: Callable[[Any], bool] = lambda _: True,
        count: int = NEWEST,
        time_limit: float = DECODING_TIME,
    ) -> tuple[list[Any], int]:
        """Take all, decode the newest `count`; return usable ones, and how many others."""
        waiting = list(self.take_serialized())
        messages: deque[Any] = deque()
        unusable, end = 0, time.thread_time() + time_limit
        while waiting and len(messages) < count:
            message = self.decode(waiting.pop())
            if message is not None and is_usable(message):
                messages.appendleft(message)
            else:
                unusable += 1
            if time.thread_time() > end:
                break
        return list(messages), unusable

    def close(self) -> None:
        """Unsubscribe."""
        run_in_executor(self._node, lambda: self._node.destroy_subscription(self._subscription))
