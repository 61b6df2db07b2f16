"""A simulated robot as ros2_control shows a real one: `ros2 run robotid_ros simulated_robot`."""

from dataclasses import replace
import gc
import math
import sys
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSPresetProfiles
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ...core.model.robot_builder import with_inertials
from ...exceptions import ConfigurationError, RobotIdError, RobotStateError
from ...files.configuration import read_urdf
from ...plant.drives import build_drives_of, Sensors
from ...plant.physics import Physics
from ..common.messages import status, status_array, to_time
from ..common.runtime import (
    ConfiguredNode,
    LATCHED,
    NodeExecutor,
    publish_diagnostics,
    run,
    serve,
    SpinThread,
)
from .control_loop import ControlLoop, Outputs
from .controller import SimulatedController, SimulatedManager

# How often failures and late cycles are looked for [s].
REPORT_PERIOD = 1.0
# A thread that computes must give way to the control loop soon; Python's default is 5 ms.
SWITCH_INTERVAL = 2e-4


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
        publish_diagnostics(self, 'control loop', self._diagnose)
        serve(self, 'break', self._on_break)
        self._late = 0
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
        states.name = sorted(names)
        default = QoSPresetProfiles.SYSTEM_DEFAULT.value
        publisher = self.create_publisher(JointState, 'joint_states', default)

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
        seen = self.loop.statistics
        if seen.late > self._late:
            self.get_logger().debug(
                f'{seen.late - self._late} late cycles, worst {seen.worst * 1e3:.1f} ms'
            )
        self._late = seen.late
        if seen.lost:
            self.get_logger().error(
                f'the machine stood still for {seen.lost:.1f} s: the stamps have a gap'
            )
            seen.lost = 0.0

    def _diagnose(self) -> DiagnosticStatus:
        """Tell how well the loop keeps time: it is slow on a machine that is too busy."""
        seen, simulation = self.loop.statistics, self.configuration.simulation
        values = {'cycles': seen.cycles, 'late_cycles': seen.late, 'worst_lag': seen.worst}
        text, hardware = f"controller '{simulation.controller}'", self.configuration.robot.name
        return status('', text, values, hardware=hardware)


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(SimulatedRobot, args)
