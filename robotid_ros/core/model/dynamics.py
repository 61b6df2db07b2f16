"""The inverse dynamic identification model and the direct dynamic model."""

import dataclasses
from typing import Any

import numpy as np
import pinocchio

from ..arrays import Array
from .elastic_robot import drive_columns
from .parameters import to_pinocchio
from .robot import ElasticRobot, Robot

# Samples per block: a block's regressor stays in the processor's cache.
BLOCK_SIZE = 256
# Mass over first moment [1/m] below which a link is no body, but a column of a base parameter.
MIN_MASS_PER_MOMENT = 1e-8
# Samples whose whole regressor is held at once.
CHUNK_SIZE = 4096
# Steps in which load-dependent friction and acceleration agree, at the most.
MAX_LOAD_ITERATIONS = 100


def regressor(robot: Robot, q: Array, dq: Array, ddq: Array, out: Array | None = None) -> Array:
    """
    Observation matrix of the standard parameters, τ_j = W[j] χ (DIDIM eq. 8-10).

    Friction that grows with the load takes the load from `robot.load`, not from χ.

    Parameters
    ----------
    robot : the robot
    q, dq, ddq : (N, n) position, velocity, acceleration, in the order of `robot.joints`
    out : (n, N, p) zeroed array to fill, or None for a new one

    Returns
    -------
    (n, N, p), joint-major

    """
    q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
    result = np.zeros((robot.n, len(q), robot.p)) if out is None else out
    _fill_inertial(robot, q, dq, ddq, result)
    if isinstance(robot, ElasticRobot):
        for row, index, values in drive_columns(robot, q, dq, ddq):
            result[row, :, index] = values
        return robot.add_link_rows(result)
    starts = robot.first_columns
    loads = _load_torques(robot, result) if robot.load_dependent else None
    for j in range(robot.n):
        column = starts[j] + 10
        if robot.rotor_inertia:
            result[j, :, column] = ddq[:, j]
            column += 1
        for term in robot.friction[j]:
            for values in term.columns(dq[:, j], None if loads is None else loads[j]):
                result[j, :, column] = values
                column += 1
    _fill_couplings(robot, dq, ddq, result)
    return result


def _fill_inertial(robot: Robot, q: Array, dq: Array, ddq: Array, out: Array) -> None:
    """Fill the columns of the ten inertial parameters of every link."""
    model, n, order = robot.model, robot.model.nv, robot.order
    data = model.createData()
    compute = pinocchio.computeJointTorqueRegressor
    q, dq, ddq = (np.ascontiguousarray(x[:, order]) for x in _link_motion(robot, q, dq, ddq))
    lead = robot.mimic_jacobian
    block = np.empty((BLOCK_SIZE, n, 10 * n))
    supports = _supporting_pairs(model)
    starts = robot.first_columns
    for first in range(0, len(q), BLOCK_SIZE):
        count = min(BLOCK_SIZE, len(q) - first)
        for k in range(count):
            block[k] = compute(model, data, q[first + k], dq[first + k], ddq[first + k])
        rows = slice(first, first + count)
        for row, column in supports:
            start = starts[order[column]]
            source = block[:count, row, 10 * column : 10 * column + 10]
            joint = order[row]
            if not robot.followers:
                out[joint, rows, start : start + 10] = source[:, _COLUMNS]
                continue
            for driver in np.flatnonzero(lead[joint]):  # Gᵀ W(G q)
                values = lead[joint, driver] * source[:, _COLUMNS]
                out[driver, rows, start : start + 10] += values


def _link_motion(robot: Robot, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
    """Return the motion of all links, those that follow others too, (N, n + m)."""
    if not robot.followers:
        return q, dq, ddq
    return robot.link_positions(q), dq @ robot.mimic_jacobian.T, ddq @ robot.mimic_jacobian.T


# Columns of a link in our order, taken from Pinocchio's.
_COLUMNS = np.array([4, 5, 7, 6, 8, 9, 1, 2, 3, 0])


def _load_torques(robot: Robot, W: Array) -> Array:
    """Return the torques that the links take (n, N), by the inertial columns of W."""
    columns = (robot.first_columns[:, None] + np.arange(10)).ravel()
    chi = robot.prior if robot.load_parameters is None else robot.load_parameters
    return np.asarray(W[:, :, columns] @ chi[columns])


def _supporting_pairs(model: Any) -> list[tuple[int, int]]:
    """Pairs (joint, link) where the link hangs on the joint; all other blocks are zero."""
    return [
        (joint - 1, link)
        for link in range(model.nv)
        for joint in model.supports[link + 1]
        if joint > 0
    ]


def _fill_couplings(robot: Robot, dq: Array, ddq: Array, out: Array) -> None:
    column = robot.p - 3 * len(robot.couplings)
    for coupling in robot.couplings:
        speed, acceleration = dq @ coupling.ratios, ddq @ coupling.ratios
        for values in (acceleration, speed, np.sign(speed)):
            for j in np.flatnonzero(coupling.ratios):
                out[j, :, column] = coupling.ratios[j] * values
            column += 1


def inverse_dynamics(robot: Robot, chi: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """
    Torques of the standard parameters: RNEA, rotor inertias, friction and couplings.

    Parameters
    ----------
    robot : the robot
    chi : (p,) standard parameters
    q, dq, ddq : (N, n)

    Returns
    -------
    (N, n) [N·m or N]

    """
    q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
    if np.any(np.asarray(chi)[robot.first_columns + 9] <= 0.0):
        return _by_regressor(robot, chi, q, dq, ddq)
    model, order = model_with(robot, chi, armature=False), robot.order
    data = model.createData()
    links = _link_motion(robot, q, dq, ddq)
    tau = np.zeros_like(links[0])
    rows = zip(*(x[:, order] for x in links), strict=True)
    for k, (position, velocity, acceleration) in enumerate(rows):
        tau[k, order] = pinocchio.rnea(model, data, position, velocity, acceleration)
    if robot.followers:
        tau = tau @ robot.mimic_jacobian
    if isinstance(robot, ElasticRobot):
        for row, index, values in drive_columns(robot, q, dq, ddq):
            tau[:, row] += chi[index] * values
        robot.add_link_rows(tau.T)
        return tau
    return tau + ddq @ rotor_inertia(robot, chi) + friction(robot, chi, dq, tau)


def _by_regressor(robot: Robot, chi: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of parameters that no body has: RNEA needs a mass to have a centre of mass."""
    robot = dataclasses.replace(robot, load_parameters=np.asarray(chi))
    pieces = [
        regressor(robot, q[k : k + CHUNK_SIZE], dq[k : k + CHUNK_SIZE], ddq[k : k + CHUNK_SIZE])
        @ chi
        for k in range(0, len(q), CHUNK_SIZE)
    ]
    return np.concatenate(pieces, axis=1).T if pieces else np.empty_like(q)


def friction(robot: Robot, chi: Array, dq: Array, load: Array | None = None) -> Array:
    """
    Friction torques, couplings' motors included.

    Parameters
    ----------
    robot : the robot
    chi : (p,) standard parameters
    dq : (N, n) or (n,)
    load : of the shape of dq, torques that the links take [N·m or N]; None: none

    Returns
    -------
    of the shape of dq [N·m or N]

    """
    speed = np.atleast_2d(np.asarray(dq, dtype=float))
    loads = None if load is None else np.atleast_2d(load)
    tau = np.zeros_like(speed)
    for j, start in enumerate(robot.first_columns[: robot.n]):
        column = start + 10 + int(robot.rotor_inertia)
        for term in robot.friction[j]:
            for values in term.columns(speed[:, j], None if loads is None else loads[:, j]):
                tau[:, j] += chi[column] * values
                column += 1
    column = robot.p - 3 * len(robot.couplings)
    for coupling in robot.couplings:
        motor = speed @ coupling.ratios
        torque = chi[column + 1] * motor + chi[column + 2] * np.sign(motor)
        tau += np.outer(torque, coupling.ratios)
        column += 3
    return tau.reshape(np.shape(dq))


def rotor_inertia(robot: Robot, chi: Array) -> Array:
    """Rotor inertias as a matrix (n, n): diagonal, but for couplings."""
    result = np.zeros((robot.n, robot.n))
    if robot.rotor_inertia:
        result[np.diag_indices(robot.n)] = np.asarray(chi)[robot.first_columns[: robot.n] + 10]
    column = robot.p - 3 * len(robot.couplings)
    for coupling in robot.couplings:
        result += chi[column] * np.outer(coupling.ratios, coupling.ratios)
        column += 3
    return result


def model_with(robot: Robot, chi: Array, armature: bool = True) -> Any:
    """
    Return a Pinocchio model with the inertias (and armature) of chi, in the model's own order.

    The rotor inertias of couplings are not in it: Pinocchio's armature is diagonal.
    """
    model = pinocchio.Model(robot.model)
    for k, j in enumerate(robot.order):
        start = robot.first_columns[j]
        dynamic = to_pinocchio(np.asarray(chi, dtype=float)[start : start + 10])
        model.inertias[k + 1] = _pinocchio_inertia(dynamic)
        own = armature and robot.rotor_inertia and j < robot.n
        rotor = chi[start + 10] if own else 0.0
        model.armature[k] = rotor
    return model


def _pinocchio_inertia(dynamic: Array) -> Any:
    """
    Return Pinocchio's inertia of ten parameters.

    It cannot express a first moment without a mass: such a link gets a mass so small that its
    weight and the rounding of its long lever are alike, 1e-8 of the first moment.
    """
    dynamic = dynamic.copy()
    lever = float(np.abs(dynamic[1:4]).max())
    if abs(dynamic[0]) < MIN_MASS_PER_MOMENT * lever or dynamic[0] == 0.0:
        dynamic[0] = max(MIN_MASS_PER_MOMENT * lever, 1e-12)
    return pinocchio.Inertia.FromDynamicParameters(dynamic)


def mass_matrix(robot: Robot, chi: Array, q: Array) -> Array:
    """Mass matrix with rotor inertias and couplings, (n, n), in the order of `robot.joints`."""
    model = model_with(robot, chi, armature=False)
    data, order = model.createData(), robot.order
    positions = robot.link_positions(np.asarray(q, dtype=float))
    upper = np.triu(pinocchio.crba(model, data, positions[order]))
    matrix = np.empty_like(upper)
    matrix[np.ix_(order, order)] = upper + np.triu(upper, 1).T
    return robot.mimic_jacobian.T @ matrix @ robot.mimic_jacobian + rotor_inertia(robot, chi)


def forward_dynamics(robot: Robot, chi: Array, q: Array, dq: Array, tau: Array) -> Array:
    """
    Acceleration of the direct dynamic model, M(q) ddq = τ − h(q, dq) − friction (DIDIM eq. 2).

    Parameters
    ----------
    robot : the robot
    chi : (p,) standard parameters
    q, dq, tau : (n,)

    Returns
    -------
    (n,) [rad/s² or m/s²]

    """
    at = np.atleast_2d(q), np.atleast_2d(dq)
    M, ddq = mass_matrix(robot, chi, q), np.zeros(robot.n)
    # Friction that grows with the load depends on the acceleration in turn.
    for _ in range(MAX_LOAD_ITERATIONS if robot.load_dependent else 1):
        rest = np.asarray(tau) - inverse_dynamics(robot, chi, *at, ddq[None])[0]
        step = np.linalg.solve(M, rest)
        ddq = ddq + step
        if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(ddq):
            break
    return np.asarray(ddq)
