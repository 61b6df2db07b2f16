"""
Session: what a recording carries beside the joint states.

All of it travels as topics, so that MCAP, SQLite, `ros2 bag` and `rosbags` keep it alike:

- `/joint_states`, sensor_msgs/JointState: what was measured; its time is `header.stamp`
- `/<controller>/controller_state`, control_msgs/JointTrajectoryControllerState: reference, output
- `/robot_description`, std_msgs/String: the URDF; the last one counts
- `/excitation/state`, diagnostic_msgs/DiagnosticStatus: phases. `values` hold `state` (idle, …,
  exciting, validating, done, failed) and `stamp` (ROS time of the change [s]); without `stamp` the
  time of reception counts, without `state` the last word of `name`
- `/excitation/reference`, trajectory_msgs/JointTrajectory: the sampled reference, for people
- `/recorder/session`, std_msgs/String: YAML text of a `Session`; the last one counts

Topics match by their last names too (`/left/excitation/state`), so that namespaces are free.
"""

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass, field
from typing import Any

from ....exceptions import RecordingError
from ...yaml import dump_yaml, parse_yaml

SESSION_TOPIC = '/recorder/session'
STATE_TOPIC = '/excitation/state'
JOINT_STATES_TOPIC = '/joint_states'
DESCRIPTION_TOPIC = '/robot_description'
FORMAT = 1


@dataclass(frozen=True)
class Session:
    """
    Snapshot of what a session ran with: plain values only.

    Parameters
    ----------
    controller : name, type, rate [Hz], joints, command_interfaces, gains {joint: {p, i, d, …}}
    trajectories : {phase: Trajectory.to_dict()}, phases as in `excitation/state`
    configuration : the nested mapping that the configuration file held
    versions : {package: version}
    values : anything else that is worth keeping

    """

    controller: Mapping[str, Any] = field(default_factory=dict)
    trajectories: Mapping[str, Any] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def dump_session(session: Session) -> str:
    """Text of the message on `SESSION_TOPIC`."""
    groups = {f.name: dict(getattr(session, f.name)) for f in dataclasses.fields(session)}
    return dump_yaml({'format': FORMAT, **groups})


def parse_session(text: str, source: str) -> Session:
    """
    Read the text of a message on `SESSION_TOPIC`; groups of newer versions are left out.

    Raises
    ------
    RecordingError : not the text of a session

    """
    content = parse_yaml(text, source)
    if not isinstance(content, Mapping) or 'format' not in content:
        raise RecordingError(f"'{source}' holds no session: record it with 'recorder'")
    groups = {}
    for item in dataclasses.fields(Session):
        groups[item.name] = content.get(item.name) or {}
        if not isinstance(groups[item.name], Mapping):
            raise RecordingError(f"'{item.name}' of the session in '{source}' is not a group")
    return Session(**groups)
