"""Torques of the drives: rotor inertias, friction, springs, and motors of several joints."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from .friction import FrictionTerm, make_terms
from .parameters import INERTIAL
from .robot import ElasticRobot, Robot

# Friction of a motor that drives several joints, and the spring of an elastic one.
COUPLED_FRICTION, SPRING = make_terms(('viscous', 'coulomb'), {}), make_terms(('spring',), {})


class Drive(NamedTuple):
    """
    What turns or brakes joints with torques rᵀ f, f of its own motion r q, r dq and r ddq.

    Attributes
    ----------
    ratios : (n,) r, its speed per joint speed
    joints : numbers of the joints that it turns
    inertia : column of its rotor inertia, None without one
    terms : friction and springs, with the column of the first parameter of each

    """

    ratios: Array
    joints: npt.NDArray[np.intp]
    inertia: int | None
    terms: tuple[tuple[int, FrictionTerm], ...]

    @property
    def dry(self) -> bool:
        """Whether friction can hold it."""
        return any(term.kind.dry for _, term in self.terms)

    def turn(self, x: Array) -> Array:
        """Return its q, dq or ddq (N,), of those of the joints (N, n)."""
        return np.asarray(x[:, self.joints] @ self.ratios[self.joints])


def drives(robot: Robot) -> Iterator[Drive]:
    """Yield the joints' drives, with spring and link behind an elastic one, then couplings'."""
    unit, first = np.eye(robot.n), robot.first_columns.tolist()
    motors = robot.motors.tolist() if isinstance(robot, ElasticRobot) else range(robot.n)
    for j, motor in enumerate(motors):
        rotor = robot.rotor_inertia or motor != j
        yield _drive(unit[motor], first[j] + len(INERTIAL), rotor, robot.friction[motor])
        if motor != j:
            stiffness = robot.column(f'K{j + 1}')
            yield _drive(unit[j] - unit[motor], stiffness, False, SPRING)
            yield _drive(unit[j], stiffness + 1, False, robot.friction[j])
    start = robot.p - 3 * len(robot.couplings)
    for column, coupling in zip(range(start, robot.p, 3), robot.couplings, strict=True):
        yield _drive(coupling.ratios, column, True, COUPLED_FRICTION)


def _drive(ratios: Array, start: int, rotor: bool, friction: tuple[FrictionTerm, ...]) -> Drive:
    terms, column = [], start + rotor
    for term in friction:
        terms.append((column, term))
        column += len(term.kind.symbols)
    return Drive(ratios, np.flatnonzero(ratios), start if rotor else None, tuple(terms))


def drive_columns(
    moving: Iterable[Drive],
    q: Array,
    dq: Array,
    ddq: Array,
    loads: Array | None = None,
    successive: bool = False,
) -> Iterator[tuple[int, int, Array]]:
    """
    Yield joint, column and values (N,) of rotor inertias, friction, springs and couplings.

    Of elastic joints, rows are those of links and of motors alone: `robot.add_link_rows` makes
    drives of motors.

    Parameters
    ----------
    q, dq, ddq : (N, n)
    loads : (N, n) torques that the joints transmit to the links [N·m or N]; None: none
    successive : whether these are samples of one motion, whose path friction may remember

    """
    for drive in moving:
        columns = [] if drive.inertia is None else [(drive.inertia, drive.turn(ddq))]
        position, speed = drive.turn(q), drive.turn(dq)
        load = None if loads is None else drive.turn(loads)
        for column, term in drive.terms:
            columns += enumerate(term.columns(position, speed, load, successive), column)
        for joint in drive.joints.tolist():
            yield from ((joint, k, drive.ratios[joint] * values) for k, values in columns)


def path_columns(robot: Robot, q: Array, dq: Array) -> Iterator[tuple[int, int, Array]]:
    """Yield joint, column and values (N,) of friction that remembers the path of q, dq (N, n)."""
    for drive in drives(robot):
        path = tuple(each for each in drive.terms if each[1].kind.of_path is not None)
        along = drive._replace(inertia=None, terms=path)
        yield from drive_columns([along], q, dq, dq, successive=True)


def friction(
    robot: Robot,
    chi: Array,
    q: Array,
    dq: Array,
    load: Array | None = None,
    successive: bool = False,
) -> Array:
    """
    Torques of friction and springs at the joints, couplings' motors included.

    As dq, (N, n) or (n,), [N·m or N]; `load` and `successive`: see `drive_columns`.
    """
    position, speed = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, dq))
    loads = None if load is None else np.atleast_2d(load)
    tau = np.zeros_like(speed)
    moving = (drive._replace(inertia=None) for drive in drives(robot))
    for joint, k, values in drive_columns(moving, position, speed, speed, loads, successive):
        tau[:, joint] += chi[k] * values
    return tau.reshape(np.shape(dq))


def rotor_inertia(robot: Robot, chi: Array) -> Array:
    """Rotor inertias as a matrix (n, n): diagonal, but for couplings."""
    result = np.zeros((robot.n, robot.n))
    for drive in drives(robot):
        if drive.inertia is not None:
            result += chi[drive.inertia] * np.outer(drive.ratios, drive.ratios)
    return result
