"""Inertials of a description that no body can have, and the nearest that one can."""

from collections.abc import Collection
from xml.etree import ElementTree

import numpy as np

from ..core.model.urdf_parsing import parse_urdf
from ..plant.urdf_reading import (
    Array,
    INERTIA_TOLERANCE,
    inertial_at_com,
    make_consistent,
    pseudo_inertia,
    read_inertials,
    write_inertial,
)

# The body that a link without mass becomes [kg, m]: small beside any link.
LEAST_MASS, LEAST_RADIUS = 1e-3, 1e-2
# Radius of gyration that a repaired body has at least, over its largest: moments that are written
# with ten digits still fulfil A + B > C.
SLENDEREST = 1e-3


def repair_inertials(urdf: str, moving: Collection[str] = ()) -> tuple[str, dict[str, str]]:
    """
    Replace inertials that no body can have by the nearest possible ones.

    The mass distribution about the centre of mass loses its negative second moments: in the
    Frobenius norm, no possible body is nearer.

    Parameters
    ----------
    urdf : its text
    moving : links that must have a mass

    Returns
    -------
    The text with possible inertials, and by link what was wrong and what it became

    Raises
    ------
    ModelError : malformed

    """
    root, sentences = parse_urdf(urdf), dict[str, str]()
    links = {link.get('name', ''): link for link in root.findall('link')}
    for name, body in read_inertials(root).items():
        mass = body[3, 3]
        repaired, error = make_consistent(body)
        if mass == 0.0 and (name in moving or error > INERTIA_TOLERANCE or body.any()):
            reason = 'no mass'
            repaired = pseudo_inertia(
                LEAST_MASS, np.zeros(3), LEAST_MASS * LEAST_RADIUS**2 * np.eye(3)
            )
        elif error > INERTIA_TOLERANCE:
            moments = _moments(body)
            reason = f'moments of inertia {_listed(moments)} kg·m², of which '
            reason += (
                'one is negative'
                if moments[0] < 0.0
                else 'the largest exceeds the others together'
            )
            repaired = _thickened(repaired)
        else:
            continue
        became = f'{repaired[3, 3]:.3g} kg and ' if mass == 0.0 else ''
        sentences[name] = f'{reason}; possible: {became}{_listed(_moments(repaired))} kg·m²'
        write_inertial(links[name], repaired)
    return ElementTree.tostring(root, encoding='unicode'), sentences


def _thickened(body: Array) -> Array:
    """Return a body whose second moments are all above 0."""
    mass, com, inertia = inertial_at_com(body)
    least = SLENDEREST**2 * np.trace(inertia)
    return pseudo_inertia(mass, com, inertia + 2.0 * least * np.eye(3))


def _moments(body: Array) -> Array:
    """Return the principal moments at the centre of mass, ascending [kg·m²]."""
    return np.asarray(np.linalg.eigvalsh(inertial_at_com(body)[2]))


def _listed(moments: Array) -> str:
    return ', '.join(f'{moment:.3g}' for moment in moments)
