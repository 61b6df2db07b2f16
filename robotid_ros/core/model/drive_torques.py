"""Torques of the drives: rotor inertias, friction, and motors that drive several joints."""

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from .friction import FrictionTerm
from .parameters import INERTIAL
from .robot import Coupling, Robot


def friction_columns(
    robot: Robot, joint: int, column: int, q: Array, dq: Array, load: Array | None = None
) -> Iterator[tuple[int, Array]]:
    """
    Yield column and values (N,) of each friction parameter of a joint, from `column` on.

    Parameters
    ----------
    joint : its number in `robot.friction`
    column : of its first friction parameter
    q, dq : (N,) position and velocity of the joint
    load : (N,) torque that the joint transmits to the links [N·m or N]; None: none

    """
    for term in robot.friction[joint]:
        yield from enumerate(term.columns(q, dq, load), column)
        column += len(term.kind.symbols)


def path_columns(robot: Robot, q: Array, dq: Array) -> Iterator[tuple[int, int, Array]]:
    """
    Yield joint, column and values (N,) of friction that remembers its path.

    Parameters
    ----------
    robot : with rigid joints
    q, dq : (N, n) successive samples of one motion

    """
    for j, column, term in _path_terms(robot):
        values = term.columns(q[:, j], dq[:, j], successive=True)
        yield from ((j, k, each) for k, each in enumerate(values, column))


def path_friction(robot: Robot, chi: Array, q: Array, dq: Array) -> Array:
    """Torques (N, n) of friction along its path, less those where no path is known."""
    tau = np.zeros_like(dq)
    for j, column, term in _path_terms(robot):
        along, without = (
            np.stack(term.columns(q[:, j], dq[:, j], successive=known)) for known in (True, False)
        )
        tau[:, j] += chi[column : column + len(along)] @ (along - without)
    return tau


def _path_terms(robot: Robot) -> Iterator[tuple[int, int, FrictionTerm]]:
    """Yield joint, first column and term of friction that remembers its path."""
    for j, column in enumerate(_drive_columns(robot)):
        for term in robot.friction[j]:
            if term.kind.of_path is not None:
                yield j, column, term
            column += len(term.kind.symbols)


def drive_columns(
    robot: Robot, q: Array, dq: Array, ddq: Array, loads: Array | None
) -> Iterator[tuple[int, int, Array]]:
    """
    Yield joint, column and values (N,) of rotor inertias, friction and couplings.

    Parameters
    ----------
    robot : with rigid joints
    q, dq, ddq : (N, n)
    loads : (n, N) torques that the joints transmit to the links [N·m or N]; None: none

    """
    for j, column in enumerate(_drive_columns(robot)):
        if robot.rotor_inertia:
            yield j, column - 1, ddq[:, j]
        load = None if loads is None else loads[j]
        for k, values in friction_columns(robot, j, column, q[:, j], dq[:, j], load):
            yield j, k, values
    for coupling, column in _coupling_columns(robot):
        speed, acceleration = dq @ coupling.ratios, ddq @ coupling.ratios
        for k, values in enumerate((acceleration, speed, np.sign(speed)), column):
            for driven in np.flatnonzero(coupling.ratios):
                yield int(driven), k, coupling.ratios[driven] * values


def friction(robot: Robot, chi: Array, q: Array, dq: Array, load: Array | None = None) -> Array:
    """
    Torques of friction and springs at the joints, couplings' motors included.

    Parameters
    ----------
    chi : (p,) standard parameters
    q, dq : (N, n) or (n,)
    load : of the shape of dq, torques that the joints transmit to the links [N·m or N]; None: none

    Returns
    -------
    of the shape of dq [N·m or N]

    """
    position, speed = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, dq))
    loads = None if load is None else np.atleast_2d(load)
    tau = np.zeros_like(speed)
    for j, column in enumerate(_drive_columns(robot)):
        own_load = None if loads is None else loads[:, j]
        for k, values in friction_columns(robot, j, column, position[:, j], speed[:, j], own_load):
            tau[:, j] += chi[k] * values
    for coupling, column in _coupling_columns(robot):
        motor = speed @ coupling.ratios
        torque = chi[column + 1] * motor + chi[column + 2] * np.sign(motor)
        tau += np.outer(torque, coupling.ratios)
    return tau.reshape(np.shape(dq))


def rotor_inertia(robot: Robot, chi: Array) -> Array:
    """Rotor inertias as a matrix (n, n): diagonal, but for couplings."""
    result = np.zeros((robot.n, robot.n))
    if robot.rotor_inertia:
        columns = robot.first_columns[: robot.n] + len(INERTIAL)
        result[np.diag_indices(robot.n)] = np.asarray(chi)[columns]
    for coupling, column in _coupling_columns(robot):
        result += chi[column] * np.outer(coupling.ratios, coupling.ratios)
    return result


def _drive_columns(robot: Robot) -> list[int]:
    """Return the column of each joint's first friction parameter."""
    first = robot.first_columns[: robot.n] + len(INERTIAL) + int(robot.rotor_inertia)
    return [int(column) for column in first]


def _coupling_columns(robot: Robot) -> Iterator[tuple[Coupling, int]]:
    """Yield the couplings with the column of the first of their parameters Ia, Fv, Fc."""
    first = robot.p - 3 * len(robot.couplings)
    return zip(robot.couplings, range(first, robot.p, 3), strict=True)
