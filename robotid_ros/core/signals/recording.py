"""A recording of a robot with what is known about the run, and the samples that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from functools import cached_property
from typing import Any, TYPE_CHECKING

import numpy as np

from ...exceptions import RecordingError, UnknownNameError
from ...settings import setting
from ..arrays import Array, Mask, ReadOnlyArrays
from ..findings import Finding

if TYPE_CHECKING:
    from ..excitation.trajectory import Trajectory

STANDSTILL = 0.02  # a joint moves from this speed on [rad/s or m/s]
MEASURED = ('position', 'velocity', 'effort')
MAX_SAMPLES = 600_000  # more are read in chunks, so that they fit into memory
# Weight of a kilogram [N], of a pound at an inch [N·m]; what turns efforts in a unit into N·m.
KILOGRAM, POUND_INCH = 9.80665, 0.45359237 * 9.80665 * 0.0254
EFFORT_UNITS = {
    'mN·m': 1e-3, 'N·cm': 1e-2, 'kN·m': 1e3, 'kgf·m': KILOGRAM, 'kgf·cm': 1e-2 * KILOGRAM,
    'lbf·ft': 12.0 * POUND_INCH, 'lbf·in': POUND_INCH, 'ozf·in': POUND_INCH / 16.0,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Phase:
    """A named part of a session, `start <= t < stop` on the recording's clock [s]."""

    name: str
    start: float
    stop: float
    cut: bool = False  # session or recording ended inside it
    missing: float = 0.0  # how much of the planned motion is not there [s]; 0 also without a plan
    # Mean, lowest and highest share of the planned speed, by the controller's speed scaling.
    speed: tuple[float, float, float] = (1.0, 1.0, 1.0)
    rests: float = 0.0  # how long the robot stood between periods of the motion [s]

    @property
    def steady(self) -> bool:
        """Whether the speed did not change."""
        return self.speed[1] == self.speed[2]


@dataclasses.dataclass(frozen=True)
class Reference(ReadOnlyArrays):
    """What the controller was asked to do and what it commanded."""

    time: Array  # (K,) stamps on the recording's clock [s]
    q: Array  # (K, n) desired position, as its derivatives
    dq: Array
    ddq: Array
    command: Array | None = None  # (K, n) output, in the unit of the command interface

    def columns(self, index: list[int]) -> Reference:
        """Return the reference of the joints of these columns, in this order."""
        return self._at(self.time, np.s_[:, index])

    def between(self, start: float, stop: float) -> Reference:
        """Return the reference at `start <= t < stop` [s]."""
        rows = (self.time >= start) & (self.time < stop)
        return self._at(self.time[rows], rows)

    def _at(self, time: Array, key: Any) -> Reference:
        command = None if self.command is None else self.command[key]
        return Reference(time, self.q[key], self.dq[key], self.ddq[key], command)


@dataclasses.dataclass(frozen=True)
class Controller:
    """The controller that ran during the recording."""

    name: str  # for example 'arm_controller'
    type: str  # plug-in name, for example 'joint_trajectory_controller/JointTrajectoryController'
    rate: float  # of its updates [Hz]
    joints: tuple[str, ...]  # in the controller's own order
    command_interfaces: tuple[str, ...]  # for example ('effort',)
    # Per joint, 'p', 'i', 'd', 'ff_velocity_scale', limits of the integral and the output.
    gains: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    def pid_gains(self, joints: Sequence[str]) -> Array:
        """Return p, i and d (3, n) of joints, 0 where one has none."""
        rows = [self.gains.get(joint, {}) for joint in joints]
        return np.array([[float(row.get(name, 0.0)) for row in rows] for name in 'pid'])


@dataclasses.dataclass(frozen=True)
class RunContext:
    """What is known about a run besides its samples."""

    joints: tuple[str, ...]  # names, in the order of the columns
    _: dataclasses.KW_ONLY
    source: str = ''  # where it comes from, for messages
    controller: Controller | None = None
    phases: tuple[Phase, ...] = ()
    urdf: str | None = None
    trajectories: Mapping[str, Trajectory] = dataclasses.field(default_factory=dict)
    configuration: Mapping[str, Any] | None = None
    origin: int = 0  # the robot's clock at time 0 [ns]
    notes: tuple[Finding, ...] = ()  # what was repaired when it was read
    # Lowest and highest position of joints that have no effort beside the others'.
    left_out: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    @property
    def context(self) -> dict[str, Any]:
        """All of this by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(RunContext)}


@dataclasses.dataclass(frozen=True)
class Recording(RunContext, ReadOnlyArrays):
    """
    Measured joint states as published, with all that is known about the run.

    Attributes
    ----------
    time : (N,) stamps [s], any origin; may jitter, repeat or have gaps
    position : (N, n) [rad or m]
    velocity : (N, n) [rad/s or m/s], or None when it was not measured
    effort : (N, n) as published: torque, force or, with a drive gain, current
    reference : what the controller followed, when it was recorded

    """

    time: Array
    position: Array
    effort: Array
    velocity: Array | None = None
    reference: Reference | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = (self.time.size, len(self.joints))
        for name in MEASURED:
            value = getattr(self, name)
            if value is not None and value.shape != shape:
                raise RecordingError(
                    f'{self.source or "the recording"} has {name} of shape {value.shape}, '
                    f'not {shape}: record every joint at every stamp'
                )

    def __repr__(self) -> str:
        phases = ', '.join(dict.fromkeys(phase.name for phase in self.phases))
        return (
            f'<{self.source or "recording"}: {", ".join(self.joints)} for {self.duration:.4g} s '
            f'at {self.rate:.4g} Hz{phases and ": " + phases}>'
        )

    @cached_property
    def passed(self) -> set[Any]:
        """Long checks that this recording has passed: its samples never change."""
        return set()

    @cached_property
    def resampled(self) -> dict[Any, Any]:
        """Uniform samples by settings: a choice of filters asks for the same many times."""
        return {}

    @property
    def size(self) -> int:
        """Number of samples."""
        return int(self.time.size)

    @property
    def finite(self) -> Mask:
        """Which samples (N,) have a time, positions and efforts."""
        states = np.isfinite(self.effort).all(axis=1) & np.isfinite(self.position).all(axis=1)
        return np.asarray(states & np.isfinite(self.time))

    @property
    def rate(self) -> float:
        """Usual number of samples per second [Hz]."""
        steps = np.diff(self.time)
        steps = steps[steps > 0.0]
        return 1.0 / float(np.median(steps)) if steps.size else 0.0

    @property
    def time_range(self) -> tuple[float, float]:
        """Earliest and latest time [s]."""
        return float(self.time.min()), float(self.time.max())

    @property
    def position_range(self) -> Array:
        """Lowest and highest position of each joint, (2, n) [rad or m]."""
        return range_of_positions(self.position)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.time[-1] - self.time[0]) if self.time.size else 0.0

    def select(self, joints: tuple[str, ...]) -> Recording:
        """Return the recording of these joints, in this order, or raise an UnknownNameError."""
        if joints == self.joints:
            return self
        UnknownNameError.check('joint of the recording', joints, self.joints)
        index = [self.joints.index(joint) for joint in joints]
        return dataclasses.replace(
            self,
            joints=joints,
            reference=None if self.reference is None else self.reference.columns(index),
            **self._at(np.s_[:, index]),
        )

    def between(self, start: float, stop: float) -> Recording:
        """Return the samples with `start <= t < stop` [s, the recording's clock]."""
        rows = (self.time >= start) & (self.time < stop)
        phases = tuple(p for p in self.phases if p.stop > start and p.start < stop)
        return dataclasses.replace(
            self,
            time=self.time[rows],
            reference=None if self.reference is None else self.reference.between(start, stop),
            phases=phases,
            **self._at(rows),
        )

    def _at(self, key: Any) -> dict[str, Any]:
        """Return what was measured, of the rows or columns of a key."""
        values = {name: getattr(self, name) for name in MEASURED}
        return {name: None if x is None else x[key] for name, x in values.items()}

    def phase(self, name: str) -> Recording:
        """Return the samples of a phase; UnknownNameError where there is none of the name."""
        phase = find_phase(self.phases, name)
        return self.between(phase.start, phase.stop)


def find_phase(phases: tuple[Phase, ...], name: str) -> Phase:
    """Find the first phase of a name; UnknownNameError where there is none."""
    if found := next((phase for phase in phases if phase.name == name), None):
        return found
    raise UnknownNameError('phase', name, tuple(phase.name for phase in phases))


def range_of_positions(position: Array) -> Array:
    """Return the lowest and the highest of positions (N, n) that are numbers, (2, n)."""
    columns = np.ascontiguousarray(position.T)  # a sixth of the time that rows take
    known = np.isfinite(columns)
    lowest = np.where(known, columns, np.inf).min(axis=1, initial=np.inf)
    return np.stack([lowest, np.where(known, columns, -np.inf).max(axis=1, initial=-np.inf)])


@dataclasses.dataclass(frozen=True)
class SignalSettings:
    """How a recording becomes samples; zero means: chosen from the data."""

    cutoff: float = setting(
        0.0, 'cut-off of the filter of positions; 0: chosen by cross-validation with model '
        'mixed, else from the motion', unit='Hz', minimum=0.0,
    )  # fmt: skip
    band: float = setting(
        0.0, 'low-pass of W and torques before decimation; 0: the cut-off, or chosen with it',
        unit='Hz', minimum=0.0,
    )  # fmt: skip
    order: int = setting(4, 'order of that filter, a Butterworth', minimum=1, maximum=10)
    decimation: int = setting(0, 'decimation factor of W and Y; 0: from the band', minimum=0)
    rate: float = setting(
        0.0, "rate of the uniform samples; 0: the recording's own", unit='Hz', minimum=0.0
    )
    rows: str = setting(
        'auto', 'moving: leave out rows at standstill, in the transients at the ends, and beside '
        'both; smooth: every measured row, at standstill only where friction is smooth; every: '
        'every measured row, also where friction has a step; auto: every with model mixed, or '
        'moving if that predicts better; else smooth but for the ends for joints whose friction '
        'has shape constants, moving for others', choices=('auto', 'moving', 'smooth', 'every'),
        former={'rows': {'all': 'smooth'}},
    )  # fmt: skip
    max_gap: float = setting(
        0.05, 'longest gap that is bridged; longer ones are left out', unit='s', minimum=0.0
    )
    standstill: float = setting(
        STANDSTILL, 'speed below which a joint stands still', unit='rad/s', minimum=0.0
    )
    guard: float = setting(
        2.0, 'also drop this many decimated rows beside a standstill: the filters mix them',
        minimum=0.0, maximum=10.0,
    )  # fmt: skip
    averaging: bool = setting(
        False, 'average periods of the excitation first', former={'analytic': {False: False}}
    )
    stamps: str = setting(
        'auto', 'times of the samples; recorded: their stamps; auto: stamp jitter that positions '
        'do not show is removed', choices=('auto', 'recorded'),
    )  # fmt: skip
    time_offset: bool = setting(True, 'estimate and remove the delay between position and effort')


@dataclasses.dataclass(frozen=True)
class Samples(ReadOnlyArrays):
    """Uniform samples but for gaps, joint side, SI, at full rate; W and Y decimate together."""

    joints: tuple[str, ...]
    time: Array  # (N,) [s]
    q: Array  # (N, n) filtered position, then its derivatives
    dq: Array
    ddq: Array
    tau: Array  # (N, n) torque or force, unfiltered
    rate: float  # [Hz]
    valid: Mask  # (N, n) may be used: not at standstill, at edges and in gaps
    noise: Array | None = None  # (n,) σ of the torque noise from period averaging
    decimation: int = 1  # keep one row in so many when W and Y are stacked
    notes: tuple[Finding, ...] = ()  # what was repaired or looks wrong
    cutoff: float = 0.0  # of the filter of the positions [Hz]
    # (N,) False where a sample was made up to bridge a gap; None: all were measured
    measured: Mask | None = None
    hidden: Array | None = None  # (n,) speeds that steps of a coarse position hide [rad/s or m/s]
    band_limit: float = np.inf  # above which the positions' filter leaves nothing [Hz]

    @property
    def moving(self) -> Mask:
        """Rows (N, n) that may be used and where the joint moves."""
        return self.valid & (np.abs(self.dq) >= STANDSTILL)

    def thinned(self, keep: int, tau: Array) -> Samples:
        """Return one sample in `keep`, with torques of these that passed a filter."""
        names = ('time', 'q', 'dq', 'ddq', 'valid')
        motion = {name: getattr(self, name)[::keep] for name in names}
        rate = self.rate / keep
        return dataclasses.replace(self, **motion, tau=tau, rate=rate, decimation=1, measured=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.valid.flags.writeable:
            object.__setattr__(self, 'valid', self.valid.copy())
            self.valid.flags.writeable = False
