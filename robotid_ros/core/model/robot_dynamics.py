"""A robot with its parameters, for one state after another: control, compensation, contact."""

import numpy as np
import numpy.typing as npt
import pinocchio

from ...exceptions import ConfigurationError
from ..arrays import Array
from .drive_torques import friction, rotor_inertia
from .dynamics import mass_matrix, model_with
from .friction import FrictionTerm
from .robot import ElasticRobot, Robot

# Terms that are vectors here; others are evaluated one by one.
PLAIN_TERMS = ('viscous', 'coulomb', 'offset')


class InverseDynamics:
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
        self._back = np.argsort(robot.order)
        rotors = rotor_inertia(robot, chi)
        self._rotors, self._coupled = np.diag(rotors).copy(), rotors if robot.couplings else None
        self._viscous, self._coulomb, self._offset = np.zeros((3, robot.n))
        self._motors = np.array([c.ratios for c in robot.couplings]).reshape(-1, robot.n)
        numbers = [c.number for c in robot.couplings]
        self._motor_viscous, self._motor_coulomb = (
            np.array([chi[robot.column(symbol + number)] for number in numbers])
            for symbol in ('Fv', 'Fc')
        )
        self._shaped = self._sort_friction()

    def efforts(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the efforts that a motion needs (n,)."""
        links = self._links(q, dq, ddq)
        rotors = self._rotors * ddq if self._coupled is None else self._coupled @ ddq
        return np.asarray(links + rotors + self.friction(q, dq, links))

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
        if self.robot.load_dependent:
            return friction(self.robot, self.chi, q, dq, load)
        tau = self._viscous * dq + self._coulomb * np.sign(dq) + self._offset
        for joint, term, values in self._shaped:
            columns = term.columns(q[joint : joint + 1], dq[joint : joint + 1])
            tau[joint] += sum(c[0] * v for c, v in zip(columns, values, strict=True))
        if self._coupled is not None:
            speed = self._motors @ dq
            torque = self._motor_viscous * speed + self._motor_coulomb * np.sign(speed)
            tau += self._motors.T @ torque
        return np.asarray(tau)

    def mass_matrix(self, q: Array) -> Array:
        """Return M(q) with rotor inertias, (n, n) [kg·m², kg·m, kg]."""
        if not self._plain:
            return mass_matrix(self.robot, self.chi, q)
        result = np.array(pinocchio.crba(self._model, self._data, q))
        lower = np.tril_indices(len(result), -1)
        result[lower] = result.T[lower]
        return result + (np.diag(self._rotors) if self._coupled is None else self._coupled)

    def _links(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the efforts of the links' inertia and weight, (n,)."""
        if self._plain:
            return np.array(pinocchio.rnea(self._model, self._data, q, dq, ddq))
        robot, jacobian = self.robot, self.robot.mimic_jacobian
        state = robot.link_positions(q), jacobian @ dq, jacobian @ ddq
        tau = pinocchio.rnea(self._model, self._data, *(x[robot.order] for x in state))
        return np.asarray(jacobian.T @ tau[self._back])

    def _sort_friction(self) -> list[tuple[int, FrictionTerm, list[float]]]:
        """Fill the vectors of plain friction; return the other terms with their parameters."""
        vectors = dict(zip(PLAIN_TERMS, (self._viscous, self._coulomb, self._offset), strict=True))
        others = []
        for joint, terms in enumerate(self.robot.friction):
            for term in terms:
                names = (f'{symbol}{joint + 1}' for symbol in term.kind.symbols)
                values = [float(self.chi[self.robot.column(name)]) for name in names]
                if term.name in vectors:
                    vectors[term.name][joint] += values[0]
                else:
                    others.append((joint, term, values))
        return others
