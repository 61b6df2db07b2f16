"""PID of control_toolbox (Jazzy): errors in, effort out, with its anti-windup strategies."""

import math

from ...simulation_settings import GainSettings


def invalid_gains(gains: GainSettings) -> str:
    """Return why control_toolbox rejects these gains, or ''."""
    if gains.u_clamp_min >= gains.u_clamp_max:
        return 'u_clamp_min must be below u_clamp_max'
    upper, lower = integral_bounds(gains)
    if lower > 0.0 or upper < 0.0:
        return 'i_clamp_min must not be above 0, i_clamp_max not below 0'
    return ''


def integral_bounds(gains: GainSettings) -> tuple[float, float]:
    """Upper and lower bound of the integral term; where not given, the deprecated i_clamp."""
    upper = gains.i_clamp_max if math.isfinite(gains.i_clamp_max) else gains.i_clamp
    lower = gains.i_clamp_min if math.isfinite(gains.i_clamp_min) else -gains.i_clamp
    return upper, lower


class Pid:
    """
    One joint's PID; the integral term is a torque, so new gains do not rescale it.

    Parameters
    ----------
    gains : see `GainSettings`

    """

    def __init__(self, gains: GainSettings):
        self.set_gains(gains)
        self.integral = 0.0

    def set_gains(self, gains: GainSettings) -> None:
        """Use other gains from the next call on; the integral term stays."""
        self.gains = gains
        self._p, self._i, self._d = gains.p, gains.i, gains.d
        self._upper, self._lower = integral_bounds(gains)
        self._maximum, self._minimum = gains.u_clamp_max, gains.u_clamp_min
        self._deadband = gains.error_deadband
        self._strategy = gains.antiwindup_strategy

    def reset(self) -> None:
        """Set the integral term to zero."""
        self.integral = 0.0

    def compute(self, error: float, error_dot: float, dt: float) -> float:
        """
        Effort for position error [rad] and velocity error [rad/s], `p e + I + d ė`, clamped.

        An error that is not finite gives NaN and leaves the integral term alone.
        """
        if not (math.isfinite(error) and math.isfinite(error_dot)):
            return math.nan
        legacy = self._strategy == 'legacy'
        integrates = abs(error) > self._deadband
        if legacy and integrates:
            self.integral = self._bounded(self.integral + self._i * dt * error)
        unclamped = self._p * error + self.integral + self._d * error_dot
        command = min(max(unclamped, self._minimum), self._maximum)
        if integrates and not legacy:
            self.integral = self._bounded(
                self.integral + self._integral_change(error, unclamped, command, dt)
            )
        return command

    def _bounded(self, value: float) -> float:
        return min(max(value, self._lower), self._upper)

    def _integral_change(self, error: float, unclamped: float, command: float, dt: float) -> float:
        if self._strategy == 'back_calculation':
            if self._i == 0.0:
                return 0.0
            constant = self.gains.tracking_time_constant or self._recommended_time()
            return dt * (self._i * error + (command - unclamped) / constant)
        if self._strategy == 'conditional_integration' and unclamped != command:
            return 0.0 if error * unclamped > 0.0 else dt * self._i * error
        return dt * self._i * error

    def _recommended_time(self) -> float:
        if self._d != 0.0:
            return math.sqrt(abs(self._d / self._i))
        return abs(self._p / self._i) or 1.0
