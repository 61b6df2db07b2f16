"""Settings of the simulated robot: the `simulation` group of a configuration."""

from dataclasses import dataclass
import math

from .exceptions import ConfigurationError
from .settings import setting

Numbers = tuple[float, ...]
FAULTS = (
    *('stale_joint_states', 'nan_joint_state', 'nan_velocity', 'nan_effort', 'dead_effort'),
    *('frozen_joint', 'frozen_states', 'reversed_drive'),
    *('hardware_error', 'deactivate', 'starved_clock'),
)


@dataclass(frozen=True)
class GainSettings:
    """Gains of one joint of the controller, as joint_trajectory_controller names them."""

    p: float = setting(0.0, 'proportional gain', unit='N·m/rad')
    i: float = setting(0.0, 'integral gain', unit='N·m/(rad·s)')
    d: float = setting(0.0, 'derivative gain, on the velocity error', unit='N·m·s/rad')
    i_clamp: float = setting(math.inf, 'deprecated symmetric bound of the integral term')
    i_clamp_max: float = setting(math.inf, 'upper bound of the integral term', unit='N·m')
    i_clamp_min: float = setting(-math.inf, 'lower bound of the integral term', unit='N·m')
    ff_velocity_scale: float = setting(0.0, 'effort per reference velocity', unit='N·m·s/rad')
    u_clamp_max: float = setting(math.inf, 'upper bound of the PID output', unit='N·m')
    u_clamp_min: float = setting(-math.inf, 'lower bound of the PID output', unit='N·m')
    tracking_time_constant: float = setting(0.0, 'for the strategy back_calculation', unit='s')
    error_deadband: float = setting(0.0, 'no integration below this error', unit='rad')
    antiwindup_strategy: str = setting(
        'legacy',
        'how the integral term is held',
        choices=('legacy', 'none', 'back_calculation', 'conditional_integration'),
    )


@dataclass(frozen=True)
class JointConstraintSettings:
    """Tolerances of one joint of the controller."""

    trajectory: float = setting(0.0, 'path tolerance, 0: not checked', unit='rad')
    goal: float = setting(0.0, 'goal tolerance, 0: not checked', unit='rad')
    max_deceleration_on_cancel: float = setting(
        0.0, 'deceleration of decelerate_on_cancel', unit='rad/s²', minimum=0.0
    )


@dataclass(frozen=True)
class ConstraintSettings:
    """Tolerances of the controller."""

    stopped_velocity_tolerance: float = setting(0.01, 'velocity at the goal', unit='rad/s')
    goal_time: float = setting(0.0, 'time to reach the goal, 0: for ever', unit='s', minimum=0.0)
    decelerate_on_cancel: bool = setting(False, 'brake along a ramp after cancel and abort')
    joints: dict[str, JointConstraintSettings] = setting(dict, 'tolerances by joint')


@dataclass(frozen=True)
class MotorSettings:
    """Motors that turn with a combination of joint velocities, `dq_m = N dq`."""

    matrix: Numbers = setting((), 'N, row by row: one row of joints per motor')
    Ia: Numbers = setting((), 'rotor inertia per motor', unit='kg·m²', minimum=0.0)
    Fv: Numbers = setting((), 'viscous friction', unit='N·m·s/rad', minimum=0.0)
    Fc: Numbers = setting((), 'Coulomb friction', unit='N·m', minimum=0.0)


@dataclass(frozen=True)
class StribeckSettings:
    """Static friction above Coulomb's: `Fs exp(-(dq / velocity)²)`."""

    extra: Numbers = setting((), 'Fs per joint', unit='N·m', minimum=0.0)
    velocity: Numbers = setting((), 'Stribeck velocity', unit='rad/s', minimum=1e-6)


@dataclass(frozen=True)
class ElasticDriveSettings:
    """Springs between motors and links."""

    stiffness: Numbers = setting(
        (), 'stiffness per joint, 0 or empty: rigid', unit='N·m/rad', minimum=0.0
    )
    feedback: str = setting(
        'motor', 'positions that the controller sees', choices=('motor', 'link')
    )


@dataclass(frozen=True)
class PayloadSettings:
    """A body that is fixed to a link and missing in the published URDF."""

    link: str = setting('', 'link that carries it, empty: the last one of the chain')
    mass: float = setting(0.0, 'mass, 0: no payload', unit='kg', minimum=0.0, dynamic=True)
    com: Numbers = setting((0.0,) * 3, "centre of mass in the link's frame", unit='m')
    inertia: Numbers = setting((0.0,) * 6, 'xx xy xz yy yz zz at the com', unit='kg·m²')


@dataclass(frozen=True)
class NoiseSettings:
    """White noise and quantisation of the sensors; one value applies to all joints."""

    position: Numbers = setting((1e-5,), 'σ of positions', unit='rad', minimum=0.0)
    velocity: Numbers = setting((1e-3,), 'σ of velocities', unit='rad/s', minimum=0.0)
    effort: Numbers = setting(
        (0.0,), 'σ of the drive: applied and reported effort differ', unit='N·m', minimum=0.0
    )
    ripple: Numbers = setting((0.0,), 'torque ripple amplitude', unit='N·m', minimum=0.0)
    ripple_order: float = setting(60.0, 'ripple periods per turn (2π rad)')
    resolution: Numbers = setting((0.0,), 'encoder quantum, 0: none', unit='rad', minimum=0.0)


@dataclass(frozen=True)
class FaultSettings:
    """Something that breaks at a given time after the start, or when `~/break` is called."""

    kind: str = setting('', 'what breaks, empty: nothing', choices=('', *FAULTS))
    time: float = setting(10.0, 'when, after the start', unit='s', minimum=0.0)
    duration: float = setting(0.0, 'how long, 0: for ever', unit='s', minimum=0.0)
    joint: str = setting('', 'which joint, empty: the first one')


@dataclass(frozen=True)
class SimulationSettings:
    """
    The simulated robot: its controller, its sensors and what its URDF does not say.

    Arrays per joint are in the order of `joints`; one value applies to all joints.
    """

    RETIRED = ('drop', 'controller_state_rate', 'drive_loops')

    controller: str = setting('arm_controller', 'name of the controller')
    effort_controller: str = setting(
        '', 'effort-forwarding controller, inactive at first, with a controller_manager; empty: '
        'none',
    )  # fmt: skip
    joints: tuple[str, ...] = setting((), "controlled joints, empty: the robot's movable ones")
    command_interface: str = setting(
        'effort', 'what the controller commands', choices=('effort', 'velocity', 'position')
    )
    late_preemption: bool = setting(
        False, 'let a preempted goal end with its successor, as before ros2_controllers 4.41'
    )
    speed_scaling: float = setting(
        1.0, 'speed scaling of trajectories, with position commands', minimum=0.0, maximum=1.0,
        dynamic=True,
    )  # fmt: skip
    update_rate: float = setting(
        1000.0, 'rate of hardware and physics', unit='Hz', minimum=10.0, maximum=4000.0
    )
    controller_rate: float = setting(
        0.0, 'updates of the controller, 0: every one of the hardware', unit='Hz', minimum=0.0
    )
    state_rate: float = setting(500.0, 'joint states, 0: every update', unit='Hz', minimum=0.0)
    real_time_factor: float = setting(
        1.0, '1: wall time, else simulated time and /clock, 0: as fast as it goes', minimum=0.0
    )
    seed: int = setting(1, 'seed of every random number', minimum=0)
    gravity: Numbers = setting((), "gravity in the base frame, empty: the robot's", unit='m/s²')
    initial_positions: Numbers = setting(
        (), 'positions at the start, empty: 0, or the nearest limit'
    )
    gains: dict[str, GainSettings] = setting(dict, "the controller's gains by joint")
    constraints: ConstraintSettings = setting(ConstraintSettings, "the controller's tolerances")
    limit_effort: bool = setting(True, "drives saturate at the URDF's effort limits")
    report_effort: bool = setting(True, 'joint states have efforts; off: NaN, as in Gazebo')
    noise: NoiseSettings = setting(NoiseSettings, 'sensors and drives')
    payload: PayloadSettings = setting(PayloadSettings, 'a body in the gripper')
    fault: FaultSettings = setting(FaultSettings, 'something that breaks')
    rotor_inertia: Numbers = setting(
        (0.0,), 'rotor and gear, joint side', unit='kg·m²', minimum=0.0
    )
    viscous: Numbers = setting(
        (), "viscous friction, empty: the URDF's damping", unit='N·m·s/rad', minimum=0.0
    )
    coulomb: Numbers = setting(
        (), "Coulomb friction, empty: the URDF's friction", unit='N·m', minimum=0.0
    )
    stribeck: StribeckSettings = setting(StribeckSettings, 'static friction')
    friction_factor: Numbers = setting(
        (1.0,), 'factor on all this friction, for wear and temperature', minimum=0.0, dynamic=True
    )
    offset: Numbers = setting((0.0,), 'constant torque of the drive', unit='N·m')
    coupling: MotorSettings = setting(MotorSettings, 'motors between joints')
    elastic: ElasticDriveSettings = setting(ElasticDriveSettings, 'springs in the joints')
    inertial_error: float = setting(
        0.0, "relative deviation of the true links from the URDF's", minimum=0.0, maximum=0.5
    )

    def __post_init__(self) -> None:
        for name in ('state_rate', 'controller_rate'):
            if (rate := getattr(self, name)) > self.update_rate:
                raise ConfigurationError(
                    f"'simulation.{name}' is {rate} Hz: it must not exceed update_rate"
                )
        if self.update_rate % (self.controller_rate or self.update_rate):
            raise ConfigurationError(
                f"'simulation.controller_rate' must divide update_rate, {self.update_rate:g} Hz"
            )
        if self.effort_controller and self.command_interface != 'effort':
            raise ConfigurationError(
                "'simulation.effort_controller' needs drives that take efforts: set "
                'command_interface to effort'
            )
        if self.speed_scaling != 1.0 and self.command_interface != 'position':
            raise ConfigurationError(
                "'simulation.speed_scaling' is of position commands: set command_interface"
            )
        for name, values, size in (
            ('gravity', self.gravity, 3),
            ('payload.com', self.payload.com, 3),
            ('payload.inertia', self.payload.inertia, 6),
        ):
            if len(values) != size and (values or name != 'gravity'):
                raise ConfigurationError(f"'simulation.{name}' must have {size} numbers")


def per_joint(values: Numbers, count: int, name: str) -> Numbers:
    """Expand one value, none (zeros) or one per joint to `count`; else a ConfigurationError."""
    if len(values) <= 1:
        return (values[0] if values else 0.0,) * count
    if len(values) != count:
        raise ConfigurationError(
            f"'simulation.{name}' has {len(values)} values for {count} joints: give one per joint"
        )
    return values
