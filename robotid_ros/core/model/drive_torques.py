"""Torques of the drives: rotor inertias, friction, springs, and motors of several joints."""

from collections.abc import Iterable, Iterator

import numpy as np

from ..arrays import Array
from .robot import Robot, Transmission


def drive_columns(
    moving: Iterable[Transmission],
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
    for drive in robot.drives:
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
    moving = (drive._replace(inertia=None) for drive in robot.drives)
    for joint, k, values in drive_columns(moving, position, speed, speed, loads, successive):
        tau[:, joint] += chi[k] * values
    return tau.reshape(np.shape(dq))


def rotor_inertia(robot: Robot, chi: Array) -> Array:
    """Rotor inertias as a matrix (n, n): diagonal, but for couplings."""
    result = np.zeros((robot.n, robot.n))
    for drive in robot.drives:
        if drive.inertia is not None:
            result += chi[drive.inertia] * np.outer(drive.ratios, drive.ratios)
    return result
