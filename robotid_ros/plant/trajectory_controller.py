"""
joint_trajectory_controller of ROS 2 Jazzy, without ROS.

`u = ff_velocity_scale v_ref(t + Ts) + effort_ff(t + Ts) + PID(e(t), ė(t))`: errors use the
reference at t, feed-forwards that of the next update. Velocities have no effort_ff; position
commands are `q_ref(t + Ts)`. The trajectory's time t runs with the speed scaling of the hardware.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
import math
import threading
from typing import Any, NamedTuple

from ..simulation_settings import ConstraintSettings, GainSettings, JointConstraintSettings
from .trajectory import (
    EPSILON,
    FIELDS,
    Goal,
    Point,
    RunningTrajectory,
    shortest_angular_distance,
    stopping_points,
    Values,
)


class Tolerance(NamedTuple):
    """Allowed errors of one joint; 0: not checked."""

    position: float = 0.0
    velocity: float = 0.0

    def allows(self, position: float, velocity: float) -> bool:
        """Whether errors are within the tolerance; NaN counts as within, as in the original."""
        return not (0.0 < self.position < abs(position)) and not (
            0.0 < self.velocity < abs(velocity)
        )


@dataclass(frozen=True)
class GoalTolerances:
    """Tolerances by joint; in a goal's message, 0 stands for the default and -1 for none."""

    path: Mapping[str, Tolerance] = field(default_factory=dict)
    goal: Mapping[str, Tolerance] = field(default_factory=dict)  # at its end
    goal_time: float = 0.0  # to reach that [s]


def goal_tolerances(default: GoalTolerances, requested: GoalTolerances) -> GoalTolerances:
    """
    Merge a goal's tolerances with the defaults.

    An unknown joint, or a negative value that is not -1, leaves all of them at their defaults.
    """

    def resolve(value: float, asked: float) -> float:
        if abs(asked + 1.0) < EPSILON:
            return 0.0
        if asked < 0.0:
            raise ValueError
        return asked if asked > 0.0 else value

    def merged(own: Mapping[str, Tolerance], wanted: Mapping[str, Tolerance]) -> Any:
        changed = {j: Tolerance(*map(resolve, own[j], asked)) for j, asked in wanted.items()}
        return {**own, **changed}

    try:
        return GoalTolerances(
            merged(default.path, requested.path),
            merged(default.goal, requested.goal),
            resolve(default.goal_time, requested.goal_time),
        )
    except (KeyError, ValueError):
        return default


@dataclass(frozen=True)
class ControllerSettings:
    """The controller's parameters."""

    joints: tuple[str, ...]
    wraparound: tuple[bool, ...]
    period: int
    gains: dict[str, GainSettings] = field(default_factory=dict)
    constraints: ConstraintSettings = field(default_factory=ConstraintSettings)
    command_interface: str = 'effort'


@dataclass
class ControllerState:
    """Measured and desired state of an update; the content of controller_state."""

    desired: Point
    current: Point
    error: Values
    error_velocity: Values
    output: Values  # the command, in the unit of the command interface
    speed_scaling: float = 1.0


class GoalOutcome(Enum):
    """How a goal ended."""

    SUCCEEDED = 'succeeded'
    ABORTED = 'aborted'
    CANCELED = 'canceled'


@dataclass
class GoalHandle:
    """State of a running goal: written by the controller, read by the action server."""

    outcome: GoalOutcome | None = None
    code: int = 0
    text: str = ''
    feedback: ControllerState | None = None


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
    """One joint's PID; the integral term is a torque, so new gains do not rescale it."""

    def __init__(self, gains: GainSettings):
        self.set_gains(gains)
        self.integral = 0.0

    def set_gains(self, gains: GainSettings) -> None:
        """Use other gains from the next call on; the integral term stays."""
        self.gains = gains
        self._upper, self._lower = integral_bounds(gains)

    def compute(self, error: float, error_dot: float, dt: float) -> float:
        """`p e + I + d ė`, clamped; errors that are not finite give NaN and leave the integral."""
        if not (math.isfinite(error) and math.isfinite(error_dot)):
            return math.nan
        gains, strategy = self.gains, self.gains.antiwindup_strategy
        p, i, d = gains.p, gains.i, gains.d
        integrates, legacy = abs(error) > gains.error_deadband, strategy == 'legacy'
        if legacy and integrates:
            self._add(i * dt * error)
        unclamped = p * error + self.integral + d * error_dot
        command = min(max(unclamped, gains.u_clamp_min), gains.u_clamp_max)
        if legacy or not integrates:
            return command
        saturated = unclamped != command and error * unclamped > 0.0
        if strategy == 'back_calculation' and i != 0.0:
            recommended = math.sqrt(abs(d / i)) if d != 0.0 else abs(p / i) or 1.0
            constant = gains.tracking_time_constant or recommended
            self._add(dt * (i * error + (command - unclamped) / constant))
        elif not (strategy == 'conditional_integration' and saturated):
            self._add(dt * i * error)
        return command

    def _add(self, change: float) -> None:
        self.integral = min(max(self.integral + change, self._lower), self._upper)


class TrajectoryController:
    """The controller; every method may be called from any thread."""

    def __init__(self, settings: ControllerSettings):
        self.settings = settings
        self.joints = settings.joints
        self.active, self.speed_scaling = False, 1.0
        self._interface = settings.command_interface
        self._pids = [Pid(settings.gains.get(joint, GainSettings())) for joint in self.joints]
        zeros = [0.0] * len(self.joints)
        # What the command interfaces hold at first: no position.
        self.command = [math.nan] * len(zeros) if self._interface == 'position' else zeros
        self.warnings: list[str] = []
        # The goal that holds the robot: one message that is reused, as in the original.
        self._hold = Goal(self.joints, 0, [Point(0, list(zeros), [], [], list(zeros))])
        self._current = Point(0, list(zeros), list(zeros), [], list(zeros))
        rest = Point(0, zeros, zeros, zeros, zeros)
        self.state = ControllerState(rest, self._current, zeros, zeros, zeros)
        self._goal: GoalHandle | None = None
        self._pending = self._hold
        self._trajectory: RunningTrajectory | None = None
        self._holding, self._shows, self._time = True, True, 0
        self._lock = threading.Lock()
        self._apply(settings)
        self._tolerances = self._defaults

    def configure(self, settings: ControllerSettings) -> None:
        """Set parameters: gains from the next update on, tolerances from the next goal on."""
        with self._lock:
            self.settings = settings

    def activate(self, position: Values, velocity: Values) -> None:
        """Start by holding the present position, with integral terms at zero."""
        with self._lock:
            self._apply(self.settings)
            self._current = self._measured(position, velocity)
            for pid in self._pids:
                pid.integral = 0.0
            known = self._interface == 'position' and not any(map(math.isnan, self.command))
            self._trajectory = None
            self._pending = self._hold_at(self.command if known else position)
            self._holding = self.active = True

    def deactivate(self) -> None:
        """Stop controlling: efforts and velocities go to zero, a running goal is aborted."""
        with self._lock:
            self._finish(
                GoalOutcome.ABORTED, -1, 'Current goal cancelled during deactivate transition.'
            )
            if self._interface != 'position':
                self.command = [0.0] * len(self.joints)
            self.active = False

    def rejection_reason(self, goal: Goal, now: int) -> str:
        """Return why a goal is rejected, or ''; values, NaN ones too, are not checked."""
        if not self.active:
            return 'the controller is not running'
        count = len(goal.joints)
        if sorted(goal.joints) != sorted(self.joints):
            named = ', '.join(map(repr, goal.joints))
            return f"the goal's joints {named} are not the controller's"
        if not goal.points:
            return 'the goal has no points'
        if any(abs(velocity) > EPSILON for velocity in goal.points[-1].velocities):
            return 'the velocity of the last point is not zero'
        if goal.stamp and goal.stamp + goal.points[-1].time < now:
            return 'the trajectory ends in the past'
        for index, point in enumerate(goal.points):
            if index and point.time <= goal.points[index - 1].time:
                return f'the times of points {index - 1} and {index} do not increase'
            if point.effort and self._interface != 'effort':
                return f'point {index} has efforts, which are not commanded'
            # The original reads past the end of efforts that are too few.
            for name, values in zip(FIELDS, point.fields, strict=True):
                if len(values) != count and (values or name == 'positions'):
                    return f'point {index} has {len(values)} {name} for {count} joints'
        return ''

    def start(self, goal: Goal, requested: GoalTolerances) -> GoalHandle:
        """Run an accepted goal; one that is running is preempted."""
        with self._lock:
            self._finish(GoalOutcome.ABORTED, -1, 'Current goal preempted by new incoming action.')
            self._take(goal)
            self._goal = GoalHandle()
            self._tolerances = goal_tolerances(self._defaults, requested)
            return self._goal

    def replace_trajectory(self, goal: Goal) -> None:
        """Run a trajectory from the topic; a running goal is checked against it from now on."""
        with self._lock:
            if self.active:
                self._take(goal)

    def _take(self, goal: Goal) -> None:
        """Run a goal next, its joints in the controller's order."""
        self._holding, points = False, goal.points
        if goal.joints != self.joints:
            order = [goal.joints.index(joint) for joint in self.joints]
            points = [
                Point(p.time, *([x[k] for k in order] if x else x for x in p.fields))
                for p in points
            ]
        self._pending = Goal(self.joints, goal.stamp, points)

    def cancel(self, handle: GoalHandle) -> None:
        """Cancel a goal, if it is the running one, and hold the measured position."""
        with self._lock:
            if handle is self._goal:
                self._finish(GoalOutcome.CANCELED, 0, '')
                self._pending = self._stop()

    def update(self, now: int, dt: float, position: Values, velocity: Values) -> Values:
        """Return the command (n,) of a cycle at `now` [ns], `dt` [s] after the last one."""
        with self._lock:
            if not self.active:
                return self.command
            settings = self.settings
            if settings is not self._applied:
                self._apply(settings)
            # What runs, and how far its own time is.
            trajectory = self._trajectory
            if trajectory is None or self._pending is not trajectory.goal:
                trajectory = self._trajectory = RunningTrajectory(self._pending)
            current = self._current = self._measured(position, velocity)
            first = not trajectory.started
            if first:
                trajectory.set_point_before_trajectory(now, current, settings.wraparound)
                self._time = now
            else:
                self._time += round(dt * 1e9 * self.speed_scaling)
            # Errors of now, feed-forwards of the next update.
            desired, _ = trajectory.sample(self._time)
            next_point, index = trajectory.sample(self._time + settings.period)
            current.time = now - trajectory.start
            rows = zip(settings.wraparound, current.positions, desired.positions, strict=True)
            error = [shortest_angular_distance(q, r) if wrap else r - q for wrap, q, r in rows]
            pairs = zip(current.velocities, desired.velocities, strict=True)
            by_rate = self._interface != 'position'
            error_velocity = [r - v if by_rate else 0.0 for v, r in pairs]
            self.state = ControllerState(
                desired, current, error, error_velocity, self.state.output, self.speed_scaling
            )
            points, tolerances = trajectory.goal.points, self._tolerances
            checked = not self._holding
            ended = index == len(points)
            off_path = checked and (first or not ended) and not self._within(tolerances.path)
            off_goal = checked and ended and not self._within(tolerances.goal)
            overtime = (self._time - trajectory.start - points[-1].time) * 1e-9
            limit = tolerances.goal_time  # 0: none
            timed_out = off_goal and limit != 0.0 and overtime > limit
            if not off_path and not timed_out:
                self.command = self._compute(next_point, dt)
            if self._goal is not None:
                self._goal.feedback = self.state
                if off_path:
                    self._abort(-4, 'Aborted due to path tolerance violation')
                elif timed_out:
                    text = 'Aborted due to goal_time_tolerance exceeding by'
                    self._abort(-5, f'{text} {overtime:f} seconds')
                elif ended and not off_goal:
                    self._finish(GoalOutcome.SUCCEEDED, 0, 'Goal successfully reached!')
                    self._holding = True
                    self._hold.points[0] = replace(points[-1], time=0)
                    self._pending = self._hold
            elif off_path or timed_out:
                self.warnings.append(
                    'holding position: a trajectory of the topic left its tolerances'
                )
                self._pending = self._stop()
            # The original loses the room for its commands at one that is not a number, for good.
            finite = not any(u != u for u in self.command)
            self._shows = self._shows and finite
            if finite:
                self.state.output = list(self.command) if self._shows else []
            return self.command

    def _compute(self, next_point: Point, dt: float) -> Values:
        """Return the command for the errors of now and the feed-forwards of the next update."""
        if self._interface == 'position':
            return list(next_point.positions)
        efforts = next_point.effort if self._interface == 'effort' else [0.0] * len(self._pids)
        errors = self.state.error, self.state.error_velocity
        rows = zip(self._pids, *errors, next_point.velocities, efforts, strict=True)
        return [
            pid.gains.ff_velocity_scale * v + effort + pid.compute(e, de, dt)
            for pid, e, de, v, effort in rows
        ]

    def _measured(self, position: Values, velocity: Values) -> Point:
        efforts = list(self.command) if self._interface == 'effort' else []
        return Point(0, list(position), list(velocity), [], efforts)

    def _within(self, tolerances: Mapping[str, Tolerance]) -> bool:
        errors = zip(tolerances.values(), self.state.error, self.state.error_velocity, strict=True)
        return all(tolerance.allows(e, de) for tolerance, e, de in errors)

    def _abort(self, code: int, text: str) -> None:
        self._finish(GoalOutcome.ABORTED, code, text)
        self.warnings.append(text)
        self._pending = self._stop()

    def _finish(self, outcome: GoalOutcome, code: int, text: str) -> None:
        if (goal := self._goal) is not None:
            # The outcome is written last: who reads it finds code and text complete.
            goal.code, goal.text, self._goal = code, text, None
            goal.outcome = outcome

    def _stop(self) -> Goal:
        self._holding, constraints = True, self.settings.constraints
        known = (constraints.joints.get(j, JointConstraintSettings()) for j in self.joints)
        ramps = [joint.max_deceleration_on_cancel for joint in known]
        if not constraints.decelerate_on_cancel or min(ramps) <= 0.0:
            return self._hold_at(self._current.positions)
        return Goal(self.joints, 0, stopping_points(self._current, ramps, self.settings.period))

    def _hold_at(self, positions: Values) -> Goal:
        """Hold these positions; the other fields of the message stay as they are."""
        self._hold.points[0].positions = list(positions)
        return self._hold

    def _apply(self, settings: ControllerSettings) -> None:
        self._applied = settings
        constraints = settings.constraints
        stopped = constraints.stopped_velocity_tolerance
        known = {j: constraints.joints.get(j, JointConstraintSettings()) for j in self.joints}
        self._defaults = GoalTolerances(
            {joint: Tolerance(own.trajectory) for joint, own in known.items()},
            {joint: Tolerance(own.goal, stopped) for joint, own in known.items()},
            constraints.goal_time,
        )
        for joint, pid in zip(self.joints, self._pids, strict=True):
            gains = settings.gains.get(joint, GainSettings())
            if reason := invalid_gains(gains):
                self.warnings.append(f'PID: Invalid gains of {joint} ({reason}). Skipping')
            else:
                pid.set_gains(gains)
