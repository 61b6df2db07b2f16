"""What is chosen from: low-pass cut-offs, rows, estimators and friction terms of a joint."""

from collections.abc import Sequence
import dataclasses

from ..model.friction import FrictionTerm, make_terms, RIPPLES, TERMS, WARM_UPS

# A newcomer's choice, which is always among the candidates: 4th-order low-pass at a few hertz of
# positions and torques, all rows, viscous and Coulomb friction, an offset, ordinary least squares.
PLAIN_CUTOFF = 5.0
# Bands of W and the torques [Hz]. The positions pass twice as much and more, as in DIDIM section
# II (five times the robot's bandwidth against twice): W would lose what the torques keep.
BANDS, CUTOFF_RATIO = (PLAIN_CUTOFF, 8.0, 12.0, 20.0), 2.5
ESTIMATORS = ('ols', 'wls')

# The joint's speed over which friction changes its sign is 1/steepness: from sharper than encoders
# resolve to the range where friction of harmonic drives is not yet linear [s/rad].
SHARP, SOFT, GRADUAL, SLOW = 150.0, 50.0, 15.0, 6.0
# Speeds over which static friction gives way to Coulomb's: some hundredths to tenths of what arms
# move at [rad/s].
STRIBECK_VELOCITIES = (0.05, 0.1, 0.2)
# Ways over which friction changes its sign after a joint has turned round: hysteresis of bearings
# and harmonic drives [rad]. Longer ones are much like a spring: of 23 real logs, the two that took
# 0.03 predicted other motion worse.
PRESLIDING_DISTANCES = (0.003, 0.01)


def _smooth(steepness: float) -> FrictionTerm:
    return make_terms(('smooth_coulomb',), {'tanh_steepness': steepness})[0]


def _presliding(distance: float) -> FrictionTerm:
    return make_terms(('presliding',), {'presliding_distance': distance})[0]


def _static(velocity: float) -> FrictionTerm:
    return make_terms(('stribeck',), {'stribeck_velocity': velocity})[0]


VISCOUS, COULOMB, OFFSET, ROOT, LOAD, SPRING = make_terms(
    ('viscous', 'coulomb', 'offset', 'root_viscous', 'load_coulomb', 'spring'), {}
)
Terms = tuple[FrictionTerm, ...]
PLAIN: Terms = (VISCOUS, COULOMB, OFFSET)
# From few parameters to many.
FRICTION: tuple[Terms, ...] = (
    PLAIN,
    (VISCOUS, _smooth(SHARP), OFFSET),
    (VISCOUS, _smooth(SOFT), OFFSET),
    (VISCOUS, _smooth(GRADUAL), OFFSET),
    (VISCOUS, _smooth(SLOW), OFFSET),
    *((VISCOUS, _presliding(distance), OFFSET) for distance in PRESLIDING_DISTANCES),
    *((VISCOUS, COULOMB, _static(velocity), OFFSET) for velocity in STRIBECK_VELOCITIES),
    (VISCOUS, _smooth(SHARP), ROOT, OFFSET),
    (VISCOUS, _smooth(SOFT), ROOT, OFFSET),
)
# Those that all joints share in the first comparison: sharp, smooth at zero, and concave.
COMMON: tuple[Terms, ...] = (PLAIN, FRICTION[2], FRICTION[-3])


def ripple_terms(orders: Sequence[float]) -> Terms:
    """Return the terms of ripple of some orders."""
    names = RIPPLES[: len(orders)]
    constants = [constant for name in names for constant in TERMS[name].constants]
    return make_terms(names, dict(zip(constants, orders, strict=True)))


@dataclasses.dataclass(frozen=True)
class Candidate:
    """
    One way to identify.

    Attributes
    ----------
    cutoff : of the positions [Hz]
    band : of W and the torques [Hz]
    rows : 'all' that were measured, or those that are 'moving' and away from the ends
    estimator : 'ols' or 'wls'
    friction : terms of each joint

    """

    cutoff: float
    band: float
    rows: str
    estimator: str
    friction: tuple[Terms, ...]

    def with_terms(self, joint: int, terms: Terms) -> 'Candidate':
        """Return the candidate with other friction terms of one joint."""
        friction = (*self.friction[:joint], terms, *self.friction[joint + 1 :])
        return dataclasses.replace(self, friction=friction)

    @property
    def signals(self) -> tuple[float, float, str]:
        """Cut-off, band and rows."""
        return self.cutoff, self.band, self.rows

    @property
    def size(self) -> int:
        """Number of friction parameters."""
        return sum(len(term.kind.symbols) for terms in self.friction for term in terms)

    @property
    def constants(self) -> int:
        """Number of shape constants of the friction."""
        return sum(len(term.constants) for terms in self.friction for term in terms)

    def describe(self) -> str:
        """Say it in a few words."""
        return (
            f'{self.band:g} Hz (positions {self.cutoff:g} Hz), {self.rows} rows, '
            f'{self.estimator.upper()}'
        )


def describe_terms(terms: Terms) -> str:
    """Name friction terms with the steepness of those that are smooth at zero, and orders."""
    shapes = {
        'tanh_steepness': '{:g} s/rad',
        'stribeck_velocity': '{:g} rad/s',
        'presliding_distance': '{:g} rad',
        'reference_temperature': '{:g} °C',
    }
    shapes |= {constant: '{:.3g} rad' for name in WARM_UPS for constant in TERMS[name].constants}
    shapes |= {constant: 'order {:.5g}' for name in RIPPLES for constant in TERMS[name].constants}
    shown = []
    for term in terms:
        shape = [f' ({shapes[k].format(v)})' for k, v in term.constants.items() if k in shapes]
        shown.append(''.join([term.name, *shape]))
    return ' + '.join(shown)
