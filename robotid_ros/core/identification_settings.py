"""How samples become parameters."""

import dataclasses

from ..settings import setting
from .replay.settings import ReplaySettings
from .signals.samples import SignalSettings

# The covariance that counts what the model leaves out.
MODEL_ERROR = 'model_error'
# Methods that fit along a simulated motion, see `core/replay`.
SIMULATED = ('didim', 'clie', 'cloe', 'oe')
METHODS = ('auto', 'ols', 'wls', 'mle', 'irls', 'tls', 'iv', *SIMULATED, 'both')


@dataclasses.dataclass(frozen=True)
class IdentificationSettings:
    """Settings of an identification."""

    method: str = setting(
        'auto',
        'estimator; auto: that of the mixed model, else wls; oe, cloe, '
        'clie: output error of positions in open loop, of positions, of torques in closed loop; '
        'both: wls, with didim beside it',
        choices=METHODS,
    )
    model: str = setting(
        'mixed',
        'mixed: viscous and Coulomb friction and an offset of each joint whose friction is open, '
        'and columns of what these leave out, which are shrunk as far as folds of the motion ask '
        'for; plain: nothing is chosen, friction is as configured; other methods than auto imply '
        'it',
        choices=('mixed', 'plain'),
        former={'selection': {True: 'mixed', False: 'plain'}},
    )
    iterations: int = setting(
        1, 'of the weights (wls) or of the robust fit (irls)', minimum=1, maximum=100
    )
    essential: bool = setting(True, 'find the essential parameters too')
    essential_sigma: float = setting(
        10.0, 'a parameter is essential when its %σ is below this', unit='%', minimum=0.1
    )
    essential_ratio: float = setting(
        0.0, 'n_σ: or when no %σ exceeds so many times the smallest; 0: not asked', minimum=0.0
    )
    significance: float = setting(
        0.05, 'of the F-test that keeps a parameter', minimum=0.0, maximum=1.0
    )
    prior_spread: float = setting(
        0.2,
        "how far the URDF's inertias may be off, at least; more pulls standard parameters less",
        minimum=0.01,
    )
    prior_cost: float = setting(
        0.05,
        "the pull loosens until it costs no more than this share of the base parameters' residual",
        minimum=0.001,
    )
    covariance: str = setting(
        MODEL_ERROR,
        'σ from residuals as they correlate, by blocks of time; model_error: and from what the '
        'model leaves out; residuals: from these alone',
        choices=(MODEL_ERROR, 'residuals'),
        former={'leave_one_out': {False: MODEL_ERROR}, 'stribeck': {False: MODEL_ERROR}},
    )
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
        False,
        'try and set gains that a simulation, or ~/verify_gains, has found not better',
        dynamic=True,
    )
