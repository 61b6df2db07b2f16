"""Inverse dynamics: the identification model of many samples, and the robot of one state."""

import dataclasses
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio

from ...exceptions import ConfigurationError
from ..arrays import Array
from .drive_torques import drive_columns, friction, path_columns, path_friction, rotor_inertia
from .elastic_robot import elastic_drive_columns
from .friction import FrictionTerm, PLAIN
from .inertial_columns import inertial_columns
from .parameters import from_pinocchio, INERTIAL, to_pinocchio
from .robot import ElasticRobot, Robot

# Samples whose whole regressor is held at once: bounds the memory of long recordings.
CHUNK_SIZE = 4096
# Least mass over first moment [1/m] that Pinocchio gets. A lighter link is no body but a column of
# a base parameter; at 1e-8, the weight of the mass and the rounding of its long lever are alike.
MIN_MASS_PER_MOMENT = 1e-8
# Least mass that a link gets which has none, and mass over first moment up to which that is so
# [kg, 1/m]: a longer lever of a body would only round.
LEAST_MASS, MASS_PER_MOMENT = 1e-3, 0.1


def regressor(
    robot: Robot,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    columns: npt.NDArray[np.intp] | None = None,
    successive: bool = False,
) -> Array:
    """
    Observation matrix of the standard parameters, τ_j = W[j] χ (DIDIM eq. 8-10).

    Friction that grows with the load takes the load from `robot.load_parameters`, not from χ.

    Parameters
    ----------
    q, dq, ddq : (N, n) position, velocity, acceleration, in the order of `robot.joints`
    columns : (c,) which parameters, ascending, or None for all p
    successive : whether these are samples of one motion, whose path friction may remember

    Returns
    -------
    (n, N, c), joint-major; in memory, columns are contiguous

    """
    q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
    # The load is that of all parameters.
    all_of_them = columns is None or robot.load_dependent
    chosen = np.arange(robot.p) if all_of_them else np.asarray(columns)
    place = np.full(robot.p, -1)
    place[chosen] = np.arange(len(chosen))
    # Pages of columns that nothing is written to cost nothing.
    rows = np.zeros((robot.n, len(chosen), len(q)))
    result = rows.swapaxes(1, 2)
    _fill_inertial(robot, q, dq, ddq, place, rows)
    if isinstance(robot, ElasticRobot):
        entries = elastic_drive_columns(robot, q, dq, ddq)
    else:
        loads = None
        if robot.load_dependent:  # torques (n, N) on the links, by their columns of W
            links = (robot.first_columns[:, None] + np.arange(10)).ravel()
            chi = robot.prior if robot.load_parameters is None else robot.load_parameters
            loads = np.asarray(result[:, :, links] @ chi[links])
        entries = drive_columns(robot, q, dq, ddq, loads)
        entries = chain(entries, path_columns(robot, q, dq) if successive else ())
    for row, column, values in entries:
        if place[column] >= 0:
            rows[row, place[column]] = values
    if isinstance(robot, ElasticRobot):
        robot.add_link_rows(result)
    return result if columns is None or not all_of_them else result[:, :, columns]


def _fill_inertial(
    robot: Robot, q: Array, dq: Array, ddq: Array, place: npt.NDArray[np.intp], out: Array
) -> None:
    """Fill the columns of the links (n, c, N); `place` of a parameter is −1 where it has none."""
    order, jacobian = robot.order, robot.mimic_jacobian
    own = place[robot.first_columns[order][:, None] + np.arange(len(INERTIAL))]
    q, dq, ddq = (x[:, order] for x in _link_motion(robot, q, dq, ddq))
    for part in inertial_columns(robot.model, q, dq, ddq, own >= 0):
        columns = own[part.link][own[part.link] >= 0]
        chosen = slice(columns[0], columns[-1] + 1)
        for k, joint in enumerate(order[part.chain]):
            if not robot.followers:  # G is the identity
                part.fill(k, out[joint, chosen, part.samples])
                continue
            values = np.empty(out[0, chosen, part.samples].shape)
            part.fill(k, values)
            for driver in np.flatnonzero(jacobian[joint]):  # W = Gᵀ W(G q)
                out[driver, chosen, part.samples] += jacobian[joint, driver] * values


def _link_motion(robot: Robot, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
    """Return the motion of all links, those that follow others too, (N, n + m)."""
    if not robot.followers:
        return q, dq, ddq
    jacobian = robot.mimic_jacobian
    return robot.link_positions(q), dq @ jacobian.T, ddq @ jacobian.T


def inverse_dynamics(
    robot: Robot, chi: Array, q: Array, dq: Array, ddq: Array, *, successive: bool = False
) -> Array:
    """
    Torques of the standard parameters: RNEA, rotor inertias, friction and couplings.

    Parameters
    ----------
    chi : (p,) standard parameters
    q, dq, ddq : (N, n)
    successive : whether these are samples of one motion, whose path friction may remember

    Returns
    -------
    (N, n) [N·m or N]

    """
    q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
    if successive:
        tau = inverse_dynamics(robot, chi, q, dq, ddq)
        elastic = isinstance(robot, ElasticRobot)
        return tau if elastic else np.asarray(tau + path_friction(robot, chi, q, dq))
    bodies = with_masses(robot, chi)
    if np.any(bodies[robot.first_columns + 9] <= 0.0):
        return _by_regressor(robot, chi, q, dq, ddq)
    model, order = model_with(robot, bodies, armature=False), robot.order
    data = model.createData()
    links = _link_motion(robot, q, dq, ddq)
    tau = np.zeros_like(links[0])
    rows = zip(*(x[:, order] for x in links), strict=True)
    for k, (position, velocity, acceleration) in enumerate(rows):
        tau[k, order] = pinocchio.rnea(model, data, position, velocity, acceleration)
    if robot.followers:
        tau = tau @ robot.mimic_jacobian
    if isinstance(robot, ElasticRobot):
        for row, index, values in elastic_drive_columns(robot, q, dq, ddq):
            tau[:, row] += chi[index] * values
        robot.add_link_rows(tau.T)
        return tau
    return tau + ddq @ rotor_inertia(robot, chi) + friction(robot, chi, q, dq, tau)


def _by_regressor(robot: Robot, chi: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of a link that slides without a mass: RNEA needs one for a centre of mass."""
    robot = dataclasses.replace(robot, load_parameters=np.asarray(chi))
    starts = range(0, len(q), CHUNK_SIZE)
    chunks = ([x[k : k + CHUNK_SIZE] for x in (q, dq, ddq)] for k in starts)
    tau = [regressor(robot, *chunk) @ chi for chunk in chunks]
    return np.concatenate(tau, axis=1).T if tau else np.empty_like(q)


def with_masses(robot: Robot, chi: Array) -> Array:
    """
    Return standard parameters (p,) of the same torques whose turning links have a mass.

    A point on the axis of a joint that turns is of the link before it as well: there a link
    without mass, as base parameters have it, gets one, and the link before it the opposite. A
    link that slides keeps what it has.
    """
    model, first, result = robot.model, robot.first_columns[robot.order], np.array(chi, float)
    data, middle = model.createData(), pinocchio.neutral(model)
    for k in reversed(range(len(first))):
        moments, mass = result[first[k] + 6 : first[k] + 9], first[k] + 9
        least = MASS_PER_MOMENT * np.abs(moments).max()
        axis = pinocchio.computeJointJacobian(model, data, middle, k + 1).reshape(6, -1)[:, k]
        if result[mass] > least or not axis[3:].any():
            continue
        added = max(least, LEAST_MASS) - result[mass]
        result[mass] += added
        if parent := int(model.parents[k + 1]):
            place = model.jointPlacements[k + 1].translation
            point = pinocchio.Inertia(added, place, np.zeros((3, 3))).toDynamicParameters()
            start = first[parent - 1]
            result[start : start + len(INERTIAL)] -= from_pinocchio(point)
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
        # Pinocchio needs a mass for a first moment.
        least = MIN_MASS_PER_MOMENT * float(np.abs(dynamic[1:4]).max())
        if abs(dynamic[0]) < least or dynamic[0] == 0.0:
            dynamic[0] = max(least, 1e-12)
        model.inertias[k + 1] = pinocchio.Inertia.FromDynamicParameters(dynamic)
        driven = armature and robot.rotor_inertia and j < robot.n
        model.armature[k] = chi[start + 10] if driven else 0.0
    return model


def mass_matrix(robot: Robot, chi: Array, q: Array) -> Array:
    """
    Mass matrix with rotor inertias and couplings, also of parameters that no body has.

    Parameters
    ----------
    chi : (p,) standard parameters
    q : (n,) or (N, n) positions

    Returns
    -------
    (n, n) or (N, n, n) [kg·m², kg·m, kg], in the order of `robot.joints`

    """
    poses, n = np.atleast_2d(np.asarray(q, dtype=float)), robot.n
    # What a unit acceleration of each joint takes, and what none does.
    ddq = np.tile(np.vstack([np.eye(n), np.zeros(n)]), (len(poses), 1))
    still = np.zeros_like(ddq)
    W = np.zeros((n, robot.p, len(ddq)))
    _fill_inertial(robot, np.repeat(poses, n + 1, axis=0), still, ddq, np.arange(robot.p), W)
    tau = np.einsum('ipk,p->ki', W, chi).reshape(-1, n + 1, n)
    matrix = tau[:, :n] - tau[:, n:] + rotor_inertia(robot, chi)
    return np.asarray(matrix if np.ndim(q) == 2 else matrix[0])


class RobotDynamics:
    """
    Inverse dynamics of a robot whose parameters are known.

    What can be computed beforehand is, so that a call takes a few microseconds. Vectors are (n,)
    in the order of `joints`, [rad or m], [N·m or N]; calls share memory, so that each thread needs
    one of its own.

    Parameters
    ----------
    robot : rigid
    chi : (p,) standard parameters; bodies that can exist

    Raises
    ------
    ConfigurationError : springs between motor and link, or a link without mass

    Attributes
    ----------
    drives : (d, n) speed of each drive per joint speed: the joints', then the coupled motors'

    """

    def __init__(self, robot: Robot, chi: npt.ArrayLike) -> None:
        chi = np.array(chi, dtype=float)
        if isinstance(robot, ElasticRobot):
            raise ConfigurationError(
                'a robot with springs in its joints has no torque by its motion alone'
            )
        if np.any(chi[robot.first_columns + 9] <= 0.0):
            raise ConfigurationError(
                'a link has no mass: take physically consistent parameters, those of '
                'identified.urdf'
            )
        self.robot, self.chi, self.joints = robot, chi, robot.joints
        self._model = model_with(robot, chi, armature=False)
        self._data = self._model.createData()
        identity = np.array_equal(robot.order, np.arange(len(robot.order)))
        self._plain = identity and not robot.followers
        self._back, self._lower = np.argsort(robot.order), np.tril_indices(len(robot.order), -1)
        self._rotors = rotor_inertia(robot, chi)
        self._coupled = bool(robot.couplings)
        self.drives = np.vstack([np.eye(robot.n), *(c.ratios for c in robot.couplings)])
        self._viscous, self._coulomb, self._offset = np.zeros((3, len(self.drives)))
        self._shaped = self._sort_friction()

    def efforts(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the efforts that a motion needs (n,)."""
        links = self._links(q, dq, ddq)
        return np.asarray(links + self._rotors @ ddq + self.friction(q, dq, links))

    def gravity(self, q: Array) -> Array:
        """Return the efforts that hold the robot, friction left out, (n,)."""
        if self._plain:
            result = pinocchio.computeGeneralizedGravity(self._model, self._data, q)
            return np.array(result)
        still = np.zeros(len(self.joints))
        return self._links(np.asarray(q, dtype=float), still, still)

    def friction(self, q: Array, dq: Array, load: Array | None = None) -> Array:
        """
        Return the efforts of friction, springs at joints and offsets, (n,).

        `load` is what the joints bear, (n,); it counts for friction that grows with it.
        """
        q, dq = np.asarray(q, float), np.asarray(dq, float)
        if not self._coupled:
            return self.drive_friction(q, dq, load)
        return np.asarray(self.drive_friction(q, self.drives @ dq, load) @ self.drives)

    def drive_friction(self, q: Array, speed: Array, load: Array | None = None) -> Array:
        """Return the same drive by drive (d,), by the speeds of the drives (d,)."""
        tau = self._viscous * speed + self._coulomb * np.sign(speed) + self._offset
        for joint, term, values in self._shaped:
            own = slice(joint, joint + 1)
            columns = term.columns(q[own], speed[own], None if load is None else load[own])
            tau[joint] += sum(c[0] * v for c, v in zip(columns, values, strict=True))
        return np.asarray(tau)

    def transmitted(self, q: Array, dq: Array) -> Array | None:
        """Return the joints' load at constant speed (n,), None where no friction asks for it."""
        if not self.robot.load_dependent:
            return None
        return self._links(q, dq, np.zeros(len(self.joints)))

    def momentum_rate(self, q: Array, dq: Array) -> Array:
        """
        Return C(q, dq)ᵀ dq − g(q), (n,): how M dq changes without drives and friction.

        With Ṁ = C + Cᵀ, M ddq + C dq + g = τ becomes d(M dq)/dt = Cᵀ dq − g + τ.
        """
        if self._plain:
            coriolis = pinocchio.computeCoriolisMatrix(self._model, self._data, q, dq)
            return np.asarray(coriolis.T @ dq - self.gravity(q))
        position, speed = self._of_links(q), (self.robot.mimic_jacobian @ dq)[self.robot.order]
        coriolis = pinocchio.computeCoriolisMatrix(self._model, self._data, position, speed)
        links = (coriolis.T @ speed)[self._back]
        return np.asarray(links @ self.robot.mimic_jacobian - self.gravity(q))

    def jacobian(self, q: Array, frame: int) -> Array:
        """Return a frame's velocity per joint speed (6, n), linear first, in the frame's axes."""
        position = q if self._plain else self._of_links(q)
        own = pinocchio.computeFrameJacobian(
            self._model, self._data, position, frame, pinocchio.LOCAL
        )
        return np.array(own) if self._plain else own[:, self._back] @ self.robot.mimic_jacobian

    def mass_matrix(self, q: Array) -> Array:
        """Return M(q) with rotor inertias, (n, n) [kg·m², kg·m, kg]."""
        position = q if self._plain else self._of_links(q)
        result = np.array(pinocchio.crba(self._model, self._data, position))
        result[self._lower] = result.T[self._lower]
        if not self._plain:
            jacobian = self.robot.mimic_jacobian
            result = jacobian.T @ result[np.ix_(self._back, self._back)] @ jacobian
        return np.asarray(result + self._rotors)

    def _links(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the efforts of the links' inertia and weight, (n,)."""
        if self._plain:
            return np.array(pinocchio.rnea(self._model, self._data, q, dq, ddq))
        robot, jacobian = self.robot, self.robot.mimic_jacobian
        state = robot.link_positions(q), jacobian @ dq, jacobian @ ddq
        tau = pinocchio.rnea(self._model, self._data, *(x[robot.order] for x in state))
        return np.asarray(jacobian.T @ tau[self._back])

    def _of_links(self, q: Array) -> Array:
        """Return the positions of all links in the order of Pinocchio's model."""
        return np.asarray(self.robot.link_positions(q)[self.robot.order])

    def _sort_friction(self) -> list[tuple[int, FrictionTerm, list[float]]]:
        """Fill the vectors of plain friction; return the other terms with their parameters."""
        vectors = dict(zip(PLAIN, (self._viscous, self._coulomb, self._offset), strict=True))
        others = []
        for joint, terms in enumerate(self.robot.friction):
            for term in terms:
                names = (f'{symbol}{joint + 1}' for symbol in term.kind.symbols)
                values = [float(self.chi[self.robot.column(name)]) for name in names]
                if term.name in vectors:
                    vectors[term.name][joint] += values[0]
                else:
                    others.append((joint, term, values))
        for k, coupling in enumerate(self.robot.couplings, self.robot.n):
            self._viscous[k], self._coulomb[k] = (
                self.chi[self.robot.column(symbol + coupling.number)] for symbol in ('Fv', 'Fc')
            )
        return others
