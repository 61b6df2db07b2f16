"""The law of joint_trajectory_controller in effort mode: a PID and feed-forwards per joint."""

from collections.abc import Mapping, Sequence

from ...simulation_settings import GainSettings
from .controller_types import ControllerState
from .interpolation import Point, Values
from .pid import invalid_gains, Pid


class EffortLaw:
    """
    One PID per joint.

    Parameters
    ----------
    joints : names, the order of every list here
    gains : by joint, zero where not given

    """

    def __init__(self, joints: Sequence[str], gains: Mapping[str, GainSettings]):
        self._joints = joints
        self._pids = [Pid(gains.get(joint, GainSettings())) for joint in joints]

    def set_gains(self, gains: Mapping[str, GainSettings]) -> list[str]:
        """Set the gains that are valid; return a warning for each joint whose are not."""
        warnings = []
        for joint, pid in zip(self._joints, self._pids, strict=True):
            new = gains.get(joint, GainSettings())
            reason = invalid_gains(new)
            if reason:
                warnings.append(f'PID: Invalid gains of {joint} ({reason}). Skipping')
            else:
                pid.set_gains(new)
        return warnings

    def reset(self) -> None:
        """Set the integral terms to zero."""
        for pid in self._pids:
            pid.reset()

    def efforts(self, state: ControllerState, next_point: Point, dt: float) -> Values:
        """Return the efforts for the errors of now and the feed-forwards of the next update."""
        rows = zip(
            self._pids, state.error, state.error_velocity, next_point.velocities,
            next_point.effort, strict=True,
        )  # fmt: skip
        return [
            pid.gains.ff_velocity_scale * v + effort + pid.compute(e, de, dt)
            for pid, e, de, v, effort in rows
        ]
