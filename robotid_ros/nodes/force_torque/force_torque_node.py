"""Node `force_torque`: a wrench without offsets and what hangs at the sensor, which it finds."""

from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from ...core.arrays import Array
from ...core.model import build_robot, Robot
from ...core.model.pinocchio_model import body_frame, BodyFrame
from ...core.monitoring.motion_rows import FilteredStates
from ...core.payload import force_torque
from ...core.payload.payload import payload_notes
from ...exceptions import RecordingError, RobotIdError
from ...files.atomic import new_names
from ...files.payload.payload_file import read_sensor, write_payload
from ...files.yaml import to_plain
from ...node_settings import ForceTorqueSettings
from ..common import runtime
from ..common.messages import log_findings, one_line, stack_joint_states, status, to_nanoseconds
from ..common.runtime import publish_diagnostics, serve, WorkerNode

# A longer silence, or a step back, restarts the filter; a wrench this far off is none's [s].
MAX_GAP, MAX_DISTANCE = 0.5, 0.02
# Rows that are gathered at the most, and wrenches that may wait for joint states.
MOST_ROWS, WAITING = 3000, 50
LARGEST = 1e6  # value of a wrench [N or N·m]: no sensor measures it
WATCHED = 60.0  # whose median is the drift of an offset: contacts take less than half of it [s]


class ForceTorque(WorkerNode):
    """Finds what hangs at a sensor, and takes it out; options of `WorkerNode`."""

    def __init__(self, **options: Any):
        super().__init__('force_torque', ('robot', 'force_torque'), **options)
        self.settings: ForceTorqueSettings = self.configuration.force_torque
        self._sign = force_torque.REACTION if self.settings.reaction else force_torque.ACTION
        self._robot: Robot | None = None
        self._frame: BodyFrame | None = None
        self._name = ''  # of that frame; of what is taken out
        self._model: force_torque.SensorModel | None = None
        # Filtered motion (3, n) and wrench (6,), per time constant: noise hardly correlates.
        self._rows: list[tuple[Array, Array]] | None = None
        self._left: deque[Array] = deque(maxlen=round(WATCHED * self.settings.cutoff))
        self._row_stamp = 0
        self._wrenches: deque[tuple[int, Array]] = deque(maxlen=WAITING)
        self._drifted = ''
        self._publisher = self.create_publisher(WrenchStamped, '~/wrench_compensated', 10)
        sensor = qos_profile_sensor_data
        self.create_subscription(WrenchStamped, self.settings.topic, self._on_wrench, sensor)
        self.create_subscription(JointState, 'joint_states', self._on_joint_states, sensor)
        serve(self, 'identify', self._on_identify, kind=SetBool)
        publish_diagnostics(self, 'offset', self._diagnose_offset)
        what = 'call ~/identify with true, move the sensor, call it with false'
        self.publish_state('idle', what)
        self.follow_description(self.take_description)
        if self.settings.results:
            self._name, self._model = read_sensor(self.settings.results)
            self.publish_state('done', f"takes out what is in '{self.settings.results}'")

    def take_description(self, urdf: str) -> None:
        """Build the robot."""
        self._robot = build_robot(urdf, self.configuration.robot)
        self._frame = None
        # Positions, and in place of efforts the wrench.
        self._states = FilteredStates(np.ones(6), self.settings.cutoff, MAX_GAP)

    def _on_wrench(self, message: WrenchStamped) -> None:
        """Publish it without offsets and body, and keep it for the next joint state."""
        f, t = message.wrench.force, message.wrench.torque
        wrench = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
        if self._robot is None:
            return
        if not (np.abs(wrench) <= LARGEST).all():
            raise RecordingError(f'the wrench holds no number, or one beyond {LARGEST:g}')
        name = self.settings.frame or message.header.frame_id
        if not name:
            raise RecordingError('the wrench names no frame: set force_torque.frame')
        if name != (self._name or name):
            raise RecordingError(
                f"the wrench is in '{name}', what is known of the sensor is in '{self._name}': "
                'let one sensor publish it, or set force_torque.frame'
            )
        if self._frame is None:
            self._frame = body_frame(self._robot, name)
            self._name = name
        stamp = to_nanoseconds(message.header.stamp)
        if self._wrenches and stamp <= self._wrenches[-1][0]:
            self._wrenches.clear()
        self._wrenches.append((stamp, wrench))
        if self._model is not None and self._states.started:
            if abs(stamp - self._states.stamp) > MAX_GAP * 1e9:
                raise RecordingError(
                    'the orientation of the sensor is unknown without joint states: see why they '
                    'stopped'
                )
            # Where the arm is now; how it moves comes through the filter.
            motion = np.vstack([self._position, self._states.motion[1:]])
            left = self._left_of(wrench, motion).reshape(2, 3).tolist()
            force, torque = (Vector3(x=x, y=y, z=z) for x, y, z in left)
            found = Wrench(force=force, torque=torque)
            self._publisher.publish(WrenchStamped(header=message.header, wrench=found))

    def _left_of(self, wrench: Array, motion: Array) -> Array:
        """Return a wrench (6,) without what the sensor measures anyhow on a motion (3, n)."""
        assert self._model and self._robot and self._frame
        moved = force_torque.sensor_motion(self._robot, self._frame, *motion[:, None])
        return np.asarray(wrench - self._model.wrench(moved)[0])

    def _on_joint_states(self, message: JointState) -> None:
        """Take the joints and the wrench at their time through one filter."""
        if self._robot is None or not self._wrenches:
            return
        states = stack_joint_states([message], self._robot.joints)
        if not np.isfinite(states.position).all() or not len(states.stamp):
            return
        self._position, stamp = states.position[0], int(states.stamp[0])
        # The straight line between the wrenches around it; the last one where none is newer.
        stamps, values = zip(*self._wrenches, strict=True)
        times = (np.array(stamps) - stamp) * 1e-9
        if np.abs(times).min() > MAX_DISTANCE:
            raise RecordingError(f'no wrench has a stamp within {MAX_DISTANCE} s of it')
        around = np.array([np.interp(0.0, times, column) for column in np.array(values).T])
        step, period = self._states.take(stamp, self._position, around), 1.0 / self.settings.cutoff
        if step == 0.0:  # anew
            self._row_stamp = stamp
        if step is None or (stamp - self._row_stamp) * 1e-9 < period:
            return
        self._row_stamp = stamp
        # What the filter began with is forgotten by then.
        if self._states.age > 3.0 * period:
            motion, wrench = self._states.motion, self._states.effort
            if self._rows is not None and len(self._rows) < MOST_ROWS:
                self._rows.append((motion, wrench))
            if self._model is not None:
                self._left.append(self._left_of(wrench, motion))

    def _on_identify(self, gather: bool) -> str:
        """Begin to gather, or identify from what was gathered."""
        rows, self._rows = self._rows, [] if gather else None
        text = 'gathering: move the sensor, or hold poses'
        try:
            text = text if gather else self._identify(rows)
        except RobotIdError as error:
            self.publish_state('failed', one_line(error))
            raise
        self.publish_state('gathering' if gather else 'done', text)
        return text

    def _identify(self, rows: list[tuple[Array, Array]] | None) -> str:
        if rows is None:
            raise RecordingError('nothing is gathered: call it with true first')
        if not rows or self._robot is None or self._frame is None:
            raise RecordingError(
                f"nothing was heard of '{self.settings.topic}', of joint_states or of "
                'robot_description: look at /diagnostics'
            )
        motion, wrench = (np.array(part) for part in zip(*rows, strict=True))
        moved = force_torque.sensor_motion(self._robot, self._frame, *motion.transpose(1, 0, 2))
        gravity, frame = self._robot.gravity, self._frame
        sensed = force_torque.identify_at_sensor(moved, wrench, gravity, frame.name, self._sign)
        payload, model = sensed.payload, sensed.model
        cosine = float(model.gravity @ gravity / (gravity @ gravity))
        if cosine < 0.0:
            raise RecordingError(
                'gravity points up: set force_torque.reaction, or correct the description of a '
                'robot that hangs'
            )
        findings = payload_notes(payload, frame.name, 'the sensor')
        output = Path(self.settings.output)
        file = next(name for name in new_names(output) if not name.exists())
        facts = {
            'robot': self._robot.name,
            'sensor': dict(zip(model._fields, map(to_plain, model), strict=True)),
            'offset_sigma': sensed.offset_sigma.tolist(),
        }
        write_payload(file, payload, facts, findings)
        log_findings(self.get_logger(), findings)
        self._model, self._drifted = model, ''
        self._left.clear()
        offsets = ', '.join(f'{x:.3g}' for x in model.offset)
        return (
            f'{payload.mass:.4g} ± {payload.central_sigma[0]:.2g} kg behind {payload.frame}, '
            f'offsets {offsets}, gravity {np.degrees(np.arccos(min(cosine, 1.0))):.2g}° from the '
            f"description; see '{file}'"
        )

    def _diagnose_offset(self) -> DiagnosticStatus:
        """Return the drift: the median of what is left, which contacts hardly move."""
        if self._model is None or 2 * len(self._left) < (self._left.maxlen or 0):
            return status('', 'not enough measurements yet', {})
        drift = np.median(np.array(self._left), axis=0)
        force, torque = self.settings.drift
        told = np.abs(drift) > np.repeat([force, torque], 3)
        names = ', '.join(np.array(force_torque.FORCES)[told])
        text = f'the offset of {names} has drifted: identify again' if names else 'as identified'
        if names and names != self._drifted:
            self.get_logger().warn(text)
        self._drifted = names
        values = dict(zip(force_torque.FORCES, drift.tolist(), strict=True))
        return status('', text, values, warn=bool(names))


main = partial(runtime.run, ForceTorque)
