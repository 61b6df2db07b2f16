"""Friction and springs of a joint: terms linear in parameters, with shape constants."""

from collections.abc import Callable, Mapping
import dataclasses
from functools import partial
from typing import Any

import numpy as np

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array

# Of the columns that a mixed model shrinks: speeds over which friction fades or changes its sign,
# as shares of the joint's fast ones, and ways of presliding [rad or m].
SPEED_SHARES, SLIP_DISTANCES = (0.02, 0.06, 0.2), (0.001, 0.003, 0.01)


def coulomb(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return sign(dq)."""
    return (np.sign(dq),)


def stiction(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Stiction and Stribeck effect, 2/π·atan(K_v·dq) and 2/π·atan(δ·dq) (STICTION eq. 7-9)."""
    steepness = constants['stiction_steepness'], constants['stribeck_slope']
    return tuple(2.0 / np.pi * np.arctan(k * dq) for k in steepness)


def stribeck(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return static friction above Coulomb's, exp(−(dq/vs)²)·sign(dq) (Armstrong et al. 1994)."""
    return (np.exp(-((dq / constants['stribeck_velocity']) ** 2)) * np.sign(dq),)


def makkar(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Stribeck bump tanh(γ2·dq) − tanh(γ3·dq) and Coulomb tanh(γ5·dq) (Makkar et al. 2005)."""
    two, three, five = (np.tanh(constants[f'makkar_gamma{k}'] * dq) for k in (2, 3, 5))
    return two - three, five


def ripple(order: str, q: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Torque that comes back with the position, Rc cos(k q) + Rs sin(k q): cogging, gear teeth."""
    return np.cos(constants[order] * q), np.sin(constants[order] * q)


def maxwell_slip(q: Array, dq: Array, distance: float) -> Array:
    """
    Return the force of a Maxwell-slip element along a path (Al-Bender, Lampaert and Swevers 2005).

    A spring that slips where its deflection z reaches the presliding distance Δ: z/Δ, with
    dz = dq while |z| < Δ (the stop operator). Of each stretch between two turning points only
    the ends of the stretches before matter.
    """
    turns = np.flatnonzero(np.diff(np.sign(np.diff(q)))) + 1
    ends = np.concatenate([[0], turns])
    z = float(np.sign(dq[0])) * distance
    states = [z]
    for step in np.diff(q[ends]).tolist():
        z = min(max(z + step, -distance), distance)
        states.append(z)
    stretch = np.searchsorted(turns, np.arange(len(q)), side='right')
    start = np.array(states) - q[ends]
    return np.clip(start[stretch] + q, -distance, distance) / distance


def low_speed_columns(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return sign(v) exp(−|v|/f) of v = dq/v95: friction that fades with the speed (Stribeck)."""
    v = dq / constants['speed_scale']
    return tuple(np.sign(v) * np.exp(-np.abs(v) / f) for f in SPEED_SHARES)


def rounded_sign_columns(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return tanh(v/f) − sign(v): Coulomb friction that changes its sign over some speed."""
    v = dq / constants['speed_scale']
    return tuple(np.tanh(v / f) - np.sign(v) for f in SPEED_SHARES)


def direction_column(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return |v| up to one: viscous friction that is more in one direction, and its offset."""
    return (np.minimum(np.abs(dq / constants['speed_scale']), 1.0),)


def maxwell_columns(q: Array, dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return z/Δ − sign(dq) of Maxwell-slip elements: Coulomb friction that sets in over a way."""
    return tuple(maxwell_slip(q, dq, d) - np.sign(dq) for d in SLIP_DISTANCES)


def load_columns(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return sign(v) and v, which stops growing where the fit has seen no higher speed."""
    v = dq / constants['speed_scale']
    return np.sign(v), np.clip(v, -1.0, 1.0)


def position_column(q: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return q − mean within the range that the fit has seen, and its limit outside."""
    inside = np.clip(q, constants['position_low'], constants['position_high'])
    return (inside - constants['position_mean'],)


Columns = Callable[[Array, Mapping[str, float]], tuple[Array, ...]]
PathColumns = Callable[[Array, Array, Mapping[str, float]], tuple[Array, ...]]

# Units of a force-like and of a viscous parameter: {f} is N·m or N, {l} is rad or m.
FORCE, VISCOUS, ROOT = '{f}', '{f}·s/{l}', '{f}·(s/{l})^⅓'
STIFFNESS = '{f}/{l}'
# Plain friction, F_v dq + F_c sign(dq) + offset: of joints that the configuration leaves open.
PLAIN = ('viscous', 'coulomb', 'offset')
UNKNOWN = 0.0  # default of a shape constant of which no two robots share one: to be given


SYMMETRIC = (1.0,), (0.0,)  # dry friction of one parameter, the same both ways


@dataclasses.dataclass(frozen=True)
class TermKind:
    """
    A kind of joint torque: its parameters, the default shape constants, and its columns.

    `columns` is a function of dq (N,), or of q, and the constants, of one (N,) column a parameter;
    `of_path` is one of q, dq (N,) of successive samples and the constants, of a friction that
    remembers its path: `columns` are what it is where no path is known.
    """

    symbols: tuple[str, ...]  # of the parameters
    unit: str  # of each, with {f} for N·m or N and {l} for rad or m
    columns: Columns
    positive: tuple[str, ...]  # symbols that physics wants at least zero
    described: str = ''  # attribute of a URDF's `<dynamics>` that is the prior of these
    # Shape constants and their defaults [s/rad, rad/s for velocities, 1/rad for orders].
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    load_dependent: bool = False  # columns grow with the torque |τ| that the joint transmits
    of_position: bool = False  # columns are functions of q instead of dq
    of_path: PathColumns | None = None
    # Natural amplitude of columns that a mixed model shrinks; of a spring half its range.
    amplitude: float = 0.0
    jumps: bool = False  # by a step where the joint turns round
    # Share of each parameter in the friction that holds a joint at rest, and in a constant torque.
    dry: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    # A torque of position, no friction: exporters write it as a spring, or say that they cannot.
    spring: bool = False


def term(
    symbols: str, unit: str, columns: Columns, positive: str | None = None, **others: Any
) -> TermKind:
    """Return the kind with the parameters of these symbols, all of them positive by default."""
    own = symbols if positive is None else positive
    return TermKind(tuple(symbols.split()), unit, columns, tuple(own.split()), **others)


def _ripple(symbols: str, order: str) -> TermKind:
    columns, constants = partial(ripple, order), {order: UNKNOWN}
    return term(symbols, FORCE, columns, '', constants=constants, of_position=True)


# Constant of columns that a mixed model shrinks.
_OF_SPEED = {'speed_scale': UNKNOWN}
# Columns of the mixed model beside plain friction: see `core.mixed`.
_shrunk = partial(term, unit=FORCE, positive='', amplitude=1.0)
FRICTION_TERMS: Mapping[str, TermKind] = {
    'viscous': term('Fv', VISCOUS, lambda dq, _: (dq,), described='damping'),
    'coulomb': term('Fc', FORCE, coulomb, described='friction', jumps=True, dry=SYMMETRIC),
    'offset': term('off', FORCE, lambda dq, _: (np.ones_like(dq),), positive=''),
    'asymmetric_coulomb': term(
        'Fcp Fcm', FORCE, lambda dq, _: ((dq > 0).astype(float), -(dq < 0).astype(float)),
        described='friction', jumps=True, dry=((0.5, 0.5), (0.5, -0.5)),
    ),
    'asymmetric_viscous': term(
        'Fvp Fvm', VISCOUS, lambda dq, _: (np.maximum(dq, 0.0), np.minimum(dq, 0.0)),
        described='damping',
    ),
    'stiction': term(
        'Fs Fsc', FORCE, stiction, 'Fs', described='friction',
        constants={'stiction_steepness': 1000.0, 'stribeck_slope': 20.0},
    ),
    'stribeck': term('Fst', FORCE, stribeck, constants={'stribeck_velocity': 0.1}, jumps=True),
    'smooth_coulomb': term(
        'Fc', FORCE, lambda dq, constants: (np.tanh(constants['tanh_steepness'] * dq),),
        described='friction', constants={'tanh_steepness': 100.0},
    ),
    # Where no path is known, it is Coulomb friction.
    'presliding': term(
        'Fc', FORCE, coulomb, described='friction', dry=SYMMETRIC,
        of_path=lambda q, dq, c: (maxwell_slip(q, dq, c['presliding_distance']),),
        constants={'presliding_distance': 0.01},
    ),
    # Friction of gears grows with the load: Fl |τ| sign(dq) (Hamon, Gautier and Garrec 2010).
    'load_coulomb': term('Fl', '1', coulomb, load_dependent=True, jumps=True),
    # Lubricated gears: friction grows less than linearly with the speed.
    'root_viscous': term('Fr', ROOT, lambda dq, _: (np.cbrt(dq),), positive=''),
    'makkar': term(
        'Fstr Fc', FORCE, makkar, 'Fc', described='friction',
        constants={'makkar_gamma2': 100.0, 'makkar_gamma3': 10.0, 'makkar_gamma5': 100.0},
    ),
    # A spring or counterbalance, Kq q; `offset` holds where it rests. Springs pull back: one that
    # pushes away would be gravity or geometry that the model has wrong.
    'spring': term('Kq', STIFFNESS, lambda q, _: (q,), of_position=True, spring=True),
    'low_speed': _shrunk('Dsa Dsb Dsc', columns=low_speed_columns, constants=_OF_SPEED),
    'rounded_sign': _shrunk('Dra Drb Drc', columns=rounded_sign_columns, constants=_OF_SPEED),
    'direction': _shrunk('Dva', columns=direction_column, constants=_OF_SPEED),
    'slip': _shrunk('Dpa Dpb Dpc', columns=lambda dq, _: (0.0 * dq,) * 3, of_path=maxwell_columns),
    # A load or a position is clamped where the fit has seen no more.
    'load': _shrunk(
        'Dla Dlb', columns=load_columns, load_dependent=True,
        constants=dict.fromkeys(('speed_scale', 'load_scale', 'load_low', 'load_high'), UNKNOWN),
    ),
    'position': _shrunk(
        'Dqa', columns=position_column, of_position=True, spring=True,
        constants=dict.fromkeys(('position_low', 'position_high', 'position_mean'), UNKNOWN),
    ),
    # A term for each order of ripple that a joint may have.
    'ripple': _ripple('Rc Rs', 'ripple_order'),
    'ripple_2': _ripple('R2c R2s', 'ripple_order_2'),
    'ripple_3': _ripple('R3c R3s', 'ripple_order_3'),
}  # fmt: skip
PLAIN_SYMBOLS = tuple(FRICTION_TERMS[name].symbols[0] for name in PLAIN)
# Symbols of torques that the position determines, which are no friction; of columns that a mixed
# model shrinks; of friction that can hold a joint where it is.
OF_POSITION, SHRUNK, DRY = (
    frozenset(s for kind in FRICTION_TERMS.values() if getattr(kind, name) for s in kind.symbols)
    for name in ('of_position', 'amplitude', 'dry')
)
# Symbols of what is linear in the motion, rotor inertia included: as smooth as it is.
LINEAR = frozenset({'Ia', 'Fv', 'off'})
# Symbols whose prior a description gives, and by which attribute.
DESCRIBED = {
    s: kind.described for kind in FRICTION_TERMS.values() if kind.described for s in kind.positive
}
# Shape constant from which a term jumps where a joint turns round, whatever the filter [s/rad].
STEEP = 500.0
LINK_SIDE_SUFFIX = 'l'  # of the symbol of friction that acts on the link instead of the motor
# Symbols that physics wants at least zero: rotor inertia, stiffness, friction on either side.
NONNEGATIVE = frozenset({'Ia', 'K'}) | {
    s + side
    for kind in FRICTION_TERMS.values()
    for s in kind.positive
    for side in ('', LINK_SIDE_SUFFIX)
}


@dataclasses.dataclass(frozen=True)
class FrictionTerm:
    """One term of one joint: a kind from `FRICTION_TERMS` with its shape constants."""

    name: str
    constants: Mapping[str, float]

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.constants.items())))

    @property
    def has_step(self) -> bool:
        """Whether it jumps where the joint turns round: at standstill it has no value."""
        steep, kind = max(self.constants.values(), default=0.0) > STEEP, self.kind
        return kind.jumps or (steep and not (kind.of_position or kind.of_path))

    @property
    def kind(self) -> TermKind:
        """The registry's entry."""
        return FRICTION_TERMS[self.name]

    def columns(
        self, q: Array, dq: Array, load: Array | None = None, successive: bool = False
    ) -> tuple[Array, ...]:
        """
        Return a column (N,) of the observation matrix for each of the term's parameters.

        Of position and velocity of the joint (N,), and the torque that it transmits to the links
        (N,); where the rows are `successive` samples of one motion, its path is known.
        """
        if successive and self.kind.of_path is not None:
            return self.kind.of_path(q, dq, self.constants)
        values = self.kind.columns(q if self.kind.of_position else dq, self.constants)
        if not self.kind.load_dependent:
            return values
        size = 0.0 if load is None else np.abs(load)
        if 'load_scale' in self.constants:
            limits = self.constants['load_low'], self.constants['load_high']
            size = np.clip(size, *limits) / self.constants['load_scale']
        return tuple(size * value for value in values)


def make_terms(names: tuple[str, ...], constants: Mapping[str, float]) -> tuple[FrictionTerm, ...]:
    """Look terms up and give each its constants, or raise UnknownNameError, ConfigurationError."""
    UnknownNameError.check('friction term', names, FRICTION_TERMS)
    symbols = [symbol for name in names for symbol in FRICTION_TERMS[name].symbols]
    if repeated := {symbol for symbol in symbols if symbols.count(symbol) > 1}:
        raise ConfigurationError(
            f'friction terms {", ".join(names)} share the parameter '
            f'{", ".join(sorted(repeated))}: keep one of them'
        )
    terms = tuple(
        FrictionTerm(
            name, {k: constants.get(k, v) for k, v in FRICTION_TERMS[name].constants.items()}
        )
        for name in names
    )
    for term in terms:
        for constant, value in term.constants.items():
            if value == UNKNOWN:
                raise ConfigurationError(
                    f"friction term '{term.name}' needs '{constant}': give it in "
                    'robot.friction_constants, or leave the joint out of robot.friction, so '
                    'that the data decide'
                )
    return terms
