"""The robot: URDF and configuration become a Pinocchio model with named standard parameters."""

from __future__ import annotations

import dataclasses
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array, frozen
from .friction import check_constants, FrictionTerm, make_terms
from .mimic_joints import Follower
from .parameters import from_pinocchio, INERTIAL, INERTIAL_UNITS, Parameter
from .robot_description import Description, read_description
from .settings import CouplingSettings, RobotSettings

if TYPE_CHECKING:
    from .elastic_robot import ElasticRobot

__all__ = ['Coupling', 'CouplingSettings', 'Limits', 'Robot', 'RobotSettings', 'build_robot']


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the joints may do, (n,) each, inf where unlimited [rad or m, s, N·m or N]."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array


@dataclasses.dataclass(frozen=True)
class Coupling:
    """
    A motor that turns with `ratios · dq` and has inertia and friction of its own.

    Its torque Ia·(r·ddq) + Fv·(r·dq) + Fc·sign(r·dq) acts on the joints through r
    (STD eq. 34-35: τ_c = Nᵀ τ_r).

    Attributes
    ----------
    name : the configuration's
    number : the numbers of its joints, '56'; suffix of its parameters
    ratios : (n,)

    """

    name: str
    number: str
    ratios: Array


@dataclasses.dataclass(frozen=True)
class Robot:
    """
    What is known of a robot before it is identified.

    Attributes
    ----------
    name : for reports
    urdf : the description, as given
    joints : names of the n identified joints; every (N, n) array follows this order
    model : Pinocchio model with nq = nv = n, in its own joint order; `order` leads there
    order : (n,) position in `joints` of each joint of the model: q_model = q[:, order]
    limits : (n,) each
    friction : terms of each joint
    couplings : motors that drive several joints
    parameters : the p standard parameters, in order
    prior : (p,) their values from the URDF and the configuration
    drive_gain : (n,) torque per unit of published effort
    prismatic : (n,) True where the joint is prismatic
    rotor_inertia : whether every joint has an Ia
    warnings : what was changed in the description and why, in words
    elastic : the same robot with springs in its joints, or None where all are rigid
    followers : joints that mimic identified ones; their links come after those of the joints, in
        `parameters`, and in `order`, which then leads to n + m positions
    load : (p,) standard parameters whose links load the joints, for friction that grows with the
        load; None: the prior's

    """

    name: str
    urdf: str
    joints: tuple[str, ...]
    model: Any
    order: npt.NDArray[np.intp]
    limits: Limits
    friction: tuple[tuple[FrictionTerm, ...], ...]
    couplings: tuple[Coupling, ...]
    parameters: tuple[Parameter, ...]
    prior: Array
    drive_gain: Array
    prismatic: npt.NDArray[np.bool_]
    rotor_inertia: bool = True
    warnings: tuple[str, ...] = ()
    elastic: ElasticRobot | None = None
    followers: tuple[Follower, ...] = ()
    load: Array | None = None

    @property
    def loaded(self) -> bool:
        """Whether friction of a joint grows with its load."""
        return any(term.kind.loaded for terms in self.friction for term in terms)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the joints that carry a link: followers too, motors of elastic joints not."""
        names = tuple(follower.name for follower in self.followers)
        return (*self.joints[: len(self.starts) - len(names)], *names)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names that a recording must carry: the joints, and the motors of elastic ones."""
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
    def lead(self) -> Array:
        """G (n + m, n): how fast the joints and their followers move, dq_links = G dq."""
        rows = np.zeros((len(self.followers), self.n))
        for row, follower in zip(rows, self.followers, strict=True):
            row[follower.leader] = follower.ratio
        return np.vstack([np.eye(self.n), rows])

    def led(self, q: Array) -> Array:
        """Return the positions (N, n + m) of the joints and of their followers."""
        offset = np.array([follower.offset for follower in self.followers])
        return q @ self.lead.T + np.concatenate([np.zeros(self.n), offset])

    def refuse_followers(self, what: str) -> None:
        """
        Refuse what does not go with joints that mimic identified ones.

        Raises
        ------
        ConfigurationError : there are some

        """
        if self.followers:
            names = ', '.join(follower.name for follower in self.followers)
            raise ConfigurationError(
                f'{what} does not go with joints that mimic identified ones ({names}): name the '
                'joints that they follow in robot.locked'
            )

    @property
    def gravity(self) -> Array:
        """Gravity in the root frame, (3,) [m/s²]."""
        return np.array(self.model.gravity.linear)

    @property
    def starts(self) -> npt.NDArray[np.intp]:
        """Column of the first standard parameter, XX, of each joint, (n,)."""
        return np.array([i for i, p in enumerate(self.parameters) if p.symbol == 'XX'])

    def column(self, name: str) -> int:
        """
        Return the column of a standard parameter.

        Raises
        ------
        UnknownNameError : no such parameter

        """
        for index, parameter in enumerate(self.parameters):
            if parameter.name == name:
                return index
        raise UnknownNameError('parameter', name, tuple(p.name for p in self.parameters))


def build_robot(urdf: str, settings: RobotSettings) -> Robot:
    """
    Build the robot from its description and configuration.

    Parameters
    ----------
    urdf : the URDF's text
    settings : which joints, which model

    Raises
    ------
    ModelError : the URDF cannot become a dynamic model
    UnknownNameError : a joint, friction term or constant that does not exist
    ConfigurationError : an array of the wrong length, an impossible coupling

    """
    description = read_description(urdf, settings)
    joints = description.joints
    friction = _friction(joints, settings)
    couplings = tuple(_coupling(k, c, joints) for k, c in settings.couplings.items())
    parameters = _parameters(description, friction, couplings, settings.rotor_inertia)
    robot = Robot(
        name=settings.name or description.name,
        urdf=urdf,
        joints=joints,
        model=description.model,
        order=description.order,
        limits=_limits(description, settings),
        friction=friction,
        couplings=couplings,
        parameters=parameters,
        prior=_prior(description, parameters),
        drive_gain=_array('drive_gain', settings.drive_gain, np.ones(len(joints))),
        prismatic=description.prismatic,
        rotor_inertia=settings.rotor_inertia,
        warnings=description.warnings,
        followers=description.followers,
    )
    if not settings.elastic.joints:
        return robot
    from .elastic_robot import elastic_robot  # it extends this module

    return dataclasses.replace(robot, elastic=elastic_robot(robot, settings))


def _friction(
    joints: tuple[str, ...], settings: RobotSettings
) -> tuple[tuple[FrictionTerm, ...], ...]:
    for group in (settings.friction, settings.friction_constants):
        for name in group:
            if name != 'default' and name not in joints:
                raise UnknownNameError('joint', name, ('default', *joints))
    for constants in settings.friction_constants.values():
        check_constants(constants)
    common = settings.friction_constants.get('default', {})
    default = settings.friction.get('default', ('viscous', 'coulomb', 'offset'))
    return tuple(
        make_terms(
            settings.friction.get(joint, default),
            {**common, **settings.friction_constants.get(joint, {})},
        )
        for joint in joints
    )


def _coupling(name: str, settings: CouplingSettings, joints: tuple[str, ...]) -> Coupling:
    ratios = np.array(settings.ratios, dtype=float)
    if ratios.shape != (len(joints),) or np.count_nonzero(ratios) < 2:
        raise ConfigurationError(
            f"coupling '{name}' needs one ratio per joint ({len(joints)}), two of them not zero"
        )
    numbers = [str(j + 1) for j in np.flatnonzero(ratios)]
    separator = '_' if len(joints) > 9 else ''
    return Coupling(name, separator.join(numbers), frozen(ratios))


def _parameters(
    description: Description,
    friction: tuple[tuple[FrictionTerm, ...], ...],
    couplings: tuple[Coupling, ...],
    rotor_inertia: bool,
) -> tuple[Parameter, ...]:
    result = []
    for j, joint in enumerate(description.joints):
        linear = bool(description.prismatic[j])
        symbols = [*zip(INERTIAL, INERTIAL_UNITS, strict=True)]
        if rotor_inertia:
            symbols.append(('Ia', 'kg' if linear else 'kg·m²'))
        for term in friction[j]:
            symbols += zip(term.kind.symbols, _units(term.kind.units, linear), strict=True)
        result += [Parameter(f'{s}{j + 1}', s, unit, joint) for s, unit in symbols]
    for number, follower in enumerate(description.followers, start=len(description.joints) + 1):
        result += [
            Parameter(f'{symbol}{number}', symbol, unit, follower.name)
            for symbol, unit in zip(INERTIAL, INERTIAL_UNITS, strict=True)
        ]
    for coupling in couplings:
        symbols = [('Ia', 'kg·m²'), *zip(('Fv', 'Fc'), ('N·m·s/rad', 'N·m'), strict=True)]
        result += [
            Parameter(f'{s}{coupling.number}', s, unit, coupling.name) for s, unit in symbols
        ]
    return tuple(result)


def _units(units: tuple[str, ...], linear: bool) -> list[str]:
    force, length = ('N', 'm') if linear else ('N·m', 'rad')
    return [unit.format(f=force, l=length) for unit in units]


def _prior(description: Description, parameters: tuple[Parameter, ...]) -> Array:
    model = description.model
    values = {}
    for k, j in enumerate(description.order):
        inertial = from_pinocchio(model.inertias[k + 1].toDynamicParameters())
        for symbol, value in zip(INERTIAL, inertial, strict=True):
            values[f'{symbol}{j + 1}'] = value
        if j >= len(description.joints):  # followers have no drive
            continue
        values[f'Ia{j + 1}'] = model.armature[k]
        values[f'Fv{j + 1}'] = description.damping[j]
        for symbol in ('Fc', 'Fs', 'Fcp', 'Fcm'):
            values[f'{symbol}{j + 1}'] = description.dry_friction[j]
        for symbol in ('Fvp', 'Fvm'):
            values[f'{symbol}{j + 1}'] = description.damping[j]
    return frozen([values.get(p.name, 0.0) for p in parameters])


def _limits(description: Description, settings: RobotSettings) -> Limits:
    n = len(description.joints)
    lower = _array('lower', settings.lower, description.lower)
    upper = _array('upper', settings.upper, description.upper)
    if np.any(lower >= upper):
        joint = description.joints[int(np.argmax(lower >= upper))]
        raise ConfigurationError(
            f'position limits of {joint} leave no room: check lower and upper'
        )
    unlimited = np.full(n, np.inf)
    return Limits(
        lower,
        upper,
        _array('velocity', settings.velocity, description.velocity),
        _array('acceleration', settings.acceleration, unlimited),
        _array('jerk', settings.jerk, unlimited),
        _array('effort', settings.effort, description.effort),
    )


def _array(name: str, values: tuple[float, ...], default: Array) -> Array:
    if not values:
        return frozen(default)
    if len(values) != len(default):
        raise ConfigurationError(
            f"'{name}' has {len(values)} values: give one per joint ({len(default)})"
        )
    return frozen(values)
