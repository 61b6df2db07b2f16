"""What is known of a robot before it is identified, as values."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from functools import cached_property
import re
from typing import Any, NamedTuple

import numpy as np

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array, Indices, Mask, ReadOnlyArrays
from ..findings import Finding
from .friction import FrictionTerm, make_terms

INERTIAL = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'MX', 'MY', 'MZ', 'M')
INERTIAL_UNITS = ('kg·m²',) * 6 + ('kg·m',) * 3 + ('kg',)
INERTIAL_SYMBOLS = tuple(zip(INERTIAL, INERTIAL_UNITS, strict=True))
# Pinocchio: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz, at the joint frame like ours.
PINOCCHIO_ORDER = np.array([4, 5, 7, 6, 8, 9, 1, 2, 3, 0])
PINOCCHIO_ORDER.flags.writeable = False
# Friction of a motor that drives several joints, and the spring of an elastic one.
COUPLED_FRICTION, SPRING = make_terms(('viscous', 'coulomb'), {}), make_terms(('spring',), {})


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One standard parameter of a robot."""

    name: str  # symbol and number, 'ZZ1'; couplings carry the numbers of their joints, 'Ia56'
    symbol: str  # 'ZZ'
    unit: str  # SI, joint side
    joint: str  # name of the joint, or of the coupling, that it belongs to


@dataclasses.dataclass(frozen=True)
class BaseParameters(ReadOnlyArrays):
    """The minimal set of parameters that the dynamics depend on: χ_b = χ_L + B χ_K."""

    names: tuple[str, ...]  # 'R' marks a regrouped one, 'ZZ1R'
    units: tuple[str, ...]
    combinations: tuple[str, ...]  # as text, 'ZZ1R = ZZ1 + Ia1 + 0.25·M2'
    matrix: Array  # (b, p) of each as a combination of the standard ones, χ_b = matrix χ
    columns: Indices  # (b,) of the regressor that are kept, W_b = W[:, columns]
    classes: tuple[str, ...]  # of standard ones: unidentifiable, identifiable, in combination

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.names)

    def of(self, standard: Array) -> Array:
        """Return the base parameters (b,) of standard ones (p,)."""
        return np.asarray(self.matrix @ standard)


def unit_label(unit: str, effort: str) -> str:
    """Return a unit where efforts are in `effort`, '?': unknown, '': N·m or N; kg·m² is N·m·s²."""
    if not effort:
        return unit
    symbol = 'effort' if effort == '?' else effort
    if mechanical := {'kg·m²': 's²', 'kg·m': 's²/m', 'kg': 's²/m²'}.get(unit):
        return f'{symbol}·{mechanical}'
    return re.sub('^(N·m|N)(?=[·/]|$)', lambda _: symbol, unit)


def from_pinocchio(dynamic: Array) -> Array:
    """Reorder Pinocchio's ten parameters `(..., 10)` into `XX XY XZ YY YZ ZZ MX MY MZ M`."""
    return np.asarray(dynamic)[..., PINOCCHIO_ORDER]


def to_pinocchio(inertial: Array) -> Array:
    """Reorder `XX XY XZ YY YZ ZZ MX MY MZ M` `(..., 10)` into Pinocchio's dynamic parameters."""
    dynamic = np.empty_like(np.asarray(inertial, dtype=float))
    dynamic[..., PINOCCHIO_ORDER] = inertial
    return dynamic


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of the joints, (n,) each, inf where unlimited [rad or m, s, N·m or N]."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array

    def filled(self, name: str, usual: Array) -> tuple[Array, Mask]:
        """Return limits (n,) by their name, the usual ones where there are none, and where."""
        limit = np.asarray(getattr(self, name))
        lacking = ~(np.isfinite(limit) & (limit > 0.0))
        return np.where(lacking, usual, limit), lacking


@dataclasses.dataclass(frozen=True)
class Coupling:
    """
    A motor that turns with `ratios · dq`, and has inertia and friction of its own.

    Its torque Ia·(r·ddq) + Fv·(r·dq) + Fc·sign(r·dq) acts on the joints through r
    (STD eq. 34-35: τ_c = Nᵀ τ_r).
    """

    name: str  # the configuration's
    number: str  # the numbers of its joints, '56'; suffix of its parameters
    ratios: Array  # (n,)


@dataclasses.dataclass(frozen=True)
class Follower:
    """A joint that moves with another one: q = ratio · q[leader] + offset."""

    name: str
    leader: str
    ratio: float
    offset: float


class Transmission(NamedTuple):
    """What turns or brakes joints with torques rᵀ f, f of its own motion r q, r dq and r ddq."""

    ratios: Array  # (n,) r, its speed per joint speed
    joints: Indices  # numbers of the joints that it turns
    inertia: int | None  # column of its rotor inertia
    terms: tuple[tuple[int, FrictionTerm], ...]  # each with the column of its first parameter

    @property
    def columns(self) -> list[int]:
        """Columns of all its parameters."""
        rotor = [] if self.inertia is None else [self.inertia]
        return rotor + [k + i for k, term in self.terms for i in range(len(term.kind.symbols))]

    @property
    def dry(self) -> bool:
        """Whether friction can hold it."""
        return any(term.kind.dry for _, term in self.terms)

    def turn(self, x: Array) -> Array:
        """Return its q, dq or ddq (N,), of those of the joints (N, n)."""
        if len(self.joints) == 1:  # a product of matrices would copy all joints
            return np.asarray(x[:, self.joints[0]] * self.ratios[self.joints[0]])
        return np.asarray(x[:, self.joints] @ self.ratios[self.joints])


def _drive(
    ratios: Array, column: int, rotor: bool, friction: tuple[FrictionTerm, ...]
) -> Transmission:
    sizes = [len(term.kind.symbols) for term in friction]
    columns = (column + rotor + sum(sizes[:k]) for k in range(len(friction)))
    terms = tuple(zip(columns, friction, strict=True))
    return Transmission(ratios, np.flatnonzero(ratios), column if rotor else None, terms)


@dataclasses.dataclass(frozen=True)
class Robot:
    """What is known of a robot before it is identified; arrays follow its n `joints`."""

    name: str  # for reports
    urdf: str  # the description, as given
    joints: tuple[str, ...]  # that are identified
    model: Any  # Pinocchio's, nq = nv, in its own order of joints
    # (n + m,) to the model's order, q_model = q[:, order]: places in `joints`, then `followers`.
    order: Indices
    limits: Limits
    friction: tuple[tuple[FrictionTerm, ...], ...]  # terms of each joint
    couplings: tuple[Coupling, ...]  # motors that drive several joints
    parameters: tuple[Parameter, ...]  # the p standard ones
    prior: Array  # (p,) their values from the URDF and the configuration
    drive_gain: Array  # (n,) torque per unit of published effort
    prismatic: Mask  # (n,)
    damping: Array  # (n,) of the URDF, as dry_friction
    dry_friction: Array
    open_friction: tuple[bool, ...]  # whether the data may choose a joint's terms
    effort_kind: str  # 'joint_torque', 'without_gravity', or 'auto': the data may tell
    rotor_inertia: bool = True  # whether every joint has an Ia
    warnings: tuple[Finding, ...] = ()  # what was changed in the description, and why
    elastic: ElasticRobot | None = None  # the same robot with springs, if joints have any
    # m joints that mimic identified ones; their links' parameters come after all joints'.
    followers: tuple[Follower, ...] = ()
    # Where the other joints stand in the model [rad or m].
    locked: Mapping[str, float] = dataclasses.field(default_factory=dict)
    # (p,) whose links load the joints, for friction that grows with the load; None: the prior.
    load_parameters: Array | None = None
    assumed_inertials: bool = False  # the description has none: the prior says nothing of links
    drive_gain_given: bool = False  # by the configuration
    gain_spread: Array | None = None  # (n,) relative standard deviation of drive_gain; None: 0

    def __repr__(self) -> str:
        return f'<{self.name}: {", ".join(self.joints)}; {self.p} standard parameters>'

    @property
    def load_dependent(self) -> bool:
        """Whether friction of a joint grows with its load."""
        return any(term.kind.load_dependent for terms in self.friction for term in terms)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the joints with a link: followers too, motors of elastic joints not."""
        names = tuple(follower.name for follower in self.followers)
        return (*self.joints[: len(self.first_columns) - len(names)], *names)

    @property
    def recorded_joints(self) -> tuple[str, ...]:
        """Names that a recording must hold: the joints, and the motors of elastic ones."""
        return self.joints if self.elastic is None else self.elastic.joints

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @property
    def p(self) -> int:
        """Number of standard parameters."""
        return len(self.parameters)

    @property
    def mimic_jacobian(self) -> Array:
        """G (n + m, n): how fast the joints and their followers move, dq_links = G dq."""
        rows = np.zeros((len(self.followers), self.n))
        for row, follower in zip(rows, self.followers, strict=True):
            row[self.joints.index(follower.leader)] = follower.ratio
        return np.vstack([np.eye(self.n), rows])

    def link_positions(self, q: Array) -> Array:
        """Return the positions (N, n + m) of the joints and of their followers."""
        offset = np.array([follower.offset for follower in self.followers])
        return q @ self.mimic_jacobian.T + np.concatenate([np.zeros(self.n), offset])

    def random_positions(self, count: int) -> Array:
        """Draw positions (count, n) within the limits, half a turn from 0 at most."""
        low, high = (np.clip(x, -np.pi, np.pi) for x in (self.limits.lower, self.limits.upper))
        return np.random.default_rng(0).uniform(low, high, (count, self.n))

    def check_no_mimic_joints(self, what: str) -> None:
        """Raise a `ConfigurationError` where joints that mimic identified ones do not go."""
        if self.followers:
            names = ', '.join(follower.name for follower in self.followers)
            raise ConfigurationError(
                f'{what} is not possible with joints that mimic identified joints ({names}): '
                'make them fixed in a copy of the URDF, or name the joints that they follow in '
                'robot.locked'
            )

    @property
    def gravity(self) -> Array:
        """Gravity in the root frame, (3,) [m/s²]."""
        return np.array(self.model.gravity.linear)

    @property
    def units(self) -> dict[str, tuple[str, str]]:
        """Units of position and effort by joint."""
        units = (('m', 'N') if slides else ('rad', 'N·m') for slides in self.prismatic)
        return dict(zip(self.joints, units, strict=True))

    @cached_property
    def first_columns(self) -> Indices:
        """Column of the first standard parameter, XX, of each joint, (n,)."""
        return np.flatnonzero([p.symbol == 'XX' for p in self.parameters])

    @cached_property
    def body_columns(self) -> Indices:
        """Columns of the ten inertial parameters of each link, (links, 10)."""
        return np.asarray(self.first_columns[:, None] + np.arange(10))

    @cached_property
    def rigid(self) -> Robot:
        """The same robot without springs."""
        return self

    @cached_property
    def motors(self) -> Indices:
        """Row of each joint's motor (links,): its own where the joint is rigid."""
        return np.arange(self.n)

    @property
    def elastic_joints(self) -> Indices:
        """Numbers of the elastic joints, whose links are behind a spring."""
        return np.flatnonzero(self.motors != np.arange(len(self.motors)))

    def add_link_rows(self, rows: Array) -> Array:
        """Add the rows (n, ...) of links behind springs to those of their motors, in place."""
        for j in self.elastic_joints:
            rows[self.motors[j]] += rows[j]
        return rows

    def motor_efforts(self, effort: Array) -> Array:
        """Return (N, n) efforts with each spring's on its motor, wherever it was published."""
        result, links = np.array(effort), self.elastic_joints
        own, motors = result[:, links], self.motors[links]
        # The drive gain of a link behind a spring is zero, whatever effort it has here.
        both = np.where(np.isnan(result[:, motors]), own, result[:, motors])
        result[:, motors] = result[:, links] = both
        return result

    @cached_property
    def transmissions(self) -> tuple[Transmission, ...]:
        """The joints' drives, with spring and link behind an elastic one, then couplings'."""
        unit, first, found = np.eye(self.n), self.first_columns.tolist(), list[Transmission]()
        for j, motor in enumerate(self.motors.tolist()):
            rotor = self.rotor_inertia or motor != j
            start = first[j] + len(INERTIAL)
            found.append(_drive(unit[motor], start, rotor, self.friction[motor]))
            if motor != j:
                stiffness = self.column(f'K{j + 1}')
                found.append(_drive(unit[j] - unit[motor], stiffness, False, SPRING))
                found.append(_drive(unit[j], stiffness + 1, False, self.friction[j]))
        start = self.p - 3 * len(self.couplings)
        for k, coupling in enumerate(self.couplings):
            found.append(_drive(coupling.ratios, start + 3 * k, True, COUPLED_FRICTION))
        return tuple(found)

    def efforts_to_torques(self, effort: Array) -> Array:
        """Convert published efforts (…, n) to joint torques [N·m or N]."""
        return np.asarray(effort * self.drive_gain)

    @property
    def largest_efforts(self) -> Array:
        """Effort limits (n,) in the unit of published efforts; inf of a link on a spring."""
        with np.errstate(divide='ignore'):
            return np.asarray(self.limits.effort / np.abs(self.drive_gain))

    def of_links(self, chi: Array) -> Array:
        """Return standard parameters (p,), zero but for the inertial ones of links."""
        return np.where([p.symbol in INERTIAL for p in self.parameters], chi, 0.0)

    def column(self, name: str) -> int:
        """Return the column of a standard parameter, or raise an `UnknownNameError`."""
        names = tuple(parameter.name for parameter in self.parameters)
        UnknownNameError.check('parameter', [name], names)
        return names.index(name)


@dataclasses.dataclass(frozen=True)
class ElasticRobot(Robot):
    """A robot with springs in its joints; `joints` are the links' and then the motors'."""

    rigid: Robot = dataclasses.field(kw_only=True)
    motors: Indices = dataclasses.field(kw_only=True)
