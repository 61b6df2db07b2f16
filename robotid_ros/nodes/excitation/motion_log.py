"""What was said during a motion, and what a model makes of it: seconds for another process."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from ...core.arrays import any_effort, Array
from ...core.excitation.trajectory import Waypoints
from ...core.identification_settings import GainProposalSettings, IdentificationSettings
from ...core.signals.recording import Recording
from ...core.signals.stamp_correction import observed_update_rate
from ...core.verification.feed_forward import REST, with_feed_forward
from ...core.verification.gains import GainProposal, loop_delay, propose_gains, smallest_step
from ...core.verification.tracking import Tracking
from ...exceptions import RobotStateError
from ...files.formats.joint_table import JointTable
from ...files.verification import EffortRow
from ..common import controller as jtc
from ..common.batched_subscription import decode
from ..common.controller import ControllerDescription
from ..common.messages import stack_joint_states, stamps_to_nanoseconds
from ..common.verified_model import VerifiedModel

LEAST_STATES = 50  # of a motion: lost ones are no reason to doubt a root mean square


@dataclass(frozen=True)
class MotionLog:
    """Serialised messages, and the stamps between which they count, on the robot's clock [ns]."""

    joints: tuple[str, ...]
    states: list[bytes]
    joint_states: list[bytes]
    start: int = 0
    stop: int = 1 << 62

    def tracking(self) -> Tracking:
        """Return the controller's errors; `RobotStateError`: there are next to none."""
        stamp, error, _, _ = self._states
        rows = (stamp >= self.start) & (stamp <= self.stop)
        if rows.sum() < LEAST_STATES:
            raise RobotStateError(
                f'only {rows.sum()} states of the controller arrived in a whole motion: reduce '
                'the load of this machine'
            )
        return Tracking(self.joints, np.multiply(stamp[rows] - self.start, 1e-9), error[rows])

    def recording(self) -> Recording:
        """Return positions and efforts, see `_samples`."""
        stamp, position, effort = self._samples()
        rows = (stamp >= self.start) & (stamp <= self.stop)
        time = np.multiply(stamp[rows] - self.start, 1e-9)
        return Recording(self.joints, time, position[rows], effort[rows], source='the robot')

    def means(self) -> tuple[Array, Array]:
        """Return the mean position and effort (n,), as published."""
        _, position, effort = self._samples()
        if not len(position) or not np.isfinite(effort).all():
            raise RobotStateError('no efforts at rest: is the driver running?')
        return position.mean(axis=0), effort.mean(axis=0)

    def update_rate(self, nominal: float) -> float:
        """Return the controller's rate of updates [Hz]; `RobotStateError`: nothing tells it."""
        steps = np.diff(self._measured.stamp) * 1e-9
        stamp = self._states[0]
        rate = 1.0 / float(np.median(steps)) if len(steps) and np.median(steps) > 0.0 else 0.0
        found = observed_update_rate(nominal, np.multiply(stamp - stamp[:1], 1e-9), rate)
        if not found:
            raise RobotStateError("the controller's states do not show how often it updates")
        return found

    @cached_property
    def _states(self) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """Stamps, tracking errors, positions and commanded efforts of states with errors."""
        messages = (decode(data, jtc.STATE_TYPE) for data in self.states)
        found = [m for m in messages if m and jtc.is_well_formed_state(m, self.joints)]
        stamp, stack = stamps_to_nanoseconds(found), partial(jtc.stack_states, found, self.joints)
        error, position = stack('error'), stack('feedback')
        effort = stack('output', 'effort')
        rows = np.isfinite(error).all(axis=1)
        return stamp[rows], error[rows], position[rows], effort[rows]

    @cached_property
    def _measured(self) -> JointTable:
        states = (decode(data, JointState) for data in self.joint_states)
        return stack_joint_states([m for m in states if m is not None], self.joints)

    def _samples(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Stamps, positions, efforts: commanded ones where joint states hold none."""
        measured = self._measured
        if not any_effort(measured.effort):
            stamp, _, position, effort = self._states
            if (rows := np.isfinite(position + effort).all(axis=1)).any():
                return stamp[rows], position[rows], effort[rows]
        return measured.stamp, measured.position, measured.effort


def read_present_run(
    log: MotionLog,
    rate: float,
    points: Waypoints,
    model: VerifiedModel,
    settings: IdentificationSettings,
) -> tuple[Tracking, tuple[EffortRow, ...], Waypoints]:
    """Return tracking errors, how well efforts are predicted, the motion with feed-forward."""
    from ...core.pipeline.observation import validate

    robot = model.robot
    found = validate(log.recording(), robot, model.chi, settings)
    period = 1.0 / log.update_rate(rate)
    shares = np.nan_to_num(found.moving_residual).tolist()
    rows = zip(robot.units.items(), shares, found.rms.tolist(), strict=True)
    efforts = tuple(EffortRow(joint, unit, *figures) for (joint, (_, unit)), *figures in rows)
    points = with_feed_forward(points, robot, model.chi, period)
    return log.tracking(), efforts, points


def propose_after_run(
    log: MotionLog,
    description: ControllerDescription,
    points: Waypoints,
    model: VerifiedModel,
    wanted: GainProposalSettings,
) -> tuple[Tracking, GainProposal]:
    """Return the errors of a motion between rests that was run, and gains proposed for it."""
    rate = log.update_rate(description.rate)
    time = np.arange(round(REST * rate), round((points.duration - REST) * rate)) / rate
    proposal = propose_gains(
        model.robot,
        model.consistent,
        replace(description, rate=rate),
        points.q,
        points.sample(time),
        wanted,
        delay=loop_delay(model.results.findings),
        resolution=smallest_step(log.recording().position),
    )
    return log.tracking(), proposal
