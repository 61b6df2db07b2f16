"""
The bodies of links that move as one: what a description says, and what identification changes.

Bodies are pseudo-inertia matrices (4, 4), see `core.parameters.physical_consistency`, which add up
at one frame and move to another by H P Hᵀ.
"""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from ...core.parameters.physical_consistency import mass_properties
from ...plant.urdf_reading import read_inertials

Array = npt.NDArray[np.float64]

MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
# Least mass [kg] and principal moment [kg·m²] of a moving link: simulators refuse zeros. Least
# excess of two principal moments over the third, relative: they refuse less than none.
MIN_INERTIA, MIN_EXCESS = 1e-9, 1e-6
# Where links have to shrink: the lightest keep their bodies as long as they are together no more
# than this share of the new one, the others become that share of it.
SHARE = 0.25
# A body that changes by less than this, relative, stays as it is written.
UNCHANGED = 1e-12


def own_bodies(urdf: str) -> dict[str, Array]:
    """Return the body of each link alone, at the link's frame."""
    # Not by Pinocchio's Inertia, which refuses what no body has: a description may hold that.
    return read_inertials(ElementTree.fromstring(urdf.encode()))


def is_physical(body: Array) -> bool:
    """
    Whether a body is one that a simulator accepts.

    Its pseudo-inertia matrix must be positive definite (Wensing et al., 2018).
    """
    mass, _, central = mass_properties(body)
    principal = np.linalg.eigvalsh(central)
    excess = principal[0] + principal[1] - principal[2]
    return bool(
        mass > MIN_INERTIA and principal[0] > MIN_INERTIA and excess > MIN_EXCESS * principal[2]
    )


def distribute(
    total: Array, bodies: Mapping[str, Array], receivers: Sequence[str]
) -> tuple[dict[str, Array], dict[str, float]]:
    """
    Share a new body among the links that move as one, so that each of them can exist.

    The first receiver that can takes the difference, all others keep their bodies. Where none can,
    heavy links shrink in proportion and the first receiver takes the rest, P − Σ s_i P_i ≻ 0.

    Parameters
    ----------
    total : what all of them are together
    bodies : what each was, at the same frame
    receivers : who may take the difference, the moving link first

    Returns
    -------
    The body of the link that takes the difference, and factors of those that shrink.

    """
    old = np.sum(list(bodies.values()), axis=0)
    if np.abs(total - old).max() <= UNCHANGED * np.abs(old).max():
        return {}, {}
    for name in receivers:
        single = total - (old - bodies[name])
        if is_physical(single):
            return {name: single}, {}
    first = receivers[0]
    if not is_physical(total):
        return {first: total - (old - bodies[first])}, {}
    factors = _shrunk(total, {name: body for name, body in bodies.items() if name != first})
    others = [factors.get(name, 1.0) * body for name, body in bodies.items() if name != first]
    return {first: total - np.sum(others, axis=0)}, factors


def _shrunk(total: Array, others: Mapping[str, Array]) -> dict[str, float]:
    """Return factors with which P − Σ s_i P_i ⪰ (1 − 2 SHARE) P, of the links that need one."""
    root = np.linalg.inv(np.linalg.cholesky(total))

    def share(body: Array) -> float:
        """Return λ_max(P⁻¹ B): B ⪯ λ P."""
        return float(np.linalg.eigvalsh(root @ body @ root.T)[-1])

    kept, heavy = np.zeros((4, 4)), dict[str, Array]()
    for name, body in sorted(others.items(), key=lambda item: float(item[1][3, 3])):
        if not body.any() or share(kept + body) <= SHARE:
            kept = kept + body
        else:
            heavy[name] = body
    factor = SHARE / share(np.sum(list(heavy.values()), axis=0))
    return dict.fromkeys(heavy, factor)
