"""What joint_trajectory_controller commands, by its command interface."""

from collections.abc import Mapping, Sequence
import math

from ...simulation_settings import GainSettings
from .controller_types import ControllerState
from .interpolation import Point, Values
from .pid import invalid_gains, Pid


class CommandLaw:
    """
    Efforts or velocities of a PID and feed-forwards per joint; positions as they are.

    Parameters
    ----------
    joints : names, the order of every list here
    gains : by joint, zero where not given
    interface : 'effort', 'velocity' or 'position'

    """

    def __init__(self, joints: Sequence[str], gains: Mapping[str, GainSettings], interface: str):
        self._joints, self._interface = joints, interface
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

    @property
    def first_command(self) -> Values:
        """What the command interfaces hold at first: no position."""
        return [math.nan if self._interface == 'position' else 0.0 for _ in self._pids]

    def held(self, command: Values, position: Values) -> Values:
        """Return the positions to begin with: those that are commanded already, or measured."""
        known = self._interface == 'position' and not any(map(math.isnan, command))
        return command if known else position

    def halted(self, command: Values) -> Values:
        """Return the command of a controller that ends: positions stay, all else goes to zero."""
        return command if self._interface == 'position' else [0.0] * len(command)

    def command(self, state: ControllerState, next_point: Point, dt: float) -> Values:
        """Return the command for the errors of now and the feed-forwards of the next update."""
        if self._interface == 'position':
            return list(next_point.positions)
        efforts = next_point.effort if self._interface == 'effort' else [0.0] * len(self._pids)
        rows = zip(
            self._pids, state.error, state.error_velocity, next_point.velocities, efforts,
            strict=True,
        )  # fmt: skip
        return [
            pid.gains.ff_velocity_scale * v + effort + pid.compute(e, de, dt)
            for pid, e, de, v, effort in rows
        ]
