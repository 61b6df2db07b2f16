"""
Build the direct model, which is integrated, from a robot and its standard parameters.

Friction without a jump goes into the stages of the integrator as it is. Friction with a jump is
split into an offset and F_c times the sign of a slip speed, and that sign is the integrator's: at
rest it is what holds the robot. The observation matrix takes the same signs, see `slip_columns`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import Array
from ...model.dynamics import model_with
from ...model.friction import FrictionTerm
from ...model.robot import Robot
from .direct_dynamics import DirectModel

# Friction that remembers its path is simulated as Coulomb's.
SYMMETRIC = ('coulomb', 'presliding')
DRY_FRICTION = (*SYMMETRIC, 'asymmetric_coulomb')


def direct_model(robot: Robot, chi: Array) -> DirectModel:
    """Build the direct model of a robot with standard parameters `chi` (p,)."""
    robot.check_no_mimic_joints('a replay')
    value = dict(
        zip((p.name for p in robot.parameters), np.asarray(chi, dtype=float), strict=True)
    )
    viscous, offset, coulomb = (np.zeros(robot.n) for _ in range(3))
    smooth: list[tuple[int, FrictionTerm, list[float]]] = []
    for j, terms in enumerate(robot.friction):
        for term in terms:
            values = [value[f'{symbol}{j + 1}'] for symbol in term.kind.symbols]
            if term.name == 'viscous':
                viscous[j] = values[0]
            elif term.name == 'offset':
                offset[j] += values[0]
            elif term.name in SYMMETRIC:
                coulomb[j] = values[0]
            elif term.name == 'asymmetric_coulomb':
                coulomb[j] += (values[0] + values[1]) / 2.0
                offset[j] += (values[0] - values[1]) / 2.0
            else:
                smooth.append((j, term, values))
    damping, coupled_inertia = _with_couplings(robot, value, viscous)
    slip = slip_directions(robot)
    own = coulomb[[j for j in range(robot.n) if _has_dry_friction(robot, j)]]
    coupled = [value[f'Fc{coupling.number}'] for coupling in robot.couplings]
    order = None if np.array_equal(robot.order, np.arange(robot.n)) else robot.order
    return DirectModel(
        model_with(robot, chi),
        damping,
        offset,
        slip,
        np.concatenate([own, coupled]),
        coupled_inertia,
        _summed(smooth, robot.n) if smooth else None,
        order,
    )


def _with_couplings(
    robot: Robot, value: dict[str, float], viscous: Array
) -> tuple[Array, Array | None]:
    """Return viscous friction with that of couplings, (n, n), and their inertia (n, n)."""
    if not robot.couplings:
        return viscous, None
    damping, inertia = np.diag(viscous), np.zeros((robot.n, robot.n))
    for coupling in robot.couplings:
        shape = np.outer(coupling.ratios, coupling.ratios)
        damping = damping + value[f'Fv{coupling.number}'] * shape
        inertia = inertia + value[f'Ia{coupling.number}'] * shape
    return damping, inertia


def slip_directions(robot: Robot) -> Array:
    """Return R, (m, n): slip speeds `R q̇` of joints with dry friction, then of couplings."""
    rows = [np.eye(robot.n)[j] for j in range(robot.n) if _has_dry_friction(robot, j)]
    rows += [coupling.ratios for coupling in robot.couplings]
    return np.array(rows).reshape(len(rows), robot.n)


def slip_columns(robot: Robot, slip: Array) -> list[tuple[int, Array]]:
    """
    Return the columns of dry friction in the observation matrix, with the signs that acted.

    Parameters
    ----------
    robot : whose parameters are the columns
    slip : (N, m) signs from a simulation

    Returns
    -------
    pairs of a column and its values (N, n)

    """
    result: list[tuple[int, Array]] = []
    directions, row = slip_directions(robot), 0
    for j, terms in enumerate(robot.friction):
        for term in terms:
            if term.name not in DRY_FRICTION:
                continue
            sign = slip[:, [row]] * directions[row]
            column = robot.column(f'{term.kind.symbols[0]}{j + 1}')
            if term.name in SYMMETRIC:
                result.append((column, sign))
            else:
                result.append((column, (directions[row] + sign) / 2.0))
                result.append((column + 1, (sign - directions[row]) / 2.0))
            row += 1
    for coupling in robot.couplings:
        result.append((robot.column(f'Fc{coupling.number}'), slip[:, [row]] * directions[row]))
        row += 1
    return result


def _has_dry_friction(robot: Robot, joint: int) -> bool:
    return any(term.name in DRY_FRICTION for term in robot.friction[joint])


def _summed(
    terms: list[tuple[int, FrictionTerm, list[float]]], n: int
) -> Callable[[Array, Array], Array]:
    """Return the sum of terms as a function of the joints' positions and velocities (n,)."""

    def friction(q: Array, dq: Array) -> Array:
        torque = np.zeros(n)
        for j, term, values in terms:
            columns = term.columns(q[j : j + 1], dq[j : j + 1])
            torque[j] += sum(c[0] * v for c, v in zip(columns, values, strict=True))
        return torque

    return friction
