"""No message ends a node: what a callback cannot use is passed over, counted and told."""

from collections import Counter
from collections.abc import Callable
import functools
from typing import Any

from .messages import one_line


class MessageGuard:
    """
    Counts the messages that callbacks could not use, by topic.

    Parameters
    ----------
    warn : called with a sentence

    Attributes
    ----------
    counts : messages that were passed over, by topic

    """

    def __init__(self, warn: Callable[[str], Any]):
        self.counts: Counter[str] = Counter()
        self._warn = warn

    @property
    def total(self) -> int:
        """Messages that were passed over."""
        return self.counts.total()

    def add(self, topic: str, reason: str, count: int = 1) -> None:
        """Count messages; tell of the first, and then whenever there are twice as many."""
        before = self.counts[topic]
        self.counts[topic] = after = before + count
        if before.bit_length() != after.bit_length():
            self._warn(f"a message on '{topic}' was passed over, {after} so far: {reason}")

    def wrap(self, topic: str, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback of a subscription that passes over what this one cannot use."""

        @functools.wraps(callback)
        def guarded(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                # Whatever the content leads to: it may come from anybody on the network.
                self.add(topic, one_line(error))

        return guarded
