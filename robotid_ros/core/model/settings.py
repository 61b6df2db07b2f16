"""What a configuration says about the robot itself."""

import dataclasses

from ...settings import setting


@dataclasses.dataclass(frozen=True)
class CoupledMotorSettings:
    """A motor that turns with a combination of the joints' velocities, `ratios · dq`."""

    ratios: tuple[float, ...] = setting((), 'motor speed per joint speed, one per joint')


@dataclasses.dataclass(frozen=True)
class ElasticSettings:
    """Joints with a spring between motor and link; both positions are in the joint states."""

    joints: tuple[str, ...] = setting((), 'the elastic joints; empty: all joints are rigid')
    motors: tuple[str, ...] = setting(
        (), "names of their motors in the joint states; empty: the joint's with _motor behind it"
    )
    stiffness: tuple[float, ...] = setting(
        (), 'rough stiffness per elastic joint, a prior; empty: none', unit='N·m/rad', minimum=0.0
    )
    link_friction: dict[str, tuple[str, ...]] = setting(
        dict,
        "friction terms on the link's side by joint name, 'default' for the others; none",
        former={'transmission': {None: {}}},
    )


@dataclasses.dataclass(frozen=True)
class RobotSettings:
    """Which joints are identified and with which model; arrays follow `joints`."""

    name: str = setting('', "name for reports; empty: the URDF's")
    urdf: str = setting('', 'package://, absolute, or relative to the configuration file')
    joints: tuple[str, ...] = setting(
        (), 'joints to identify; empty: all movable ones, from the base outwards'
    )
    mass: float = setting(
        0.0,
        'mass of the robot in its data sheet, shared out between links where the URDF has no '
        'inertials; 0: unknown',
        unit='kg',
        minimum=0.0,
    )
    gravity: tuple[float, ...] = setting(
        (0.0, 0.0, -9.81), "gravity in the URDF's root frame, three numbers", unit='m/s²'
    )
    locked: dict[str, float] = setting(
        dict, 'positions of the joints that are not identified; 0 where not given', unit='rad'
    )
    friction: dict[str, tuple[str, ...]] = setting(
        dict, "friction terms, or spring, by joint name, 'default' for the others; joints "
        'without any: viscous, coulomb, offset, and with identification.model mixed the shrunk '
        'columns',
    )  # fmt: skip
    friction_constants: dict[str, dict[str, float]] = setting(
        dict, "shape constants of the friction terms by joint name; 'default' for all"
    )
    rotor_inertia: bool = setting(True, 'identify a rotor inertia Ia for every joint')
    couplings: dict[str, CoupledMotorSettings] = setting(
        dict, 'motors that drive several joints, by a name of your choice'
    )
    elastic: ElasticSettings = setting(ElasticSettings, 'joints with a spring in the transmission')
    drives: tuple[str, ...] = setting(
        (), "servo of each joint, '' for others: their torque per ampere and its spread, see "
        'docs/efforts.md; with /counts efforts are raw register values',
    )  # fmt: skip
    drive_gain: tuple[float, ...] = setting(
        (), "torque per unit of published effort; empty: the drives', else 1", unit='N·m'
    )
    drive_gain_spread: tuple[float, ...] = setting(
        (), 'relative σ of drive_gain, included in σ; empty: 0, or that of drives', minimum=0.0
    )
    effort_kind: str = setting(
        'auto',
        'what the published efforts are: joint_torque with all that the joint bears, '
        'without_gravity where the driver compensates it; auto: chosen with '
        'identification.model mixed, else joint_torque',
        choices=('auto', 'joint_torque', 'without_gravity'),
    )
    lower: tuple[float, ...] = setting((), "lower position limits; empty: the URDF's", unit='rad')
    upper: tuple[float, ...] = setting((), "upper position limits; empty: the URDF's", unit='rad')
    velocity: tuple[float, ...] = setting(
        (), "velocity limits; empty: the URDF's", unit='rad/s', minimum=0.0
    )
    acceleration: tuple[float, ...] = setting(
        (), "acceleration limits; empty: the URDF's, or none", unit='rad/s²', minimum=0.0
    )
    jerk: tuple[float, ...] = setting(
        (), "jerk limits; empty: the URDF's, or none", unit='rad/s³', minimum=0.0
    )
    effort: tuple[float, ...] = setting(
        (), "effort limits; empty: the URDF's", unit='N·m', minimum=0.0
    )

    def constants_of(self, joint: str) -> dict[str, float]:
        """Shape constants of a joint's friction, the common ones included."""
        constants = self.friction_constants
        return {**constants.get('default', {}), **constants.get(joint, {})}
