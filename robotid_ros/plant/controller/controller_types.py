"""Parameters, state and goals of the trajectory controller."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...simulation_settings import ConstraintSettings, GainSettings
from .goal_acceptance import AcceptanceRules
from .interpolation import Point, Values


@dataclass(frozen=True)
class ControllerSettings:
    """The controller's parameters."""

    joints: tuple[str, ...]
    wraparound: tuple[bool, ...]
    period: int
    gains: dict[str, GainSettings] = field(default_factory=dict)
    constraints: ConstraintSettings = field(default_factory=ConstraintSettings)
    rules: AcceptanceRules = field(default_factory=AcceptanceRules)
    cmd_timeout: float = 0.0
    command_interface: str = 'effort'


@dataclass
class ControllerState:
    """
    Measured and desired state of an update; the content of controller_state.

    `output` is the command, in the unit of the command interface.
    """

    desired: Point
    current: Point
    error: Values
    error_velocity: Values
    output: Values
    speed_scaling: float = 1.0


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
