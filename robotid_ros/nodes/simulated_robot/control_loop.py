"""The control loop of the simulated robot: read, update, write, as controller_manager does."""

from collections.abc import Callable
import contextlib
from dataclasses import dataclass
import os
import random
import threading
import time

from ...exceptions import RobotIdError
from ...plant.drives import Sensors, Step
from ...plant.physics import Physics
from ...plant.trajectory import ControllerState
from ...plant.trajectory_controller import TrajectoryController
from ...simulation_settings import SimulationSettings
from ..common.processes import prefer_threads

# After a longer stop of the machine the robot goes on from where it stood [s]: to catch up would
# mean a burst of cycles that no real robot shows.
MAX_LAG = 1.0
# Messages of /clock at the most [Hz]: enough for timers of 10 ms, few enough for every node, which
# takes a millisecond for each.
CLOCK_RATE = 100.0
# controller_manager asks for this priority, too, where the system lets it.
FIFO_PRIORITY = 50
# Longest wait for the cycle in which controllers are switched [s].
SWITCH_TIMEOUT = 1.0
# Each controller takes the time for itself: the broadcaster's stamp is later by about this [ns].
BROADCASTER_DELAY = (20_000, 40_000)
# A starved clock runs for so long in the mean, and stands for so long at most [s]: 28 % of the
# stamps repeat. In Gazebo on a busy machine it was 11 to 31 %, and 79 ms at most.
CLOCK_RUNS, CLOCK_STANDS = 0.05, 0.04


@dataclass
class Outputs:
    """Where each cycle's messages go; `clock` is called where the time is simulated."""

    joint_states: Callable[[int, list[float], list[float], list[float]], None]
    controller_state: Callable[[int, ControllerState], None]
    clock: Callable[[int], None] = lambda _: None


@dataclass
class LoopStatistics:
    """How well the loop keeps time; lags are of a cycle's start behind its due time [s]."""

    cycles: int = 0
    late: int = 0
    worst: float = 0.0
    lost: float = 0.0


class ControlLoop:
    """
    Physics and controller in lockstep, in a thread of their own, in real or simulated time.

    `outputs` are called in that thread; `step` advances the robot by a period under a command,
    None where commands are efforts.
    """

    def __init__(
        self,
        physics: Physics,
        sensors: Sensors,
        controller: TrajectoryController,
        settings: SimulationSettings,
        outputs: Outputs,
        step: Step | None = None,
    ):
        self.physics, self.sensors, self.controller = physics, sensors, controller
        self.outputs, self.statistics = outputs, LoopStatistics()
        self.failure: RobotIdError | None = None
        self.simulated_time = settings.real_time_factor != 1.0
        self._factor = settings.real_time_factor
        self._step = step or physics.step
        update = settings.update_rate
        self._period = 1.0 / update
        self._period_ns = round(1e9 * self._period)
        self._updates = (settings.controller_rate or update) / update
        self._controller_period = self._period / self._updates
        self._state_ratio = (settings.state_rate or update) / update
        self._clock_ratio = min(1.0, CLOCK_RATE / update)
        self._random = random.Random(settings.seed)
        self._clock = self._clock_resumes = 0
        self._applied = [0.0] * len(physics.joints)
        # Efforts of another controller that is active instead, and what the next cycle does first.
        self.forwarded: list[float] | None = None
        self._switch: Callable[[list[float], list[float]], None] | None = None
        self._switched = threading.Event()
        # One that is to be faster, or as fast as it can, would leave nothing to all others.
        self._keeps_time = 0.0 < self._factor <= 1.0
        self._stop = threading.Event()
        self._epoch = 0 if self.simulated_time else time.time_ns()
        self._thread = threading.Thread(target=self._run, name='control', daemon=True)

    def start(self) -> None:
        """Activate the controller and begin."""
        q, dq, _ = self._read(0.0)
        self.controller.activate(self.physics.feedback(q), self.physics.feedback(dq))
        self._thread.start()

    def stop(self) -> None:
        """End the loop; returns when the last cycle is over."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)
            if self._keeps_time:
                prefer_threads(False)

    def now(self) -> int:
        """Time of the last cycle [ns], in ROS time."""
        return self._epoch + self.statistics.cycles * self._period_ns

    def break_now(self) -> None:
        """Let the fault that is configured begin with the next cycle."""
        self.sensors.fault.start = (self.statistics.cycles + 1) * self._period

    def switch(self, function: Callable[[list[float], list[float]], None]) -> bool:
        """Call a function of position and velocity (n,) in a cycle; return whether it came."""
        self._switched.clear()
        self._switch = function
        return self._switched.wait(SWITCH_TIMEOUT)

    def cycle(self) -> None:
        """One period: read, update, publish, write, and what the robot does then."""
        count = self.statistics.cycles = self.statistics.cycles + 1
        now, since = self.now(), count * self._period
        q, dq, tau = self._read(since)
        fault = self.sensors.fault
        if self.controller.active and fault.active(since, 'hardware_error', 'deactivate'):
            self.controller.deactivate()
        controller, feedback = self.controller, self.physics.feedback
        if self._switch is not None:
            self._switch(feedback(q), feedback(dq))
            self._switch = None
            self._switched.set()
        starved = fault.active(since, 'starved_clock')
        clock = self._starve(now) if starved else now
        updated = self._is_due(count, self._updates)
        if updated:
            controller.update(clock, self._controller_period, feedback(q), feedback(dq))
        if self.simulated_time and self._is_due(count, self._clock_ratio):
            self.outputs.clock(now)
        if controller.active and updated:
            self.outputs.controller_state(clock, controller.state)
        silent = fault.active(since, 'stale_joint_states', 'hardware_error')
        if not silent and self._is_due(count, self._state_ratio):
            late = 0 if starved else self._random.randint(*BROADCASTER_DELAY)
            self.outputs.joint_states(clock + late, q, dq, tau)
        command = controller.command if self.forwarded is None else self.forwarded
        self._applied = self._step(command)

    def _read(self, since: float) -> tuple[list[float], list[float], list[float]]:
        return self.sensors.read(since, *self.physics.joint_state(self._applied))

    def _starve(self, now: int) -> int:
        """Return the time [ns] that a clock shows which now and then stands for some cycles."""
        if now >= self._clock_resumes:
            self._clock = now
            if self._random.random() < self._period / CLOCK_RUNS:
                self._clock_resumes = now + self._random.randint(0, round(1e9 * CLOCK_STANDS))
        return self._clock

    def _is_due(self, count: int, ratio: float) -> bool:
        """Whether a cycle is one of those that publish at `ratio` times the update rate."""
        return int(count * ratio + 1e-9) > int((count - 1) * ratio + 1e-9)

    def _run(self) -> None:
        if self._keeps_time:
            # Real-time scheduling, of this thread first; without the right to it, do without.
            prefer_threads(True)
            with contextlib.suppress(AttributeError, OSError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
        due = time.perf_counter()
        self._epoch = 0 if self.simulated_time else time.time_ns()
        step = self._period / self._factor if self._factor else 0.0
        while not self._stop.is_set():
            due += step
            lag = time.perf_counter() - due
            # Without waiting, too, the other threads must have their turn.
            time.sleep(max(-lag, 0.0) if step else 0.0)
            if step and lag > step:
                self.statistics.late += 1
                self.statistics.worst = max(self.statistics.worst, lag)
                if lag > MAX_LAG:
                    # Go on from now, with a gap in the stamps.
                    self.statistics.lost += lag
                    self._epoch += 0 if self.simulated_time else round(lag * 1e9)
                    due += lag
            try:
                self.cycle()
            except RobotIdError as error:
                self.failure = error
                return
