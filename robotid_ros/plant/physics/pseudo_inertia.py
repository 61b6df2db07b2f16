"""
Inertials as pseudo-inertia matrices, in which every operation is a matrix product.

`P = [[S, m c], [m cᵀ, m]]` (4, 4) with `S = ∫ρ x xᵀ`; it moves to another frame by `T P Tᵀ`, adds
up over rigidly joined bodies, and is positive semidefinite exactly if some body has it.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def pseudo_inertia(mass: float, com: Array, inertia: Array) -> Array:
    """Pseudo-inertia (4, 4) from mass [kg], com (3,) [m] and the inertia (3, 3) at the com."""
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
    return np.block([[second, mass * com[:, None]], [mass * com[None, :], np.array([[mass]])]])


def inertial_at_origin(pseudo: Array) -> tuple[float, Array, Array]:
    """Mass, first moments (3,) and the inertia (3, 3) at the frame's origin."""
    second = pseudo[:3, :3]
    return float(pseudo[3, 3]), pseudo[:3, 3].copy(), np.trace(second) * np.eye(3) - second


def inertial_at_com(pseudo: Array) -> tuple[float, Array, Array]:
    """Mass, com (3,) and the inertia (3, 3) at the com; a body without mass has com 0."""
    mass = float(pseudo[3, 3])
    com = pseudo[:3, 3] / mass if mass > 0.0 else np.zeros(3)
    second = pseudo[:3, :3] - mass * np.outer(com, com)
    return mass, com, np.trace(second) * np.eye(3) - second


def make_consistent(pseudo: Array) -> tuple[Array, float]:
    """
    Make an inertial physically consistent: its second moments must not be negative.

    Returns
    -------
    The inertial, and the negative second moment at the com, relative to the trace.

    """
    mass, com, inertia = inertial_at_com(pseudo)
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(second)
    error = float(max(0.0, -values[0]) / max(np.abs(values).sum(), 1e-300))
    if error == 0.0:
        return pseudo, 0.0
    second = vectors * np.maximum(values, 0.0) @ vectors.T
    return pseudo_inertia(mass, com, np.trace(second) * np.eye(3) - second), error


def perturb_inertial(pseudo: Array, relative: float, random: np.random.Generator) -> Array:
    """
    Deform a body's mass distribution at random: `A P Aᵀ`, consistent for every A.

    Lengths and the root of the mass change by about half of `relative`, so that mass and inertia
    change by about `relative`; the com moves by that part of the body's size.
    """
    mass = pseudo[3, 3]
    size = np.sqrt(np.trace(pseudo[:3, :3]) / mass) if mass > 0.0 else 0.0
    change = np.eye(4)
    change[:3, :3] += 0.25 * relative * random.standard_normal((3, 3))
    change[:3, 3] += 0.5 * relative * size * random.standard_normal(3)
    change[3, 3] += 0.5 * relative * random.uniform(-1.0, 1.0)
    return np.asarray(change @ pseudo @ change.T)
