"""Settings of nodes, how a session runs, is recorded, and what follows from it; and of fleets."""

from dataclasses import dataclass

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
        0.5,
        'share of an effort that the model may leave for feed-forward to be tried',
        minimum=0.0,
        maximum=1.0,
    )
    postures: int = setting(6, 'in which the robot rests', minimum=1, maximum=1000)
    # Longer than the presliding of gears (0.01 rad), short beside what changes gravity.
    distance: float = setting(
        0.05, 'from which the joints come to a posture', unit='rad', minimum=0.001, maximum=0.5
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
        0.25, 'joint states older than this stop the robot', unit='s', minimum=0.02, maximum=2.0
    )
    tracking_error: tuple[float, ...] = setting(
        (0.1,),
        'distance from the reference that stops the robot, one for all or per joint',
        unit='rad',
        minimum=1e-6,
    )
    goal_tolerance: tuple[float, ...] = setting(
        (0.05,),
        'distance at which a motion counts as finished, likewise',
        unit='rad',
        minimum=1e-6,
    )
    goal_time: float = setting(3.0, 'time to come within it', unit='s', minimum=0.1)
    effort_share: float = setting(
        0.98, 'share of the effort limit that stops the robot', minimum=0.01, maximum=1.0
    )
    effort_time: float = setting(
        0.05, 'how long the effort may stay above that share', unit='s', minimum=0.0, maximum=1.0
    )
    horizon: float = setting(
        0.0,
        'a motion is sent in pieces that are at rest after this time should no next one come; 0: '
        'whole, and the guardian alone stops it where its client dies',
        unit='s',
        minimum=0.0,
        maximum=10.0,
    )
    deactivate_effort_controller: bool = setting(
        False,
        'a position or velocity that is wrong deactivates the controller, as it always does one '
        'that commands no efforts: drives or brakes must hold the arm then',
    )
    position_tolerance: tuple[float, ...] = setting(
        (0.02,), 'how far beyond its limits a joint may be, likewise', unit='rad', minimum=0.0
    )
    verification: VerificationSettings = setting(
        VerificationSettings, 'what was identified, on the robot'
    )


@dataclass(frozen=True)
class RecorderSettings:
    """Where recordings go and what is added to them."""

    RETIRED = ('depth',)

    folder: str = setting('recordings', 'folder of the recordings; made when missing')
    name: str = setting('', "name of a recording; empty: the robot's name and the date")
    topics: tuple[str, ...] = setting((), 'topics to record besides those that are needed')


@dataclass(frozen=True)
class PayloadIdentificationSettings:
    """What a recording with a payload is compared with, and where the result is told."""

    empty: str = setting(
        '', 'recording of the arm without it, or results of one; empty: the first one of this node'
    )
    frame: str = setting(
        '', "frame of the result; empty: excitation.workspace.frame, else tool0, else a joint's"
    )
    maker: str = setting(
        '', 'whose driver ~/set_payload sets: universal_robots, franka, ufactory; or feedforward'
    )
    service: str = setting('', 'of the driver, where it is not started as usual')


@dataclass(frozen=True)
class IdentificationNodeSettings(IdentificationSettings):
    """The estimation, where its files go, and what follows from it."""

    RETIRED = ('live_rate',)

    output_dir: str = setting('', "where results go; empty: '<recording>_identified'")
    folders: tuple[str, ...] = setting(
        (), 'folders besides recorder.folder below which recordings may be identified'
    )
    time_limit: float = setting(900.0, 'longest identification', unit='s', minimum=1.0)
    live_cutoff: float = setting(
        10.0, 'corner of the filter of live predictions', unit='Hz', minimum=0.1
    )
    controller_gains: GainProposalSettings = setting(GainProposalSettings, 'proposed gains')
    drift: DriftSettings = setting(DriftSettings, 'changes of friction, offsets and payload')
    contact: ContactSettings = setting(ContactSettings, 'external effort, wrench and contact')
    payload: PayloadIdentificationSettings = setting(
        PayloadIdentificationSettings, 'what ~/identify_payload does'
    )


@dataclass(frozen=True)
class CarriedSettings:
    """The body that the robot carries now: commanded efforts count it."""

    mass: float = setting(0.0, 'of the body; 0: none', unit='kg', minimum=0.0, dynamic=True)
    center: tuple[float, ...] = setting(
        (0.0,) * 3, 'centre of mass in the frame', unit='m', dynamic=True
    )
    inertia: tuple[float, ...] = setting(
        (0.0,) * 6,
        'ixx ixy ixz iyy iyz izz at its centre of mass, axes of the frame',
        unit='kg·m²',
        dynamic=True,
    )
    frame: str = setting('', "of its centre and inertia; empty: the last joint's", dynamic=True)


@dataclass(frozen=True)
class FeedForwardSettings:
    """Goals of others, with the identified efforts: see the node `feedforward`."""

    results: str = setting('', 'folder of the results with the model')
    enabled: bool = setting(True, 'false: goals go on as they came', dynamic=True)
    ramp: float = setting(
        0.5,
        'time in which what was commanded ahead of the feedback before a goal gives way',
        unit='s',
        minimum=0.0,
        maximum=10.0,
    )
    largest_slowdown: float = setting(
        1.0,
        'factor by which a goal that needs too much effort may be stretched in time; 1: refuse it',
        minimum=1.0,
        maximum=10.0,
    )
    payload: CarriedSettings = setting(CarriedSettings, 'the body that the robot carries now')


@dataclass(frozen=True)
class ForceTorqueSettings:
    """What hangs at a force-torque sensor, and its offsets: see the node `force_torque`."""

    topic: str = setting('force_torque_sensor_broadcaster/wrench', 'that the sensor publishes')
    frame: str = setting('', 'of the sensor; empty: the one that its messages name')
    reaction: bool = setting(
        False, 'the sensor measures what it exerts, and not what acts on it: forces point upwards'
    )
    results: str = setting('', 'file of a result to begin with; empty: none')
    output: str = setting('force_torque.yaml', 'file of a result; gets a new name where one is')
    cutoff: float = setting(
        10.0, 'corner of the filter of the motion', unit='Hz', minimum=0.5, maximum=100.0
    )
    drift: tuple[float, ...] = setting(
        (2.0, 0.2), 'of an offset that is told: force and torque', unit='N, N·m', minimum=0.0
    )


@dataclass(frozen=True)
class LiveSettings:
    """The session in a browser: see the node `live`."""

    port: int = setting(8787, 'that the page listens to; 0: any', minimum=0, maximum=65535)
    allow: bool = setting(False, 'other machines may open the page, too: see docs/security.md')


@dataclass(frozen=True)
class GravityCompensationSettings:
    """Hand guiding with the identified model: see the node `gravity_compensation`."""

    results: str = setting('', 'folder of the results with the model')
    controller: str = setting('effort_controller', 'that forwards efforts, inactive at first')
    damping_time: float = setting(
        0.2, 'in which the speed after a push dies away', unit='s', minimum=0.05, maximum=10.0
    )
    limit_margin: float = setting(
        0.1,
        'before the position limits, in which springs stop a joint',
        unit='rad or m',
        minimum=0.0,
        maximum=1.0,
    )
    speed_limit: float = setting(
        0.8,
        'above which guiding ends, if the joint has no lower limit',
        unit='rad/s or m/s',
        minimum=0.01,
        maximum=3.0,
    )
    payload: CarriedSettings = setting(CarriedSettings, 'the body that the robot carries now')


@dataclass(frozen=True)
class FleetSettings:
    """How many bags are worked on at once, and with what."""

    RETIRED = ('piece', 'waiting')

    workers: int = setting(
        0, 'processes on this machine, one thread each; 0: one a core', minimum=0, maximum=1000
    )
    memory: float = setting(2.0, 'memory at which a process is restarted', unit='GB', minimum=0.25)
