"""Torques of links and drives: the identification model of samples, the robot of one state."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio

from ...exceptions import ConfigurationError
from ..arrays import Array, Indices
from .friction import FrictionTerm, PLAIN
from .inertial_columns import inertial_columns
from .robot import ElasticRobot, Robot, to_pinocchio, Transmission

# Least mass over first moment [1/m] that Pinocchio gets. A lighter link is no body but a column of
# a base parameter; at 1e-8, the weight of the mass and the rounding of its long lever are alike.
MIN_MASS_PER_MOMENT = 1e-8


def drive_columns(
    moving: Iterable[Transmission],
    q: Array,
    dq: Array,
    ddq: Array | None = None,
    loads: Array | None = None,
    successive: bool = False,
) -> Iterator[tuple[int, int, Array]]:
    """
    Yield joint, column and values (N,) of rotor inertias, friction, springs and couplings.

    Without ddq, rotor inertias are left out. For elastic joints these rows hold link and motor
    separately: `robot.add_link_rows` then adds the link rows to the motor rows. Loads (N, n)
    are torques that the joints transmit to the links [N·m or N]; of `successive` samples of one
    motion friction may remember the path.
    """
    for drive in moving:
        columns = []
        if drive.inertia is not None and ddq is not None:
            columns.append((drive.inertia, drive.turn(ddq)))
        position, speed = drive.turn(q), drive.turn(dq)
        load = None if loads is None else drive.turn(loads)
        for column, term in drive.terms:
            columns += enumerate(term.columns(position, speed, load, successive), column)
        for joint in drive.joints.tolist():
            yield from ((joint, k, drive.ratios[joint] * values) for k, values in columns)


def path_columns(robot: Robot, q: Array, dq: Array) -> Iterator[tuple[int, int, Array]]:
    """Yield joint, column and values (N,) of friction that remembers the path of q, dq (N, n)."""
    for drive in robot.transmissions:
        path = tuple(each for each in drive.terms if each[1].kind.of_path is not None)
        if path:
            yield from drive_columns([drive._replace(terms=path)], q, dq, successive=True)


class DriveTorques:
    """
    Rotors and friction of a robot's drives, of standard parameters chi (p,).

    Attributes
    ----------
    ratios : (d, n) speed of each drive per joint speed: the joints', with the spring and the link
        behind an elastic one, then the coupled motors'
    rotors : (n, n) rotor inertias, diagonal but for couplings

    """

    def __init__(self, robot: Robot, chi: Array) -> None:
        self.ratios = np.array([drive.ratios for drive in robot.transmissions])
        self._direct, inertia = len(self.ratios) == robot.n, np.zeros(len(self.ratios))
        plain = dict(zip(PLAIN, np.zeros((3, len(self.ratios))), strict=True))
        # The other terms, with their drive and the values of their parameters.
        self._others = list[tuple[int, FrictionTerm, Array]]()
        for k, drive in enumerate(robot.transmissions):
            if drive.inertia is not None:
                inertia[k] = chi[drive.inertia]
            for column, term in drive.terms:
                if term.name in plain:
                    plain[term.name][k] += chi[column]
                else:
                    self._others.append((k, term, chi[column : column + len(term.kind.symbols)]))
        self.rotors = (self.ratios.T * inertia) @ self.ratios
        self._viscous, self._coulomb, self._offset = plain.values()

    def friction(
        self, q: Array, dq: Array, load: Array | None = None, successive: bool = False
    ) -> Array:
        """Return torques of friction, springs and offsets at joints, as dq (N, n) or (n,)."""
        q, dq = np.asarray(q, float), np.asarray(dq, float)
        if self._direct:
            return self.own_friction(q, dq, load, successive)
        load = None if load is None else load @ self.ratios.T
        tau = self.own_friction(q @ self.ratios.T, dq @ self.ratios.T, load, successive)
        return np.asarray(tau @ self.ratios)

    def own_friction(
        self, q: Array, dq: Array, load: Array | None = None, successive: bool = False
    ) -> Array:
        """Return them of the drives by their motion and load, as dq; coupled ones need no q."""
        tau = self._viscous * dq + self._coulomb * np.sign(dq) + self._offset
        for k, term, values in self._others:
            loaded = None if load is None else load[..., k]
            columns = term.columns(q[..., k], dq[..., k], loaded, successive)
            tau[..., k] += sum(c * v for c, v in zip(columns, values, strict=True))
        return np.asarray(tau)


def regressor(
    robot: Robot,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    columns: Indices | None = None,
    successive: bool = False,
) -> Array:
    """
    Observation matrix of the standard parameters, τ_j = W[j] χ (DIDIM eq. 8-10).

    Of q, dq, ddq (N, n), and all parameters or some columns (c,), ascending: (n, N, c),
    joint-major, columns contiguous in memory. Friction that grows with the load takes it from
    `robot.load_parameters`, not from χ; of `successive` samples it may remember the path.
    """
    q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
    # The load is that of all parameters.
    whole = columns is None or robot.load_dependent
    chosen = np.arange(robot.p) if whole else np.asarray(columns)
    place = np.full(robot.p, -1)
    place[chosen] = np.arange(len(chosen))
    # Pages of columns that nothing is written to cost nothing.
    rows = np.zeros((robot.n, len(chosen), len(q)))
    _fill_inertial(robot, (q, dq, ddq), place, rows)
    elastic, loads = isinstance(robot, ElasticRobot), None
    if robot.load_dependent and not elastic:
        chi = robot.prior if robot.load_parameters is None else robot.load_parameters
        links = robot.body_columns.ravel()
        loads = (rows.swapaxes(1, 2)[:, :, links] @ np.asarray(chi)[links]).T
    entries = drive_columns(robot.transmissions, q, dq, ddq, loads, successive and not elastic)
    for row, column, values in entries:
        if place[column] >= 0:
            rows[row, place[column]] = values
    result = rows.swapaxes(1, 2)
    robot.add_link_rows(result)
    return result if columns is None or not whole else result[:, :, columns]


def _fill_inertial(
    robot: Robot, motion: Iterable[Array], place: Indices, out: Array, chi: Array | None = None
) -> None:
    """Fill columns (n, c, N) of the links at `place` ≥ 0; with chi (p,) they add torques there."""
    (q, dq, ddq), order, jacobian = motion, robot.order, robot.mimic_jacobian
    bodies = robot.body_columns[order]
    own, values = place[bodies], None if chi is None else np.asarray(chi)[bodies]
    if not (own >= 0).any() or not (values is None or values.any()):
        return
    links = out
    if robot.followers:
        q, dq, ddq = robot.link_positions(q), dq @ jacobian.T, ddq @ jacobian.T
        links = np.zeros((len(jacobian), *out.shape[1:]))
    q, dq, ddq = (x[:, order] for x in (q, dq, ddq))
    for part in inertial_columns(robot.model, q, dq, ddq, own >= 0, values):
        columns = own[part.link][own[part.link] >= 0]
        rows = links[:, columns[0] : columns[-1] + 1, part.samples]
        torques = np.empty(rows[0].shape)
        for k, joint in enumerate(order[part.chain]):
            if chi is None:
                part.fill(k, rows[joint])
            else:
                part.fill(k, torques)
                rows[joint] += torques
    if robot.followers:
        out[:] = np.tensordot(jacobian.T, links, axes=1)  # W = Gᵀ W(G q)


def link_torques(robot: Robot, chi: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Return the torques (N, n) of the links' inertia and weight, whatever their parameters."""
    rows = np.zeros((robot.n, 1, len(q)))
    _fill_inertial(robot, (q, dq, ddq), np.zeros(robot.p, dtype=np.intp), rows, chi)
    return rows[:, 0].T


def inverse_dynamics(
    robot: Robot, chi: Array, q: Array, dq: Array, ddq: Array, *, successive: bool = False,
    links: Array | None = None, drives: DriveTorques | None = None,
) -> Array:  # fmt: skip
    """
    Torques of the standard parameters: links, rotor inertias, friction, springs and couplings.

    Of parameters (p,) of bodies that can exist or not, and q, dq, ddq (N, n): (N, n) [N·m or N].
    Known torques of the `links` (N, n) and known `drives` are not computed again.
    """
    q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
    links = link_torques(robot, chi, q, dq, ddq) if links is None else links
    drives = DriveTorques(robot, chi) if drives is None else drives
    tau = links + ddq @ drives.rotors
    if isinstance(robot, ElasticRobot):
        return robot.add_link_rows((tau + drives.friction(q, dq)).T).T
    return np.asarray(tau + drives.friction(q, dq, links, successive))


class PathDynamics:
    """
    Inverse dynamics along paths: what depends on robot and parameters (p,) alone is kept.

    Where a link has no mass, torques are right to 1e-7. Pinocchio's loop over samples holds up
    other threads.
    """

    def __init__(self, robot: Robot, chi: Array) -> None:
        self.robot, self.chi, self.drives = robot, chi, DriveTorques(robot, chi)
        self._pool: Any = None
        if not robot.followers and hasattr(pinocchio, 'rneaInParallel'):
            self._pool = pinocchio.ModelPool(model_with(robot, chi, armature=False), 1)

    def links(self, *motion: Array) -> Array:
        """Return the torques (N, n) of the links at q, dq, ddq (N, n)."""
        if self._pool is None:
            return link_torques(self.robot, self.chi, *motion)
        order, tau = self.robot.order, np.zeros(motion[0].shape)
        own = pinocchio.rneaInParallel(1, self._pool, *(x[:, order].T for x in motion))
        tau[:, order] = own.T.reshape(len(tau), -1)  # of one joint it is a vector
        return tau


def spring_torque(robot: Robot, chi: Array, q: Array) -> Array:
    """Torque K (θ − q) of the springs on the links, (N, n); zero in all other rows."""
    torque, links = np.zeros(q.shape), robot.elastic_joints
    stiffness = [chi[robot.column(f'K{j + 1}')] for j in links]
    torque[:, links] = stiffness * (q[:, robot.motors[links]] - q[:, links])
    return torque


def model_with(robot: Robot, chi: Array, armature: bool = True) -> Any:
    """Return a Pinocchio model of chi, in its own order; rotors of couplings are not in it."""
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

    Of standard parameters (p,) and positions (n,) or (N, n): (n, n) or (N, n, n), in the order of
    `robot.joints` [kg·m², kg·m, kg].
    """
    poses, n = np.atleast_2d(np.asarray(q, dtype=float)), robot.n
    # What a unit acceleration of each joint takes, and what none does.
    ddq = np.tile(np.vstack([np.eye(n), np.zeros(n)]), (len(poses), 1))
    still = np.zeros_like(ddq)
    tau = link_torques(robot, chi, np.repeat(poses, n + 1, axis=0), still, ddq)
    tau = tau.reshape(-1, n + 1, n)
    matrix = tau[:, :n] - tau[:, n:] + DriveTorques(robot, chi).rotors
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
    friction, drive_friction : efforts of friction, springs and offsets, see `DriveTorques`
    drives : (d, n) speed of each drive per joint speed: the joints', then the coupled motors'

    """

    def __init__(self, robot: Robot, chi: npt.ArrayLike) -> None:
        chi = np.array(chi, dtype=float)
        if isinstance(robot, ElasticRobot):
            raise ConfigurationError(
                'the motion alone does not determine the torques of a robot with springs'
            )
        if np.any(chi[robot.first_columns + 9] <= 0.0):
            raise ConfigurationError(
                'a link has no mass: take physically consistent parameters, those of '
                'identified.urdf'
            )
        self.robot, self.chi, self.joints = robot, chi, robot.joints
        self._model = model_with(robot, chi, armature=False)
        self._data = self._model.createData()
        # S, how fast the model's joints move: dq_model = S dq; None: as the robot's.
        self._mimic: Array | None = robot.mimic_jacobian[robot.order]
        if np.array_equal(self._mimic, np.eye(robot.n)):
            self._mimic = None
        self._lower = np.tril_indices(len(robot.order), -1)
        drives = DriveTorques(robot, chi)
        self.drives, self._rotors = drives.ratios, drives.rotors
        self.friction, self.drive_friction = drives.friction, drives.own_friction

    def efforts(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the efforts that a motion needs (n,), or (N, n) those of N states."""
        if np.ndim(q) > 1:
            return np.array([self.efforts(*state) for state in zip(q, dq, ddq, strict=True)])
        links = self._links(q, dq, ddq)
        return np.asarray(links + self._rotors @ ddq + self.friction(q, dq, links))

    def gravity(self, q: Array) -> Array:
        """Return the efforts that hold the robot, friction left out, (n,)."""
        weight = pinocchio.computeGeneralizedGravity(self._model, self._data, self._q(q))
        return self._to_joints(weight)

    def transmitted(self, q: Array, dq: Array) -> Array | None:
        """Return the joints' load at constant speed (n,), None where no friction asks for it."""
        return self._links(q, dq, np.zeros(len(q))) if self.robot.load_dependent else None

    def momentum_rate(self, q: Array, dq: Array) -> Array:
        """Return Cᵀ dq − g (n,): d(M dq)/dt but for drives and friction, as dM/dt = C + Cᵀ."""
        speed = dq if self._mimic is None else self._mimic @ dq
        coriolis = pinocchio.computeCoriolisMatrix(self._model, self._data, self._q(q), speed)
        return np.asarray(self._to_joints(coriolis.T @ speed) - self.gravity(q))

    def jacobian(self, q: Array, frame: int) -> Array:
        """Return a frame's velocity per joint speed (6, n), linear first, in the frame's axes."""
        own = pinocchio.computeFrameJacobian(
            self._model, self._data, self._q(q), frame, pinocchio.LOCAL
        )
        return np.array(own) if self._mimic is None else own @ self._mimic

    def mass_matrix(self, q: Array) -> Array:
        """Return the mass matrix with all rotors at q (n,), (n, n)."""
        result = np.array(pinocchio.crba(self._model, self._data, self._q(q)))
        result[self._lower] = result.T[self._lower]
        if self._mimic is not None:
            result = self._mimic.T @ result @ self._mimic
        return np.asarray(result + self._rotors)

    def _links(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the efforts of the links' inertia and weight, (n,)."""
        if self._mimic is not None:
            dq, ddq = self._mimic @ dq, self._mimic @ ddq
        return self._to_joints(pinocchio.rnea(self._model, self._data, self._q(q), dq, ddq))

    def _q(self, q: Array) -> Array:
        """Return the positions of the model's joints."""
        return q if self._mimic is None else self.robot.link_positions(q)[self.robot.order]

    def _to_joints(self, tau: Array) -> Array:
        """Return what the robot's joints bear of torques of the model's, in memory of its own."""
        return np.array(tau if self._mimic is None else self._mimic.T @ tau)
