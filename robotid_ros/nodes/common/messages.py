"""What the nodes' messages hold; when they are sent is the nodes' matter."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from ...exceptions import RobotIdError


class State(Enum):
    """Where a session is."""

    IDLE = 'idle'
    DESIGNING = 'designing'
    REHEARSING = 'rehearsing'
    APPROACHING = 'approaching'
    EXCITING = 'exciting'
    VALIDATING = 'validating'
    VERIFYING = 'verifying'
    DONE = 'done'
    FAILED = 'failed'

    @property
    def moving(self) -> bool:
        """Whether the robot moves."""
        return self in (State.APPROACHING, State.EXCITING, State.VALIDATING, State.VERIFYING)

    @property
    def ended(self) -> bool:
        """Whether a session is over."""
        return self in (State.DONE, State.FAILED)


def status(
    name: str,
    message: str,
    values: Mapping[str, Any],
    *,
    hardware: str = '',
    level: bytes = DiagnosticStatus.OK,
) -> DiagnosticStatus:
    """Build a DiagnosticStatus; numbers keep their full precision."""
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=format_value(value)) for key, value in values.items()],
    )


def format_value(value: Any) -> str:
    """Write a value so that it reads back exactly."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def values_of(message: DiagnosticStatus) -> dict[str, str]:
    """Values of a DiagnosticStatus by key."""
    return {item.key: item.value for item in message.values}


def one_line(error: BaseException) -> str:
    """Text of an error as one sentence; what is not the package's own names its type."""
    text = ' '.join(str(error).split())
    return text if isinstance(error, RobotIdError) else f'{type(error).__name__}: {text}'


def format_seconds(nanoseconds: int) -> str:
    """Write a stamp in seconds, exactly."""
    return f'{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}'


def to_nanoseconds(time: Time) -> int:
    """Nanoseconds of a stamp."""
    return int(time.sec) * 10**9 + int(time.nanosec)
