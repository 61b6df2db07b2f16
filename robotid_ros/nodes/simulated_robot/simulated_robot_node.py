"""
A simulated robot as ros2_control shows a real one: `ros2 run robotid_ros simulated_robot`.

Its control loop reads, updates and writes as controller_manager does.
"""

from collections.abc import Callable
import contextlib
from dataclasses import dataclass, replace
from functools import partial
import gc
import math
import os
import random
import sys
import threading
import time
from typing import Any

from controller_manager_msgs.msg import (
    ControllerState as ManagedController,
    HardwareComponentState,
    HardwareInterface,
)
from controller_manager_msgs.srv import (
    ListControllers,
    ListHardwareComponents,
    SetHardwareComponentState,
    SwitchController,
)
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State as Lifecycle
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from ...core.model.assumed_inertials import with_inertials
from ...exceptions import ConfigurationError, RobotIdError, RobotStateError
from ...files.configuration import read_urdf
from ...plant.physics import build_drives_of, Physics, Sensors, Step
from ...plant.trajectory_controller import ControllerState, TrajectoryController
from ...simulation_settings import SimulationSettings
from ..common import runtime
from ..common.controller import EFFORT_CONTROLLER_TYPES, FORWARDED, JTC, MANAGER
from ..common.messages import status, status_array, to_time
from ..common.processes import prefer_threads
from ..common.runtime import ConfiguredNode, LATCHED, NodeExecutor, serve, SpinThread
from .controller import SimulatedController, SYSTEM_DEFAULT

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
HARDWARE = 'simulated_robot'  # its name in controller_manager
STATES = (  # of a controller or of hardware, by whether it is active
    Lifecycle(id=Lifecycle.PRIMARY_STATE_INACTIVE, label='inactive'),
    Lifecycle(id=Lifecycle.PRIMARY_STATE_ACTIVE, label='active'),
)
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


class ControlLoop:
    """Physics and controller in lockstep in a thread, in which `outputs` and `step` are called."""

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
        self.outputs, self.cycles, self.lost = outputs, 0, 0.0  # what was lost [s]
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
        self.braked = False
        self._switch: Callable[[list[float], list[float]], None] | None = None
        self._switched, self._one_switch = threading.Event(), threading.Lock()
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
        return self._epoch + self.cycles * self._period_ns

    def break_now(self) -> None:
        """Let the fault that is configured begin with the next cycle."""
        self.sensors.fault.start = (self.cycles + 1) * self._period

    def switch(self, function: Callable[[list[float], list[float]], None]) -> bool:
        """Call a function of position and velocity (n,) in a cycle; return whether it came."""
        with self._one_switch:
            self._switched.clear()
            self._switch = function
            return self._switched.wait(SWITCH_TIMEOUT)

    def cycle(self) -> None:
        """One period: read, update, publish, write, and what the robot does then."""
        count = self.cycles = self.cycles + 1
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
        if fault.active(since, 'reversed_drive'):
            command = [-x if k == fault.joint else x for k, x in enumerate(command)]
        self._applied = self._step([0.0] * len(command) if self.braked else command)
        if self.braked:
            self.physics.set_state(self.physics.position.tolist(), [0.0] * len(command))

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
            if step and lag > MAX_LAG:
                # Go on from now, with a gap in the stamps.
                self.lost += lag
                self._epoch += 0 if self.simulated_time else round(lag * 1e9)
                due += lag
            try:
                self.cycle()
            except RobotIdError as error:
                self.failure = error
                return


# How often failures and gaps of the stamps are looked for [s].
REPORT_PERIOD = 1.0
# A thread that computes must give way to the control loop soon; Python's default is 5 ms.
SWITCH_INTERVAL = 2e-4


class SimulatedManager(Node):
    """
    Switches between two controllers in a cycle of the control loop; the first one begins.

    Hardware that is not active brakes.
    """

    def __init__(
        self, settings: SimulationSettings, loop: Callable[[], ControlLoop], **options: Any
    ):
        super().__init__(MANAGER, **options)
        self._loop, self._names = loop, (settings.controller, settings.effort_controller)
        for kind, name, serve_it in (
            (SwitchController, 'switch_controller', self._on_switch),
            (ListControllers, 'list_controllers', self._on_list),
            (ListHardwareComponents, 'list_hardware_components', self._on_list_hardware),
            (SetHardwareComponentState, 'set_hardware_component_state', self._on_set_hardware),
        ):
            self.create_service(kind, f'~/{name}', serve_it)
        topic, qos = f'{settings.effort_controller}/{FORWARDED}', SYSTEM_DEFAULT
        self.create_subscription(Float64MultiArray, topic, self._on_command, qos)

    def _active(self) -> dict[str, bool]:
        loop = self._loop()
        active = loop.controller.active, loop.forwarded is not None
        return dict(zip(self._names, active, strict=True))

    def _on_command(self, message: Float64MultiArray) -> None:
        loop = self._loop()
        if loop.forwarded is None or not all(map(math.isfinite, message.data)):
            return
        if len(message.data) == len(loop.forwarded):
            loop.forwarded = list(message.data)
        else:
            # As the original: its update fails, it is deactivated, and its last efforts stay.
            self.get_logger().error('a command of the wrong size: the controller is deactivated')
            loop.switch(partial(self._apply, False, False))

    def _on_list(self, _: Any, response: Any) -> Any:
        interfaces = [f'{joint}/effort' for joint in self._loop().physics.joints]
        types = JTC, EFFORT_CONTROLLER_TYPES[0]
        for (name, active), kind in zip(self._active().items(), types, strict=True):
            listed = ManagedController(name=name, type=kind, state=STATES[active].label)
            listed.required_command_interfaces = interfaces
            listed.claimed_interfaces = interfaces if active else []
            response.controller.append(listed)
        return response

    def _on_list_hardware(self, _: Any, response: Any) -> Any:
        loop = self._loop()
        hardware = HardwareComponentState(name=HARDWARE, type='system')
        hardware.state = STATES[not loop.braked]
        names = (f'{joint}/effort' for joint in loop.physics.joints)
        hardware.command_interfaces = [HardwareInterface(name=n, is_available=True) for n in names]
        response.component = [hardware]
        return response

    def _on_set_hardware(self, request: Any, response: Any) -> Any:
        loop, response.ok = self._loop(), request.name == HARDWARE
        if response.ok:
            loop.braked = request.target_state.id != Lifecycle.PRIMARY_STATE_ACTIVE
        response.state = STATES[not loop.braked]
        return response

    def _on_switch(self, request: Any, response: Any) -> Any:
        before = self._active()
        on, off = set(request.activate_controllers), set(request.deactivate_controllers)
        trajectory, forwards = (
            (active and name not in off) or name in on for name, active in before.items()
        )
        wrong = any(before.get(name, True) for name in on)
        wrong |= not all(before.get(name, False) for name in off)
        if trajectory and forwards:
            response.message = 'both controllers would claim the same interfaces'
        elif (on | off) - set(before) or (wrong and request.strictness != request.BEST_EFFORT):
            response.message = 'a controller is unknown, active already, or inactive'
        else:
            switch = partial(self._apply, trajectory, forwards)
            response.ok = self._loop().switch(switch)
        return response

    def _apply(
        self, trajectory: bool, forwards: bool, position: list[float], velocity: list[float]
    ) -> None:
        loop = self._loop()
        controller = loop.controller
        if controller.active and not trajectory:
            controller.deactivate()
        # What the other one has left on the interfaces stays until a command comes.
        if loop.forwarded is not None:
            controller.command = loop.forwarded
        loop.forwarded = controller.command if forwards else None
        if trajectory and not controller.active:
            controller.activate(position, velocity)


class SimulatedRobot(ConfiguredNode):
    """Robot, joint state broadcaster and controller in a process; options of `ConfiguredNode`."""

    def __init__(self, **options: Any):
        super().__init__('simulated_robot', ('robot', 'simulation'), **options)
        try:
            self._build()
        except RobotIdError:
            self.destroy_node()
            raise
        texts = 'robot_description', '~/true_robot_description'
        self._descriptions = [self.create_publisher(String, name, LATCHED) for name in texts]
        self._truth = self.create_publisher(DiagnosticArray, '~/true_parameters', LATCHED)
        self._publish_descriptions()
        self.create_timer(REPORT_PERIOD, self._report)
        serve(self, 'break', self._on_break)
        sys.setswitchinterval(SWITCH_INTERVAL)
        # A long goal makes many objects at once: collecting them as often as usual would stop the
        # loop for tenths of a second.
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        self.loop.start()
        self.get_logger().info(
            f"controller '{self.configuration.simulation.controller}' is active with "
            f'{", ".join(self.loop.physics.joints)}'
        )

    def close(self) -> None:
        """Stop the control loop and the controller's node."""
        self.loop.stop()
        self._spinning.end()
        for node in self._nodes:
            node.destroy_node()

    def _build(self) -> None:
        settings, robot = self.configuration.simulation, self.configuration.robot
        settings = replace(settings, gravity=settings.gravity or robot.gravity)
        given = self._parameter_overrides.get('robot_description')
        self.urdf = str(given.value if given is not None else read_urdf(self.configuration) or '')
        if not self.urdf:
            raise ConfigurationError(
                'no robot: give `robot.urdf` in a configuration (--params-file) or the parameter '
                "'robot_description'"
            )
        with_bodies, _ = with_inertials(self.urdf, robot.mass)
        motors = dict(zip(robot.elastic.joints, robot.elastic.motors))  # noqa: B905
        joints = settings.joints or robot.joints
        physics, step = build_drives_of(
            settings, lambda s: Physics(with_bodies, s, joints, robot.locked, motors)
        )
        for link in physics.impossible_links:
            self.get_logger().warning(f"no body can have the inertia of '{link}': corrected")
        options = {'context': self.context, 'namespace': self.get_namespace()}
        self.controller_node = SimulatedController(
            settings, physics, lambda: self.loop.now(), **options
        )
        controller = self.controller_node.controller
        names = physics.joint_state_names
        # In alphabetical order, as joint_state_broadcaster sends them.
        order, states = sorted(range(len(names)), key=names.__getitem__), JointState()
        states.name, states.header.frame_id = sorted(names), 'base_link'
        publisher = self.create_publisher(JointState, 'joint_states', SYSTEM_DEFAULT)

        def publish(stamp: int, *fields: list[float]) -> None:
            states.header.stamp = to_time(stamp)
            states.position, states.velocity, states.effort = (
                [values[index] for index in order] for values in fields
            )
            publisher.publish(states)

        outputs = Outputs(publish, self.controller_node.publish_state)
        if settings.real_time_factor != 1.0:
            clock = self.create_publisher(Clock, '/clock', 10)
            outputs.clock = lambda stamp: clock.publish(Clock(clock=to_time(stamp)))
        sensors = Sensors(settings, names)
        self.loop = ControlLoop(physics, sensors, controller, settings, outputs, step)

        def on_wrench(message: WrenchStamped) -> None:
            force, torque = message.wrench.force, message.wrench.torque
            values = (force.x, force.y, force.z, torque.x, torque.y, torque.z)
            physics.push(message.header.frame_id, values)

        self.create_subscription(WrenchStamped, '~/external_wrench', on_wrench, 10)
        if settings.command_interface == 'position':
            name = 'simulation.speed_scaling'

            def scale(_: Any) -> None:
                controller.speed_scaling = float(self.get_parameter(name).value)

            scale(None)
            self.add_post_set_parameters_callback(scale)
        self.add_on_set_parameters_callback(self._change_robot)
        self._nodes: list[Node] = [self.controller_node]
        if settings.effort_controller:
            self._nodes.append(SimulatedManager(settings, lambda: self.loop, **options))
        executor = NodeExecutor(context=self.context)
        for node in self._nodes:
            executor.add_node(node)
        self._spinning = SpinThread(executor)

    def _change_robot(self, parameters: list[Parameter]) -> SetParametersResult:
        """Let friction, and the mass that is carried, be changed while the robot runs."""
        physics, given = self.loop.physics, {p.name: p.value for p in parameters}
        friction = given.get('simulation.friction_factor')
        mass = given.get('simulation.payload.mass')
        try:
            if friction is not None:
                factors = tuple(float(x) for x in friction)
                if not all(0.0 <= factor < math.inf for factor in factors):
                    raise ConfigurationError(
                        "'simulation.friction_factor' must be at least 0 and finite"
                    )
                physics.scale_friction(factors)
            if mass is not None:
                if not math.isfinite(mass):
                    raise ConfigurationError("'simulation.payload.mass' must be finite")
                pick_up = physics.carry(mass)
                if not self.loop.switch(lambda *_: pick_up()):
                    raise RobotStateError('the control loop stands still')
                self._publish_descriptions()
        except RobotIdError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _publish_descriptions(self) -> None:
        texts = self.urdf, self.loop.physics.urdf
        for publisher, text in zip(self._descriptions, texts, strict=True):
            publisher.publish(String(data=text))
        statuses = []
        for truth in self.loop.physics.true_parameters():
            ratios = {'ratios': ' '.join(map(repr, truth.ratios))} if truth.ratios else {}
            statuses.append(status(truth.name, '', {**truth.values, **ratios}))
        self._truth.publish(status_array(to_time(self.loop.now()), statuses))

    def _on_break(self) -> str:
        if not self.loop.sensors.fault.kind:
            raise ConfigurationError('no fault is configured: set simulation.fault.kind')
        self.loop.break_now()
        return self.loop.sensors.fault.kind

    def _report(self) -> None:
        for failure in filter(None, (self.loop.failure, *self._spinning.failures)):
            raise failure
        if self.loop.lost:
            self.get_logger().error(
                f'the machine stood still for {self.loop.lost:.1f} s: the stamps have a gap'
            )
            self.loop.lost = 0.0


main = partial(runtime.run, SimulatedRobot)
