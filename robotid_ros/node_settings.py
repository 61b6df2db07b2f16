"""Settings of nodes, how a session runs, is recorded, and what follows from it; and of fleets."""

from dataclasses import dataclass, fields

from .core.excitation.settings import ExcitationSettings, Until
from .core.identification_settings import (
    ContactSettings,
    DriftSettings,
    GainProposalSettings,
    IdentificationSettings,
)
from .settings import setting

# What a description may leave unchecked; all of it is accepted where only a simulation moves.
UNCHECKED = ('ground', 'self_collision', 'collision_geometry', 'masses', 'position_limits')


@dataclass(frozen=True)
class VerificationSettings:
    """What was identified, on the robot: see ~/verify, ~/verify_gains, ~/verify_static."""

    results: str = setting('', 'folder of the results; empty: what was identified last')
    # Of simulated and real arms 1 to 15 % are not predicted; from 100 % on efforts do harm.
    largest_residual: float = setting(
        0.5, 'largest unexplained share of an effort for a feed-forward trial', minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    postures: int = setting(
        6, 'number of postures in which the robot rests', minimum=1, maximum=1000
    )
    # Longer than the presliding of gears (0.01 rad), short beside what changes gravity.
    distance: float = setting(
        0.05, 'distance from which a posture is approached', unit='rad', minimum=0.001, maximum=0.5
    )


@dataclass(frozen=True)
class ExcitationNodeSettings(ExcitationSettings):
    """The motion to run, the controller that runs it, and when to stop the robot."""

    controller: str = setting('arm_controller', 'joint trajectory controller that moves the robot')
    trajectory: str = setting('', 'trajectory.yaml to run; empty: design one')
    auto_start: bool = setting(False, 'start as soon as the robot is there')
    until: Until = setting(Until, 'what ends the excitation, after one of its periods')
    accept_unchecked: tuple[str, ...] = setting(
        (), 'what need not be checked before the robot moves', choices=UNCHECKED
    )
    require_recorder: bool = setting(True, 'move only while the recorder says that it writes')
    require_rehearsal: bool = setting(False, 'move only through motions that passed ~/rehearse')
    settle: float = setting(0.5, 'rest before each phase', unit='s', minimum=0.0, maximum=60.0)
    timeout: float = setting(5.0, 'longest wait for an answer or a message', unit='s', minimum=0.1)
    stale_after: float = setting(
        0.25, 'silence of joint states or controller states that stops the robot', unit='s',
        minimum=0.02, maximum=2.0,
    )  # fmt: skip
    tracking_error: tuple[float, ...] = setting(
        (0.1,), 'error that stops the robot; one for all or per joint', unit='rad', minimum=1e-6
    )
    goal_tolerance: tuple[float, ...] = setting(
        (0.05,), 'error at which a motion is finished, likewise', unit='rad', minimum=1e-6
    )
    goal_time: float = setting(3.0, 'longest time to come within it', unit='s', minimum=0.1)
    effort_share: float = setting(
        0.98, 'share of the effort limit that stops the robot', minimum=0.01, maximum=1.0
    )
    effort_time: float = setting(
        0.05, 'how long the effort may stay above that share', unit='s', minimum=0.0, maximum=1.0
    )
    horizon: float = setting(
        0.0, 'send pieces that stop within this time if no next one comes; 0: whole, only the '
        'guardian stops it if the client dies', unit='s', minimum=0.0, maximum=10.0,
    )  # fmt: skip
    deactivate_effort_controller: bool = setting(
        False, 'a wrong position or velocity deactivates effort controllers too (others: '
        'always): drives or brakes must hold the arm then',
    )  # fmt: skip
    deactivate_hardware: bool = setting(
        False, 'a wrong position or velocity, or motion after a cancel, deactivates the '
        'controller and its hardware: a driver that brakes then stops the arm',
    )  # fmt: skip
    position_tolerance: tuple[float, ...] = setting(
        (0.02,), 'how far beyond its limits a joint may be, likewise', unit='rad', minimum=0.0
    )
    verification: VerificationSettings = setting(VerificationSettings, 'verification on the robot')


@dataclass(frozen=True)
class RecorderSettings:
    """Where recordings go and what is added to them."""

    RETIRED = ('depth',)

    folder: str = setting('recordings', 'folder of the recordings; made when missing')
    name: str = setting('', "name of a recording; empty: the robot's name and the date")
    topics: tuple[str, ...] = setting((), 'topics to record besides those that are needed')


@dataclass(frozen=True)
class PayloadIdentificationSettings:
    """What a recording with a payload is compared with, and where the result is sent."""

    empty: str = setting(
        '', 'recording of the arm without it, or results of one; empty: the first one of this node'
    )
    frame: str = setting(
        '', "frame of the result; empty: excitation.workspace.frame, else tool0, else a joint's"
    )
    maker: str = setting(
        '', 'whose driver ~/set_payload sets: universal_robots, franka, ufactory; or feedforward'
    )
    service: str = setting('', 'service of the driver, if not its usual one')


@dataclass(frozen=True)
class IdentificationNodeSettings(IdentificationSettings):
    """The estimation, where its files go, and what follows from it."""

    RETIRED = (*IdentificationSettings.RETIRED, 'live_rate', 'live_cutoff')

    output_dir: str = setting('', "where results go; empty: '<recording>_identified'")
    folders: tuple[str, ...] = setting(
        (), 'folders besides recorder.folder below which recordings may be identified'
    )
    time_limit: float = setting(900.0, 'longest identification', unit='s', minimum=1.0)
    controller_gains: GainProposalSettings = setting(GainProposalSettings, 'proposed gains')
    drift: DriftSettings = setting(DriftSettings, 'changes of friction, offsets and payload')
    contact: ContactSettings = setting(ContactSettings, 'external effort, wrench and contact')
    payload: PayloadIdentificationSettings = setting(
        PayloadIdentificationSettings, 'what ~/identify_payload does'
    )


@dataclass(frozen=True)
class CarriedSettings:
    """The body that the robot carries now: commanded efforts include it."""

    mass: float = setting(0.0, 'mass of the body; 0: none', unit='kg', minimum=0.0, dynamic=True)
    center: tuple[float, ...] = setting(
        (0.0,) * 3, 'centre of mass in the frame', unit='m', dynamic=True
    )
    inertia: tuple[float, ...] = setting(
        (0.0,) * 6,
        'ixx ixy ixz iyy iyz izz at its centre of mass, axes of the frame',
        unit='kg·m²',
        dynamic=True,
    )
    frame: str = setting(
        '', "frame of its centre and inertia; empty: the last joint's", dynamic=True
    )


CARRIED = tuple(field.name for field in fields(CarriedSettings))


@dataclass(frozen=True)
class FeedForwardSettings:
    """Goals of others, with the identified efforts: see the node `feedforward`."""

    results: str = setting('', 'folder of the results with the model')
    enabled: bool = setting(True, 'false: goals pass unchanged, the arm sags once', dynamic=True)
    ramp: float = setting(
        0.5, "time in which the effort offset at a goal's start fades out", unit='s', minimum=0.0,
        maximum=10.0,
    )  # fmt: skip
    largest_slowdown: float = setting(
        1.0, 'largest stretch in time of goals with too much effort; 1: refuse', minimum=1.0,
        maximum=10.0,
    )  # fmt: skip
    payload: CarriedSettings = setting(CarriedSettings, 'the body that the robot carries now')


@dataclass(frozen=True)
class ForceTorqueSettings:
    """What hangs at a force-torque sensor, and its offsets: see the node `force_torque`."""

    topic: str = setting('force_torque_sensor_broadcaster/wrench', 'topic of the wrench')
    frame: str = setting('', 'frame of the sensor; empty: that of its messages')
    reaction: bool = setting(
        False, 'the sensor measures what it exerts, and not what acts on it: forces point upwards'
    )
    results: str = setting('', 'file of an earlier result to start from; empty: none')
    output: str = setting('force_torque.yaml', 'file of the result; gets a new name if it exists')
    cutoff: float = setting(
        10.0, 'corner of the filter of the motion', unit='Hz', minimum=0.5, maximum=100.0
    )
    drift: tuple[float, ...] = setting(
        (2.0, 0.2), 'offset change to report: force, torque', unit='N, N·m', minimum=0.0
    )


@dataclass(frozen=True)
class LiveSettings:
    """The session in a browser: see the node `live`."""

    port: int = setting(8787, 'port of the page; 0: any', minimum=0, maximum=65535)
    allow: bool = setting(False, 'other machines may open the page, too: see docs/security.md')


@dataclass(frozen=True)
class GravityCompensationSettings:
    """Hand guiding with the identified model: see the node `gravity_compensation`."""

    results: str = setting('', 'folder of the results with the model')
    controller: str = setting(
        'effort_controller', 'effort-forwarding controller, inactive at first'
    )
    damping_time: float = setting(
        0.2, 'time constant of the speed after a push', unit='s', minimum=0.05, maximum=10.0
    )
    limit_margin: float = setting(
        0.1, 'margin before the position limits, in which springs stop a joint', unit='rad or m',
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    speed_limit: float = setting(
        0.8, 'speed above which guiding ends, if the joint has no lower limit',
        unit='rad/s or m/s', minimum=0.01, maximum=3.0,
    )  # fmt: skip
    payload: CarriedSettings = setting(CarriedSettings, 'the body that the robot carries now')


@dataclass(frozen=True)
class FleetSettings:
    """How many bags are worked on at once, and with what."""

    RETIRED = ('piece', 'waiting')

    workers: int = setting(
        0, 'processes on this machine, one thread each; 0: one a core', minimum=0, maximum=1000
    )
    memory: float = setting(2.0, 'memory at which a process is restarted', unit='GB', minimum=0.25)
