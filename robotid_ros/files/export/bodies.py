"""
The bodies and shapes of links: what a description says, and what identification changes.

Bodies are pseudo-inertia matrices (4, 4), see `core.parameters.physical_consistency`, which add up
at one frame and move to another by H P Hᵀ. Simulators join links that move as one.
"""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup
import numpy as np
import numpy.typing as npt
import pinocchio as pin

from ...core.model.urdf_parsing import parse_urdf, snap_angles
from ...exceptions import shortened
from ...plant.urdf_reading import (
    inertial_at_com,
    Joint,
    origin_of,
    principal_inertia,
    read_inertials,
    rigid_bodies,
    RigidBody,
)
from ..text_template import text_templates
from .identified_model import Drive, drives_of, IdentifiedModel

Array = npt.NDArray[np.float64]

TEMPLATES = Path(__file__).parent / 'descriptions'
# Least mass [kg] and principal moment [kg·m²] of a moving link: simulators refuse zeros. Least
# excess of two principal moments over the third, relative: they refuse less than none.
MIN_INERTIA, MIN_EXCESS = 1e-9, 1e-6
# Where links have to shrink: the lightest keep their bodies as long as they are together no more
# than this share of the new one, the others become that share of it.
SHARE = 0.25
# Of the triangle inequality, relative: what rounding in a description explains.
ROUNDING = 1e-6
# Kinds of shapes, and how many numbers say their size.
COUNTS = {'box': 3, 'cylinder': 2, 'capsule': 2, 'sphere': 1, 'mesh': 0}
# A body that changes by less than this, relative, stays as it is written.
UNCHANGED = 1e-12


def own_bodies(urdf: str) -> dict[str, Array]:
    """Return the body of each link alone, at the link's frame."""
    # Not by Pinocchio's Inertia, which refuses what no body has: a description may hold that.
    return read_inertials(ET.fromstring(urdf.encode()))


def is_physical(body: Array) -> bool:
    """Whether a simulator accepts a body: P positive definite (Wensing et al., 2018)."""
    mass, _, central = inertial_at_com(body)
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

    `total` is what all of them are together, `bodies` what each was, at the same frame; the moving
    link is the first receiver. Returns the body of the link that takes the difference, and factors
    of those that shrink.
    """
    old = np.sum(list(bodies.values()), axis=0)
    if np.abs(total - old).max() <= UNCHANGED * np.abs(old).max():
        return {}, {}
    for name in receivers:
        single = total - (old - bodies[name])
        if is_physical(single):
            return {name: single}, {}
    first, factors = receivers[0], dict[str, float]()
    if is_physical(total):
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


def explain_impossible(bodies: Sequence[RigidBody]) -> list[str]:
    """Say which bodies get another inertia, because none has what the description gives them."""
    found = []
    for body in bodies[1:]:
        mass, _, inertia = inertial_at_com(body.inertial)
        least, middle, most = np.linalg.eigvalsh(inertia)
        if mass > 0.0 and least + middle < (1.0 - ROUNDING) * most:
            found.append(body.name)
    sentence = (
        f'the description gives {shortened(found)} an inertia that no body has, which simulators '
        'refuse: the nearest one is written'
    )
    return [sentence] if found else []


@dataclass(frozen=True)
class Shape:
    """A visual or collision element of a link."""

    visual: bool  # False for a collision element
    kind: str  # of COUNTS
    place: Array  # H (4, 4) in the link's frame
    size: tuple[float, ...] = ()  # of a box three edges, else radius and length [m]
    mesh: str = ''  # URI of the file
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    rgba: tuple[float, ...] = ()  # colour, where one is given


def _read_shapes(root: ET.Element) -> dict[str, list[Shape]]:
    """Return the shapes of each link; what is malformed or of another kind is left out."""
    colours = {m.get('name'): m for m in root.findall('material')}
    found: dict[str, list[Shape]] = {}
    for link in root.findall('link'):
        shapes = found.setdefault(link.get('name', ''), [])
        for element in link:
            if element.tag in ('visual', 'collision'):
                with contextlib.suppress(ValueError, AttributeError, StopIteration):
                    shapes.append(_shape(element, colours))
    return found


def _shape(element: ET.Element, colours: Mapping[Any, ET.Element]) -> Shape:
    geometry = next(g for g in element.find('geometry') or () if g.tag in COUNTS)
    size = _numbers(geometry.get('size', ''))
    if geometry.tag in ('cylinder', 'capsule', 'sphere'):
        size = _numbers(f'{geometry.get("radius")} {geometry.get("length", "")}')
    scale = _numbers(geometry.get('scale', '1 1 1'))
    if len(size) != COUNTS[geometry.tag] or min(size, default=1.0) <= 0.0 or len(scale) != 3:
        raise ValueError
    material = element.find('material')
    if material is not None and material.find('color') is None:
        material = colours.get(material.get('name'))
    colour = None if material is None else material.find('color')
    return Shape(
        element.tag == 'visual',
        geometry.tag,
        origin_of(element),
        size,
        geometry.get('filename', ''),
        scale,
        () if colour is None else _numbers(colour.get('rgba', ''))[:4],
    )


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


@dataclass(frozen=True)
class Parts:
    """
    What descriptions of an identified robot consist of.

    Attributes
    ----------
    bodies, joints : as `rigid_bodies` has them; the joints that carry them
    shapes, drives : of links; of joints and couplings
    efforts : limits of the joints that no other one drives [N·m or N]

    """

    bodies: tuple[RigidBody, ...]
    joints: tuple[Joint, ...]
    shapes: dict[str, list[Shape]]
    drives: dict[str, Drive]
    efforts: dict[str, float]


def read_parts(model: IdentifiedModel) -> Parts:
    """Return the parts of an identified robot."""
    root, robot = parse_urdf(model.robot.urdf), model.robot
    snap_angles(root)
    bodies = rigid_bodies(root)
    joints = tuple(body.joint for body in bodies[1:])
    described = {j.name: Drive(damping=j.damping, friction=j.friction) for j in joints}
    known = dict(zip(robot.joints, robot.limits.effort, strict=True))
    efforts = {j.name: known.get(j.name, j.effort) for j in joints if j.mimic is None}
    return Parts(bodies, joints, _read_shapes(root), described | drives_of(model), efforts)


def comment(notes: Sequence[str]) -> 'ET.Element[Any]':
    """Return an XML comment of sentences; two hyphens may not stand in one."""
    lines = ['identified by robotid', *notes]
    return ET.Comment('\n  '.join(['', *lines]).replace('--', '- -') + '\n')


def render_description(name: str, values: Mapping[str, Any], **filters: Any) -> str:
    """Return a description from its template; filters write numbers with every digit."""
    templates = text_templates(
        TEMPLATES,
        comment=lambda notes: Markup(comment(notes).text),
        spaced=spaced,
        exact=lambda value: repr(float(value)),
        finite=np.isfinite,
        behind=np.matmul,
        place=lambda place: spaced([*place[:3, 3], *quaternion(place[:3, :3])]),
        position=lambda place: place[:3, 3],
        turn=lambda place: np.roll(quaternion(place[:3, :3]), 1),  # w first
        principal=principal_inertia,
        **filters,
    )
    return templates.get_template(name).render(values)


def quaternion(rotation: Array) -> Array:
    """Return a rotation (3, 3) as x, y, z, w."""
    return np.asarray(pin.Quaternion(np.ascontiguousarray(rotation)).coeffs())


def spaced(values: Iterable[float]) -> str:
    """Return numbers with every digit and spaces between; no minus before a zero."""
    return ' '.join(repr(float(value) + 0.0) for value in values)
