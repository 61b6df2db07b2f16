"""What becomes of a goal."""

from enum import Enum
from typing import Any


class GoalOutcome(Enum):
    """How a goal ended."""

    SUCCEEDED = 'succeeded'
    ABORTED = 'aborted'
    CANCELED = 'canceled'


class GoalHandle:
    """A goal that runs: set by the controller, read by whoever reports to the client."""

    def __init__(self) -> None:
        self.outcome: GoalOutcome | None = None
        self.code, self.text = 0, ''
        self.feedback: Any = None

    def finish(self, outcome: GoalOutcome, code: int, text: str) -> None:
        """End it; the outcome is written last, so that a reader sees it whole."""
        self.code, self.text = code, text
        self.outcome = outcome
