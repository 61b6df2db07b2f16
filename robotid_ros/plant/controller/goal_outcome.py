"""How goals end."""

from enum import Enum
from typing import Any


class GoalOutcome(Enum):
    """How a goal ended."""

    SUCCEEDED = 'succeeded'
    ABORTED = 'aborted'
    CANCELED = 'canceled'


class GoalHandle:
    """State of a running goal: written by the controller, read by the action server."""

    def __init__(self) -> None:
        self.outcome: GoalOutcome | None = None
        self.code, self.text = 0, ''
        self.feedback: Any = None

    def finish(self, outcome: GoalOutcome, code: int, text: str) -> None:
        """End it; the outcome is written last: who reads it finds code and text complete."""
        self.code, self.text = code, text
        self.outcome = outcome
