"""Parameters and state of the trajectory controller."""

from dataclasses import dataclass, field

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


@dataclass
class ControllerState:
    """Measured and desired state of an update; the content of controller_state."""

    desired: Point
    current: Point
    error: Values
    error_velocity: Values
    output: Values
