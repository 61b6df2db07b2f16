"""What the nodes' messages hold, and joint states as a table; nodes say when they are sent."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import Any

from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np
from numpy.typing import NDArray
from rclpy.impl.rcutils_logger import RcutilsLogger
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...core.excitation.trajectory import CubicWaypoints, Waypoints
from ...core.findings import Finding, render, Severity
from ...exceptions import reason_of, RobotIdError, TrajectoryError
from ...files.formats.joint_table import FIELDS, JointTable


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


STATES = {state.value for state in State}
MOVING, ENDED = {'approaching', 'exciting', 'validating', 'verifying'}, {'done', 'failed'}


def status(
    name: str,
    message: str,
    values: Mapping[str, Any],
    *,
    hardware: str = '',
    warn: bool = False,
    failed: bool = False,
) -> DiagnosticStatus:
    """Build a DiagnosticStatus, OK but where said; numbers keep their full precision."""
    level = DiagnosticStatus.WARN if warn else DiagnosticStatus.OK
    found = DiagnosticStatus(name=name, message=message, hardware_id=hardware)
    found.level = DiagnosticStatus.ERROR if failed else level
    found.values = [KeyValue(key=key, value=format_value(value)) for key, value in values.items()]
    return found


def status_array(stamp: Time, statuses: Iterable[DiagnosticStatus]) -> DiagnosticArray:
    """Put statuses under one header."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(statuses))


def format_value(value: Any) -> str:
    """Write a value so that it reads back exactly."""
    return repr(float(value)) if isinstance(value, float) else str(value)


def values_of(message: DiagnosticStatus) -> dict[str, str]:
    """Values of a DiagnosticStatus by key."""
    return {item.key: item.value for item in message.values}


def one_line(error: BaseException) -> str:
    """Text of an error as one sentence; what is not the package's own names its type."""
    text = reason_of(error)
    return text if isinstance(error, RobotIdError) else f'{type(error).__name__}: {text}'


def format_seconds(nanoseconds: int) -> str:
    """Write a stamp in seconds, exactly."""
    return f'{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}'


def interface(name: str) -> Any:
    """Class of a message or service by its full name, such as 'sensor_msgs/msg/JointState'."""
    package, kind, last = name.split('/')
    return getattr(import_module(f'{package}.{kind}'), last)


def to_nanoseconds(time: Time) -> int:
    """Nanoseconds of a stamp."""
    return int(time.sec) * 10**9 + int(time.nanosec)


def to_time(stamp: int) -> Time:
    """Return a stamp [ns] as a message."""
    return Time(sec=stamp // 10**9, nanosec=stamp % 10**9)


def is_well_formed(message: Any) -> bool:
    """Whether a sensor_msgs/JointState names each joint once, with one value or none of a kind."""
    count = len(message.name)
    lengths = (len(message.position), len(message.velocity), len(message.effort))
    return len(set(message.name)) == count and all(n in (0, count) for n in lengths)


def is_complete(message: Any, joints: Sequence[str]) -> bool:
    """Whether a sensor_msgs/JointState is well-formed and has all `joints`."""
    return is_well_formed(message) and set(joints) <= set(message.name)


def stack_joint_states(messages: Iterable[Any], joints: Sequence[str]) -> JointTable:
    """Pick `joints` out of sensor_msgs/JointState that are complete, as they came."""
    rows = [message for message in messages if is_complete(message, joints)]
    stamp = stamps_to_nanoseconds(rows)
    arrays = [np.full((len(rows), len(joints)), np.nan) for _ in FIELDS]
    for row, message in enumerate(rows):
        index = [message.name.index(joint) for joint in joints]
        for field, target in zip(FIELDS, arrays, strict=True):
            values = getattr(message, field)
            if len(values):
                target[row] = np.asarray(values)[index]
    return JointTable(tuple(joints), stamp, stamp, *arrays)


def stamps_to_nanoseconds(messages: Sequence[Any]) -> NDArray[np.int64]:
    """Return the stamps of messages, (N,) [ns]."""
    return np.array([to_nanoseconds(m.header.stamp) for m in messages], np.int64)


def log_findings(logger: RcutilsLogger, findings: Iterable[Finding]) -> None:
    """Log findings by their severity; rclpy wants a line of code of its own for each level."""
    for found in findings:
        if found.severity == Severity.INFO:
            logger.info(render(found))
        elif found.severity == Severity.WARNING:
            logger.warning(render(found))
        else:
            logger.error(render(found))


def trajectory_message(
    points: Waypoints, header: Header | None = None, first: float = 0.0, ahead: float = 0.0
) -> JointTrajectory:
    """
    Return points from a time [s] on as a message; without a header they have to end at rest.

    The header's stamp is so much `ahead` of their time 0 [s].
    """
    # A controller that commands no efforts refuses points that have some.
    tau = np.empty((len(points.time), 0)) if points.tau is None else points.tau
    # Where velocities alone shape the motion, accelerations would shape it otherwise.
    ddq = tau[:, :0] if isinstance(points, CubicWaypoints) else points.ddq
    if header is None and points.dq[-1].any():
        raise TrajectoryError('the trajectory does not end at rest: design it again')
    message = JointTrajectory(header=header or Header(), joint_names=list(points.joints))
    times = np.rint(np.maximum(points.time - ahead, 0.0) * 1e9).astype(np.int64)
    kept = points.time >= first - 1e-9
    rows = (a[kept].tolist() for a in (times, points.q, points.dq, ddq, tau))
    for time, q, dq, ddq, tau in zip(*rows, strict=True):
        point = JointTrajectoryPoint(positions=q, velocities=dq, accelerations=ddq, effort=tau)
        stamp = point.time_from_start  # its own: one more to put there takes as long as a list
        stamp.sec, stamp.nanosec = divmod(time, 10**9)
        message.points.append(point)
    return message


def duration_message(seconds: float) -> Duration:
    """Turn seconds into a message, rounded to the nanosecond."""
    whole, nanoseconds = divmod(round(seconds * 1e9), 10**9)
    return Duration(sec=whole, nanosec=nanoseconds)
