"""Settings of the group `identification`: how samples become parameters, and what is watched."""

import dataclasses
from typing import ClassVar

from ..settings import setting
from .signals.recording import SignalSettings


@dataclasses.dataclass(frozen=True)
class ReplaySettings:
    """Settings of DIDIM and of the output-error methods."""

    RETIRED = ('effort_delay', 'integrator', 'transient')

    start: str = setting(
        'auto', 'first parameters: regular (every Ia is 1, or every ZZ with regular_zz, the '
        'rest 0), prior (URDF and configuration), idim (the solution from measured positions), '
        'or auto: regular for didim, idim for clie, cloe and oe, which need to start near',
        choices=('auto', 'regular', 'regular_zz', 'prior', 'idim'),
    )  # fmt: skip
    gain_update: str = setting(
        'initial', 'when the simulated gains are scaled by J/J_ap, so that ω_n and ζ stay those '
        'of the a-priori inertias: initial (at the initial parameters and shortened steps; else '
        "the robot's own gains), every_iteration (as DIDIM's eq. 59), or never",
        choices=('initial', 'every_iteration', 'never'),
    )  # fmt: skip
    iterations: int = setting(25, 'largest number of iterations', minimum=1, maximum=200)
    residual_tolerance: float = setting(
        0.02, 'converged when the torque error changes by less than this share', minimum=0.0
    )
    parameter_tolerance: float = setting(
        0.02, 'converged when no parameter changes by more than this share of it, or by its σ',
        minimum=0.0,
    )  # fmt: skip
    decimation: int = setting(
        0, 'decimation factor of W and Y, low-passed; 0: from ω_n', minimum=0
    )
    step: float = setting(0.001, 'longest integration step', unit='s', minimum=1e-6)
    law: str = setting('', "control law; empty: the recorded controller's")
    rate: float = setting(
        0.0, "update rate of the control law; 0: the recorded controller's", unit='Hz', minimum=0.0
    )
    gains: dict[str, dict[str, float]] = setting(
        dict, 'gains of the control law by joint, in place of the recorded ones'
    )


# The covariance that includes the model error.
MODEL_ERROR = 'model_error'
# Methods that fit along a simulated motion, see `core/replay`.
SIMULATED = ('didim', 'clie', 'cloe', 'oe')
METHODS = ('auto', 'ols', 'wls', 'mle', 'irls', 'tls', 'iv', *SIMULATED, 'both')


@dataclasses.dataclass(frozen=True)
class IdentificationSettings:
    """Settings of an identification."""

    RETIRED: ClassVar[tuple[str, ...]] = ('essential_ratio', 'significance')

    method: str = setting(
        'auto', 'estimator; auto: that of the mixed model, else wls; oe: open-loop position '
        'error; cloe, clie: closed-loop position, torque error; both: wls, with didim beside it',
        choices=METHODS,
    )  # fmt: skip
    model: str = setting(
        'mixed', 'mixed: viscous and Coulomb friction and an offset of each joint whose friction '
        'is open, and extra friction columns, shrunk by cross-validation; plain: nothing is '
        'chosen, friction is as configured; other methods than auto imply it',
        choices=('mixed', 'plain'), former={'selection': {True: 'mixed', False: 'plain'}},
    )  # fmt: skip
    iterations: int = setting(
        1, 'iterations of the weights (wls) or of the robust fit (irls, at least 30)', minimum=1,
        maximum=100,
    )  # fmt: skip
    essential: bool = setting(True, 'find the essential parameters too')
    essential_sigma: float = setting(
        10.0, 'a parameter is essential when its %σ is below this', unit='%', minimum=0.1
    )
    prior_spread: float = setting(
        0.2, "least assumed relative error of the URDF's inertias; larger: weaker pull",
        minimum=0.01,
    )  # fmt: skip
    prior_cost: float = setting(
        0.05, 'the pull loosens until it raises the residual by at most this share', minimum=0.001
    )
    covariance: str = setting(
        MODEL_ERROR, 'σ from correlated residuals (time blocks); model_error: plus model error; '
        'residuals: without it', choices=(MODEL_ERROR, 'residuals'),
        former={'leave_one_out': {False: MODEL_ERROR}, 'stribeck': {False: MODEL_ERROR}},
    )  # fmt: skip
    signals: SignalSettings = setting(SignalSettings, 'from recording to samples')
    replay: ReplaySettings = setting(ReplaySettings, 'simulation, for didim, clie, cloe, oe, iv')


@dataclasses.dataclass(frozen=True)
class GainProposalSettings:
    """Gains proposed from the identified inertia J: `p = J ω²`, `d = 2 ζ J ω`."""

    bandwidth: float = setting(
        0.0, 'wanted ω_n; 0: the largest with 6 dB and 45° of margin', unit='rad/s', minimum=0.0
    )
    damping: float = setting(1.0, 'wanted ζ', minimum=0.1, maximum=10.0)
    change: float = setting(
        2.0, 'largest factor by which a gain may change at once', minimum=1.0, maximum=100.0
    )
    although_not_better: bool = setting(
        False, 'try and set gains that were not better in simulation or in ~/verify_gains',
        dynamic=True,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ContactSettings:
    """External effort, wrench and contact, live from the joint states."""

    gain: tuple[float, ...] = setting(
        (40.0,), 'gain of the momentum observer, 1/time constant; one for all or per joint',
        unit='1/s', minimum=1.0, maximum=1000.0,
    )  # fmt: skip
    cutoff: float = setting(
        20.0, 'corner of the causal filter of positions and efforts', unit='Hz', minimum=1.0
    )
    false_alarms: float = setting(
        0.01, 'false contacts per hour, which sets the thresholds', unit='1/h', minimum=1e-9,
        maximum=1000.0,
    )  # fmt: skip
    frame: str = setting(
        '', 'where external_wrench acts; empty: excitation.workspace.frame, or the last body'
    )
    force: float = setting(
        100.0, 'expected size of its force, by which it is regularised', unit='N', minimum=1e-3
    )
    torque: float = setting(2.0, 'expected size of its torque, likewise', unit='N·m', minimum=1e-3)


@dataclasses.dataclass(frozen=True)
class DriftSettings:
    """How parameters are followed while the robot works, and when a change is reported."""

    RETIRED = ('significance',)

    active: bool = setting(True, 'follow friction, offsets and payload after an identification')
    memory: float = setting(
        30.0, 'time constant of the forgetting', unit='s of motion', minimum=1.0, maximum=3600.0
    )
    tolerance: float = setting(0.01, 'relative change that is ignored', minimum=0.0, maximum=1.0)
    duration: float = setting(
        6.0, 'how long a change of friction or an offset must last before motion confirms it',
        unit='s', minimum=0.5, maximum=3600.0,
    )  # fmt: skip
    payload_duration: float = setting(
        1.2, 'the same for the payload; longer than pushes, which are not reported', unit='s',
        minimum=0.5, maximum=3600.0,
    )  # fmt: skip
