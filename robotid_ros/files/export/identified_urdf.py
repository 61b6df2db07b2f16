"""Identified robot description: the original text with new inertials and joint dynamics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
import xml.etree.ElementTree as ElementTree

import numpy as np
import pinocchio as pin

from ...core.model.parameters import from_pinocchio, INERTIAL
from ...exceptions import ModelError
from .urdf_editing import apply_edits, Edit, Element, placement_edit, Scanner

if TYPE_CHECKING:
    from ...core.model import Robot

# Least mass [kg] and principal moment [kg·m²] of a moving link: simulators refuse zeros.
MIN_INERTIA = 1e-9


def identified_urdf(robot: 'Robot', chi: np.ndarray) -> str:
    """
    Write identified parameters into the robot's description; all else stays byte for byte.

    The parameters of a joint are those of all that moves with it. Links fixed to the moving link
    keep their inertials and the moving link takes the difference; where that would not be a
    physical body the moving link takes everything and the fixed ones none.

    Rotor inertia and torque offset have no place in a URDF: they stand in a comment.

    Parameters
    ----------
    robot : the robot
    chi : (p,) standard parameters, physically consistent ones

    Raises
    ------
    ModelError : the description is not XML, or lacks a joint

    """
    data = robot.urdf.encode()
    found = Scanner(data)
    values = {
        (parameter.joint, parameter.symbol): float(value)
        for parameter, value in zip(robot.parameters, chi, strict=True)
    }
    own = _own_inertias(robot.urdf)
    edits: list[Edit] = []
    for joint in robot.links:
        if joint not in found.joints:
            raise ModelError(f"the robot description has no joint '{joint}'")
        element = found.joints[joint]
        lumped = np.array([values[joint, symbol] for symbol in INERTIAL])
        inertia = robot.model.inertias[robot.model.getJointId(joint)]
        prior = from_pinocchio(inertia.toDynamicParameters())
        rest = _fixed_links(found, element.child, robot.links)
        edits += _link_edits(found, element.child, rest, lumped, own[element.child] - prior)
        edits.append(_dynamics(element, joint, values))
    return apply_edits(data, edits)


def _link_edits(
    found: Scanner, link: str, fixed: Sequence[str], lumped: np.ndarray, offset: np.ndarray
) -> list[Edit]:
    """
    Give a moving link what was identified.

    Parameters
    ----------
    found : where everything is
    link, fixed : the moving link, and the links fixed to it
    lumped : (10,) identified parameters of them together
    offset : (10,) the moving link's old parameters less those of all together

    """
    single = lumped + offset
    if is_physical(single) or not is_physical(lumped):
        return [_inertial(found.links[link], single)]
    spans = [found.links[name].span for name in fixed]
    note = '<!-- inertial: part of the moving link -->'
    return [
        _inertial(found.links[link], lumped),
        *((*span, note) for span in spans if span is not None),
    ]


def _own_inertias(urdf: str) -> dict[str, np.ndarray]:
    """Parameters (10,) `XX … M` of each link alone, at its own frame."""
    return {
        link.get('name', ''): _parameters(link.find('inertial'))
        for link in ElementTree.fromstring(urdf.encode()).findall('link')
    }


def _parameters(inertial: ElementTree.Element | None) -> np.ndarray:
    if inertial is None:
        return np.zeros(len(INERTIAL))
    origin, inertia = inertial.find('origin'), inertial.find('inertia')
    mass = float(_attribute(inertial.find('mass'), 'value', '0'))
    com = np.array(_attribute(origin, 'xyz', '0 0 0').split(), float)
    rotation = pin.rpy.rpyToMatrix(np.array(_attribute(origin, 'rpy', '0 0 0').split(), float))
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    xx, xy, xz, yy, yz, zz = (float(_attribute(inertia, name, '0')) for name in names)
    central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    shift = mass * (com @ com * np.eye(3) - np.outer(com, com))
    tensor = rotation @ central @ rotation.T + shift
    return np.array([*tensor[np.triu_indices(3)], *mass * com, mass])


def _attribute(element: ElementTree.Element | None, name: str, default: str) -> str:
    return default if element is None else element.get(name, default)


def _fixed_links(found: Scanner, link: str, moving: Sequence[str]) -> list[str]:
    """Links that move with `link`, below joints that are not identified."""
    below = [j.child for j in found.joints.values() if j.parent == link and j.name not in moving]
    return [name for child in below for name in (child, *_fixed_links(found, child, moving))]


def is_physical(inertia: np.ndarray) -> bool:
    """
    Whether (10,) parameters `XX … M` are those of a body that a simulator accepts.

    The pseudo-inertia matrix must be positive definite (Wensing et al., 2018).
    """
    mass, _, central = _mass_properties(inertia)
    principal = np.linalg.eigvalsh(central)
    return bool(
        mass > MIN_INERTIA
        and principal[0] > MIN_INERTIA
        and principal[0] + principal[1] >= principal[2]
    )


def _mass_properties(inertia: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass and inertia (3, 3) at it, of (10,) parameters `XX … M`."""
    xx, xy, xz, yy, yz, zz, *first, mass = inertia
    com = np.asarray(first) / mass if mass else np.zeros(3)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, com, tensor - mass * (com @ com * np.eye(3) - np.outer(com, com))


def _inertial(link: Element, inertia: np.ndarray) -> Edit:
    """Replace a link's `<inertial>`, given (10,) parameters at the link frame."""
    mass, com, central = _mass_properties(inertia)
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    moments = ' '.join(
        f'{name}="{_exact(value)}"'
        for name, value in zip(names, central[np.triu_indices(3)], strict=True)
    )
    text = (
        f'<inertial>\n      <origin xyz="{" ".join(map(_exact, com))}" rpy="0 0 0"/>\n'
        f'      <mass value="{_exact(mass)}"/>\n      <inertia {moments}/>\n    </inertial>'
    )
    return placement_edit(link, text, 'link')


def _dynamics(joint: Element, name: str, values: dict[tuple[str, str], float]) -> Edit:
    damping = max(values.get((name, 'Fv'), 0.0), 0.0)
    friction = max(values.get((name, 'Fc'), 0.0), 0.0)
    text = f'<dynamics damping="{_exact(damping)}" friction="{_exact(friction)}"/>'
    rest = [
        f'{symbol} {_exact(value)}'
        for (owner, symbol), value in values.items()
        if owner == name and symbol not in (*INERTIAL, 'Fv', 'Fc')
    ]
    if rest:
        text += f'\n    <!-- identified too: {", ".join(rest)} -->'
    return placement_edit(joint, text, 'joint')


def _exact(value: float) -> str:
    return repr(float(value))
