"""Signals that an identification can use: uniform, filtered, differentiated."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ...settings import setting
from ..arrays import Array, freeze_fields
from ..findings import Finding

STANDSTILL = 0.02  # a joint moves from this speed on [rad/s or m/s]


@dataclasses.dataclass(frozen=True)
class SignalSettings:
    """How a recording becomes samples; zero means: chosen from the data."""

    cutoff: float = setting(
        0.0,
        'cut-off of the zero-phase Butterworth filter of the positions; 0: from the motion',
        unit='Hz',
        minimum=0.0,
    )
    band: float = setting(
        0.0,
        'W and torques are low-passed there before one row in so many is kept; 0: the cut-off, or '
        'chosen with it',
        unit='Hz',
        minimum=0.0,
    )
    order: int = setting(4, 'order of the Butterworth filter', minimum=1, maximum=10)
    decimation: int = setting(
        0,
        'keep one sample in so many, after low-pass filtering W and Y; 0: from the band',
        minimum=0,
    )
    rate: float = setting(
        0.0, "rate of the uniform samples; 0: the recording's own", unit='Hz', minimum=0.0
    )
    rows: str = setting(
        'auto',
        'moving: leave out rows at standstill, in the transients at the ends, and beside both; '
        'all: every measured row, at standstill too where friction is smooth; '
        'every: every measured row, also where friction has a step; '
        'auto: every with identification.model mixed, else all for joints with stiction, '
        'stribeck, makkar or smooth_coulomb friction, moving for others',
        choices=('auto', 'moving', 'all', 'every'),
    )
    max_gap: float = setting(
        0.05,
        'longest gap between samples that is bridged; longer ones are left out',
        unit='s',
        minimum=0.0,
    )
    standstill: float = setting(
        STANDSTILL,
        'rows of a joint slower than this are at standstill: their friction has no sign',
        unit='rad/s',
        minimum=0.0,
    )
    guard: float = setting(
        2.0,
        'rows this near to standstill, in rows that are kept, are left out with it: the filters '
        'of the decimation mix them',
        minimum=0.0,
        maximum=10.0,
    )
    averaging: bool = setting(
        False,
        'average the periods of a periodic excitation before anything else',
        former={'analytic': {False: False}},
    )
    stamps: str = setting(
        'auto',
        'times of the samples; recorded: their stamps; '
        'auto: what jitters in the stamps but not in the positions is taken out of them',
        choices=('auto', 'recorded'),
    )
    time_offset: bool = setting(True, 'estimate and remove the delay between position and effort')


@dataclasses.dataclass(frozen=True)
class Samples:
    """Uniform samples but for gaps, joint side, SI, at full rate; W and Y decimate together."""

    joints: tuple[str, ...]
    time: Array  # (N,) [s]
    q: Array  # (N, n) filtered position, then its derivatives
    dq: Array
    ddq: Array
    tau: Array  # (N, n) torque or force, unfiltered
    rate: float  # [Hz]
    valid: npt.NDArray[np.bool_]  # (N, n) may be used: not at standstill, at edges and in gaps
    noise: Array | None = None  # (n,) σ of the torque noise from period averaging
    decimation: int = 1  # keep one row in so many when W and Y are stacked
    notes: tuple[Finding, ...] = ()  # what was repaired or looks wrong
    cutoff: float = 0.0  # of the filter of the positions [Hz]
    # (N,) False where a sample was made up to bridge a gap; None: all were measured
    measured: npt.NDArray[np.bool_] | None = None
    hidden: Array | None = None  # (n,) speeds that steps of a coarse position hide [rad/s or m/s]

    @property
    def moving(self) -> npt.NDArray[np.bool_]:
        """Rows (N, n) that may be used and where the joint moves."""
        return self.valid & (np.abs(self.dq) >= STANDSTILL)

    def __post_init__(self) -> None:
        freeze_fields(self, 'time', 'q', 'dq', 'ddq', 'tau', 'noise', 'hidden')
        if self.valid.flags.writeable:
            object.__setattr__(self, 'valid', self.valid.copy())
            self.valid.flags.writeable = False
