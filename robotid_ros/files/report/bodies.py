"""The links as bodies: mass, centre, principal inertias, and ellipsoids of the same on the arm."""

from collections.abc import Mapping
import json
import math
from typing import Any, NamedTuple

import numpy as np

from ....core.model.parameters import in_effort_unit, INERTIAL
from ....core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ...results import Results, verdict_of
from ..html import number, row, section, table, turn_sliders

# Of the second moments of a body, as a share of the largest: below, an ellipsoid is flat.
FLAT = 1e-9


class Body(NamedTuple):
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


def bodies(results: Results) -> str:
    """Show the links' bodies, identified beside those of the description; empty without any."""
    found, before = bodies_of(results, 'value'), bodies_of(results, 'prior')
    if not found:
        return ''
    rows = [row(joint, *_cells(found[joint]), *_cells(before.get(joint, None))) for joint in found]
    effort = verdict_of(results).effort_unit
    columns = (('mass', 'kg'), ('centre', 'm'), ('principal inertias', 'kg·m²'))
    head = (
        'link of',
        *(f'{name} [{in_effort_unit(unit, effort)}]' for name, unit in columns),
        *(f'URDF: {name} [{unit}]' for name, unit in columns),
    )
    listed = table(
        head, rows, numeric=range(1, 7), caption='Links as bodies, in their joint’s frame'
    )
    return section(
        'Links',
        'The physically consistent bodies of identified.urdf, and as ellipsoids of the same mass '
        'and inertia on the arm; dashed: those of the robot description.',
        _picture(results, found, before) + listed,
        anchor='links',
    )


def bodies_of(results: Results, which: str) -> dict[str, Body]:
    """Return the bodies of the links by joint, of the 'value' or the 'prior' of the parameters."""
    values: dict[str, dict[str, float]] = {}
    for entry in results.standard:
        symbol = entry.name.rstrip('0123456789')
        value = getattr(entry, which)
        if symbol in INERTIAL and value is not None:
            values.setdefault(entry.joint, {})[symbol] = float(value)
    whole = {j: [v[s] for s in INERTIAL] for j, v in values.items() if set(INERTIAL) <= set(v)}
    return {j: Body(*mass_properties(pseudo_inertia(np.array(v)))) for j, v in whole.items()}


def _cells(body: Body | None) -> list[str]:
    if body is None:
        return [number(None)] * 3
    centre = ', '.join(f'{value:.3f}' for value in body.centre)
    principal = ', '.join(f'{value:.3g}' for value in body.principal)
    return [
        number(body.mass, '.4g'),
        f'<td class="n">{centre}</td>',
        f'<td class="n">{principal}</td>',
    ]


def _picture(results: Results, found: Mapping[str, Body], before: Mapping[str, Body]) -> str:
    """Return a drawing that the page's script makes, of bodies in the root's frame."""
    links, points = list[dict[str, Any]](), list[np.ndarray]()
    for joint, rows in results.frames.items():
        frame = np.asarray(rows, dtype=float)
        if frame.shape != (3, 4) or not np.isfinite(frame).all():
            return ''
        link: dict[str, Any] = {'name': joint, 'origin': frame[:, 3].round(5).tolist()}
        points.append(frame[:, 3])
        for name, bodies_ in (('found', found), ('before', before)):
            body = bodies_.get(joint)
            shape = None if body is None else body.shape
            if body is None or shape is None or not math.isfinite(body.mass):
                continue
            turned = frame[:, :3] @ shape @ frame[:, :3].T
            centre = frame[:, :3] @ body.centre + frame[:, 3]
            reach = np.sqrt(np.diag(turned))
            points += [centre - reach, centre + reach]
            link[name] = {'centre': centre.round(5).tolist(), 'shape': turned.round(8).tolist()}
        links.append(link)
    if not links:
        return ''
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    half = float(np.linalg.norm(high - low)) / 2.0 or 1.0
    scene = {'links': links, 'reach': half, 'centre': (0.5 * (low + high)).tolist()}
    text = json.dumps(scene).replace('</', '<\\/').replace('<!--', '<\\u0021--')
    return (
        '<div class="bodies"><svg viewBox="0 0 420 420" role="img" tabindex="0" aria-label="The '
        'links as ellipsoids on the arm, see the table below; arrow keys turn it">'
        '<title>Links as ellipsoids</title></svg>'
        f'{turn_sliders()}<script type="application/json">{text}</script></div>'
    )
