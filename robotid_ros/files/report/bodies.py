"""The links as bodies: mass, centre, principal inertias, ellipsoids of the same on the arm."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.model.parameters import INERTIAL
from ...core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ..results import Results

# Of the second moments of a body, as a share of the largest: below, an ellipsoid is flat.
FLAT = 1e-9


class LinkBody(NamedTuple):
    """A link by its mass [kg], centre (3,) [m] and inertia (3, 3) there [kg·m²], in its frame."""

    mass: float
    centre: np.ndarray
    inertia: np.ndarray

    @property
    def principal(self) -> np.ndarray:
        """Principal moments of inertia, ascending, (3,) [kg·m²]."""
        return np.asarray(np.linalg.eigvalsh(self.inertia))

    @property
    def shape(self) -> np.ndarray | None:
        """S (3, 3) [m²]: the solid ellipsoid xᵀ S⁻¹ x ≤ 1 has this mass and inertia; or None."""
        second = 0.5 * np.trace(self.inertia) * np.eye(3) - self.inertia
        least, *_, most = np.linalg.eigvalsh(second)
        if self.mass <= 0.0 or most <= 0.0 or least < -FLAT * most:
            return None
        return 5.0 * second / self.mass


def bodies_of(results: Results, which: str) -> dict[str, LinkBody]:
    """Return the bodies of the links by joint, of the 'value' or the 'prior' of the parameters."""
    values: dict[str, dict[str, float]] = {}
    for entry in results.standard:
        symbol = entry.name.rstrip('0123456789')
        value = getattr(entry, which)
        if symbol in INERTIAL and value is not None:
            values.setdefault(entry.joint, {})[symbol] = float(value)
    whole = {j: [v[s] for s in INERTIAL] for j, v in values.items() if set(INERTIAL) <= set(v)}
    return {j: LinkBody(*mass_properties(pseudo_inertia(np.array(v)))) for j, v in whole.items()}


def scene(
    frames: Mapping[str, Any], found: Mapping[str, LinkBody], before: Mapping[str, LinkBody]
) -> dict[str, Any] | None:
    """
    Describe a drawing of the links, which the page's script makes.

    Parameters
    ----------
    frames : of the links in the root's frame, (3, 4) each
    found, before : bodies by joint, identified ones and those of the description

    Returns
    -------
    `links` with origins and ellipsoids in the root's frame, `centre` and `reach` [m]; or None

    """
    links, points = list[dict[str, Any]](), list[np.ndarray]()
    for joint, rows in frames.items():
        frame = np.asarray(rows, dtype=float)
        if frame.shape != (3, 4) or not np.isfinite(frame).all():
            return None
        link: dict[str, Any] = {'name': joint, 'origin': frame[:, 3].round(5).tolist()}
        points.append(frame[:, 3])
        for name, body in (('found', found.get(joint)), ('before', before.get(joint))):
            if body is None or body.shape is None or not np.isfinite(body.mass):
                continue
            turned = frame[:, :3] @ body.shape @ frame[:, :3].T
            centre = frame[:, :3] @ body.centre + frame[:, 3]
            reach = np.sqrt(np.diag(turned))
            points += [centre - reach, centre + reach]
            link[name] = {'centre': centre.round(5).tolist(), 'shape': turned.round(8).tolist()}
        links.append(link)
    if not links:
        return None
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    half = float(np.linalg.norm(high - low)) / 2.0 or 1.0
    return {'links': links, 'reach': half, 'centre': (0.5 * (low + high)).tolist()}
