"""
The bodies and shapes of links: what a description says, and what identification changes.

Bodies are pseudo-inertia matrices (4, 4), see `core.parameters.physical_consistency`, which add up
at one frame and move to another by H P Hᵀ. Simulators join links that move as one.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
import contextlib
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup
import numpy as np
import pinocchio as pin

from ...core.arrays import Array
from ...core.model.urdf_parsing import parse_urdf, snap_angles
from ...exceptions import shortened
from ...plant import urdf_reading
from ..text_template import text_templates
from .identified_model import Drive, drives_of, EVERYTHING, explain_losses, IdentifiedModel

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
    """Return the body of each link alone, at the link's frame, also where none can be it."""
    return urdf_reading.read_inertials(ET.fromstring(urdf.encode()))


def is_physical(body: Array) -> bool:
    """Whether a simulator accepts a body: P positive definite (Wensing et al., 2018)."""
    mass, _, central = urdf_reading.inertial_at_com(body)
    principal = np.linalg.eigvalsh(central)
    excess = principal[0] + principal[1] - principal[2]
    return bool(
        mass > MIN_INERTIA and principal[0] > MIN_INERTIA and excess > MIN_EXCESS * principal[2]
    )


def distribute(
    total: Array, bodies: Mapping[str, Array], receivers: Sequence[str]
) -> dict[str, Array]:
    """
    Share a new body among the links that move as one, so that each of them can exist.

    The first receiver that can takes the difference. Where none can, heavy links shrink in
    proportion and the first one, the moving link, takes the rest, P − Σ s_i P_i ≻ 0. Bodies are at
    the same frame. Returns those of the links that change.
    """
    old = np.sum(list(bodies.values()), axis=0)
    if np.abs(total - old).max() <= UNCHANGED * np.abs(old).max():
        return {}
    for name in receivers:
        single = total - (old - bodies[name])
        if is_physical(single):
            return {name: single}
    first, smaller = receivers[0], dict[str, Array]()
    others = {name: body for name, body in bodies.items() if name != first}
    if is_physical(total):
        root = np.linalg.inv(np.linalg.cholesky(total))

        def share(body: Array) -> float:
            """Return λ_max(P⁻¹ B): B ⪯ λ P."""
            return float(np.linalg.eigvalsh(root @ body @ root.T)[-1])

        # P − Σ s_i P_i ⪰ (1 − 2 SHARE) P with the factors of the links that need one.
        kept, heavy = np.zeros((4, 4)), dict[str, Array]()
        for name, body in sorted(others.items(), key=lambda item: float(item[1][3, 3])):
            if not body.any() or share(kept + body) <= SHARE:
                kept = kept + body
            else:
                heavy[name] = body
        factor = SHARE / share(np.sum(list(heavy.values()), axis=0)) if heavy else 1.0
        smaller = {name: factor * body for name, body in heavy.items()}
    return {first: total - np.sum([*{**others, **smaller}.values()], axis=0), **smaller}


class Shape(NamedTuple):
    """A visual or collision element of a link."""

    visual: bool  # False for a collision element
    kind: str  # of COUNTS
    place: Array  # H (4, 4) in the link's frame
    size: tuple[float, ...]  # of a box three edges, else radius and length [m]
    mesh: str  # URI of the file
    scale: tuple[float, ...]
    rgba: tuple[float, ...]  # colour, where one is given


def _shape(element: ET.Element, colours: Mapping[Any, ET.Element]) -> Shape:
    """Read a shape; ValueError, AttributeError, StopIteration: malformed, or of another kind."""

    def numbers(text: str) -> tuple[float, ...]:
        return tuple(map(float, text.split()))

    geometry = next(g for g in element.find('geometry') or () if g.tag in COUNTS)
    size = numbers(geometry.get('size', ''))
    if geometry.tag in ('cylinder', 'capsule', 'sphere'):
        size = numbers(f'{geometry.get("radius")} {geometry.get("length", "")}')
    scale = numbers(geometry.get('scale', '1 1 1'))
    if len(size) != COUNTS[geometry.tag] or min(size, default=1.0) <= 0.0 or len(scale) != 3:
        raise ValueError
    material = element.find('material')
    if material is not None and material.find('color') is None:
        material = colours.get(material.get('name'))
    colour = None if material is None else material.find('color')
    rgba = () if colour is None else numbers(colour.get('rgba', ''))[:4]
    visual, mesh = element.tag == 'visual', geometry.get('filename', '')
    return Shape(visual, geometry.tag, urdf_reading.origin_of(element), size, mesh, scale, rgba)


class Parts(NamedTuple):
    """What descriptions of an identified robot consist of."""

    bodies: tuple[urdf_reading.RigidBody, ...]  # as `rigid_bodies` has them
    joints: tuple[urdf_reading.Joint, ...]  # that carry them
    shapes: dict[str, list[Shape]]  # of links
    drives: dict[str, Drive]  # of joints and couplings
    efforts: dict[str, float]  # limits of the joints that no other one drives [N·m or N]
    notes: list[str]  # of what is lost, and of bodies that none can be


def read_parts(model: IdentifiedModel, kept: Set[str] = EVERYTHING) -> Parts:
    """Return the parts of an identified robot in a format that keeps some of its model."""
    root, robot = parse_urdf(model.robot.urdf), model.robot
    snap_angles(root)
    bodies = urdf_reading.rigid_bodies(root)
    joints = tuple(body.joint for body in bodies[1:])
    described = {j.name: Drive(damping=j.damping, friction=j.friction) for j in joints}
    known = dict(zip(robot.joints, robot.limits.effort, strict=True))
    efforts = {j.name: known.get(j.name, j.effort) for j in joints if j.mimic is None}
    colours, shapes = {m.get('name'): m for m in root.findall('material')}, {}
    for link in root.findall('link'):
        shapes[link.get('name', '')] = own = list[Shape]()
        for element in (each for each in link if each.tag in ('visual', 'collision')):
            with contextlib.suppress(ValueError, AttributeError, StopIteration):
                own.append(_shape(element, colours))
    notes, impossible = explain_losses(model, kept), []
    for body in bodies[1:]:
        mass, _, inertia = urdf_reading.inertial_at_com(body.inertial)
        least, middle, most = np.linalg.eigvalsh(inertia)
        if mass > 0.0 and least + middle < (1.0 - ROUNDING) * most:
            impossible.append(body.name)
    if impossible:
        notes.append(
            f'the description gives {shortened(impossible)} an inertia that no body has, which '
            'simulators refuse: the nearest one is written'
        )
    return Parts(bodies, joints, shapes, described | drives_of(model), efforts, notes)


def comment(notes: Sequence[str]) -> str:
    """Return what an XML comment of sentences holds; two hyphens may not stand in one."""
    lines = ['', 'identified by robotid', *notes]
    return '\n  '.join(lines).replace('--', '- -') + '\n'


def render_description(name: str, values: Mapping[str, Any], **filters: Any) -> str:
    """Return a description from its template; filters write numbers with every digit."""
    templates = text_templates(
        TEMPLATES,
        comment=lambda notes: Markup(comment(notes)),
        spaced=spaced,
        exact=lambda value: repr(float(value)),
        finite=np.isfinite,
        behind=np.matmul,
        place=lambda place: spaced([*place[:3, 3], *quaternion(place[:3, :3])]),
        position=lambda place: place[:3, 3],
        turn=lambda place: np.roll(quaternion(place[:3, :3]), 1),  # w first
        principal=urdf_reading.principal_inertia,
        **filters,
    )
    return templates.get_template(name).render(values)


def quaternion(rotation: Array) -> Array:
    """Return a rotation (3, 3) as x, y, z, w."""
    return np.asarray(pin.Quaternion(np.ascontiguousarray(rotation)).coeffs())


def spaced(values: Iterable[float]) -> str:
    """Return numbers with every digit and spaces between; no minus before a zero."""
    return ' '.join(repr(float(value) + 0.0) for value in values)
