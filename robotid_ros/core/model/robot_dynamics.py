"""A robot with its parameters, for one state after another: control, compensation, contact."""

import numpy as np
import numpy.typing as npt
import pinocchio

from ...exceptions import ConfigurationError
from ..arrays import Array
from .drive_torques import rotor_inertia
from .dynamics import model_with
from .friction import FrictionTerm, PLAIN
from .robot import ElasticRobot, Robot


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
