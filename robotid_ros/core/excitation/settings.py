"""Settings of the excitation's design: the group `excitation` of the configuration."""

from dataclasses import dataclass, replace
import math
from typing import TypeVar

from ...settings import setting

# Of 15 s: of random motions of five harmonics, two of 7.5 s gave the payload of a TX-40 a fifth of
# the variance of one of 15 s, that of a UR10 the same; three of 5 s are too quick for a UR10.
PAYLOAD_PERIODS = 2


@dataclass(frozen=True)
class Margins:
    """Fractions of each limit that the design leaves unused."""

    position: float = setting(0.02, 'of the position range', minimum=0.0, maximum=0.9)
    velocity: float = setting(0.05, 'of the velocity limit', minimum=0.0, maximum=0.9)
    acceleration: float = setting(0.05, 'of the acceleration limit', minimum=0.0, maximum=0.9)
    jerk: float = setting(0.05, 'of the jerk limit', minimum=0.0, maximum=0.9)
    effort: float = setting(
        0.2, 'of the effort limit; the prior model may lack friction', minimum=0.0, maximum=0.9
    )


@dataclass(frozen=True)
class Obstacle:
    """A box, sphere or cylinder that no body may touch, in the base frame."""

    shape: str = setting('box', 'shape', choices=('box', 'sphere', 'cylinder'))
    position: tuple[float, ...] = setting((0.0, 0.0, 0.0), 'centre x y z', unit='m')
    rpy: tuple[float, ...] = setting((0.0, 0.0, 0.0), 'roll pitch yaw', unit='rad')
    size: tuple[float, ...] = setting(
        (0.1, 0.1, 0.1), 'box: x y z; sphere: radius; cylinder: radius, length', unit='m'
    )


@dataclass(frozen=True)
class Workspace:
    """Where the robot may go: tool box, ground, obstacles, itself."""

    frame: str = setting('', 'frame of the tool; empty: the last body')
    lower: tuple[float, ...] = setting((), 'lower corner x y z of the tool box', unit='m')
    upper: tuple[float, ...] = setting((), 'upper corner x y z of the tool box', unit='m')
    ground: float | None = setting(
        None, 'height of the ground plane; no joint goes below', unit='m'
    )
    self_collision: bool = setting(True, 'avoid self-collision if the URDF has geometry')
    distance: float = setting(0.02, 'smallest distance between bodies', unit='m', minimum=0.0)
    mesh_folders: tuple[str, ...] = setting(
        (),
        'where the packages of package:// meshes are, besides AMENT_PREFIX_PATH, ROS_PACKAGE_PATH '
        'and the folders above robot.urdf',
    )
    ignored_pairs: tuple[str, ...] = setting((), "pairs of links not to check, as 'link_a/link_b'")
    obstacles: dict[str, Obstacle] = setting(dict, 'obstacles by name')


@dataclass(frozen=True)
class ValidationSettings:
    """The trajectory that validates: never the one that identified."""

    kind: str = setting('seed', 'another design, or none', choices=('seed', 'none'))
    period: float = setting(
        0.0, 'length of its period; 0: as the excitation', unit='s', minimum=0.0
    )


@dataclass(frozen=True)
class PayloadMotion:
    """A short motion for the payload of the tool instead of the arm itself."""

    mass: float = setting(
        0.0, 'heaviest payload that it may carry; 0: a motion for the arm', unit='kg', minimum=0.0
    )
    com: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0), 'about where its centre of mass is, in workspace.frame', unit='m'
    )
    duration: float = setting(15.0, 'length of the motion, two periods', unit='s', minimum=1.0)


@dataclass(frozen=True)
class Until:
    """When enough is known: all goals are met, or the longest time is over."""

    # Of 200 simulated sessions the median stopped after a third of its time; σ still held.
    prediction: float = setting(
        0.02, 'reducible prediction error / effort at which to stop; 0: not asked', minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    sigma: dict[str, float] = setting(
        dict, "σ of base parameters by name, in their units, or of a payload's mass", minimum=1e-12
    )
    time: float = setting(
        0.0, 'longest motion, in whole periods; 0: excitation.periods', unit='s', minimum=0.0
    )

    @property
    def asks(self) -> bool:
        """Whether anything but the time ends the motion."""
        return bool(self.sigma or self.prediction)

    def most_periods(self, periods: int, period: float) -> int:
        """Return how many periods [s] are run at the most, of so many that are configured."""
        return max(1, int(self.time / period + 1e-9)) if self.time else periods


@dataclass(frozen=True)
class ExcitationSettings:
    """What to run and how to find it."""

    RETIRED = ('columns', 'noise')

    family: str = setting('mfs', 'trajectory family', choices=('mfs', 'ffs', 'bspline', 'quintic'))
    period: float = setting(10.0, 'length of one period', unit='s', minimum=0.1)
    order: int = setting(
        5, 'harmonics, free control points (bspline) or via points (quintic)', minimum=1,
        maximum=100,
    )  # fmt: skip
    periods: int = setting(3, 'largest number of periods, see until', minimum=1)
    criterion: str = setting(
        'condition',
        'what to minimise',
        choices=('condition', 'normalised_condition', 'frobenius', 'd_optimal', 'smallest'),
    )
    start: tuple[float, ...] = setting((), 'configuration q0; empty: chosen', unit='rad')
    amplitude: float = setting(
        math.pi, 'bound on |q| of a joint without position limits', unit='rad', minimum=1e-3
    )
    acceleration_time: float = setting(
        0.5, 'rest to full speed, for joints without acceleration limit', unit='s', minimum=1e-3
    )
    jerk_time: float = setting(
        0.1, 'zero to full acceleration, for joints without jerk limit', unit='s', minimum=1e-3
    )
    margins: Margins = setting(Margins, 'unused fractions of the limits')
    workspace: Workspace = setting(Workspace, 'where the robot may go')
    payload: PayloadMotion = setting(PayloadMotion, 'the motion for a payload')
    starts: int = setting(
        3,
        'random starts of the search, of which the best is refined',
        minimum=1,
        former={'solver': {'gradient': 3}},
    )
    iterations: int = setting(
        150, 'iterations of the start that is refined; others take a third of them', minimum=1
    )
    time_limit: float = setting(
        300.0, 'longest design; the best so far is kept', unit='s', minimum=0.0
    )
    # A simulated Baxter, whose arm has fat shapes, was found again with 224 (69 of 69 parameters
    # within ±3σ); most arms come to 7 to 60.
    largest_condition: float = setting(
        1000.0, 'normalised condition number above which a design is not run', minimum=1.0
    )
    seed: int = setting(0, 'seed of everything random', minimum=0)
    validation: ValidationSettings = setting(ValidationSettings, 'the validation trajectory')
    rate: float = setting(50.0, 'points per second that are sent', unit='Hz', minimum=1.0)
    approach_speed: float = setting(
        0.2, 'fraction of the velocity limits for approach moves', minimum=0.01, maximum=1.0
    )


Settings = TypeVar('Settings', bound=ExcitationSettings)


def payload_settings(settings: Settings) -> Settings:
    """Return the settings of a motion for a payload, where one is asked for; none validates."""
    if not settings.payload.mass:
        return settings
    return replace(
        settings,
        period=settings.payload.duration / PAYLOAD_PERIODS,
        periods=PAYLOAD_PERIODS,
        criterion='d_optimal',
        validation=replace(settings.validation, kind='none'),
    )
