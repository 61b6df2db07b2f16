"""Reading a URDF: joints by name, locked ones lumped, angles that are almost right made right."""

import dataclasses
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pinocchio

from ...exceptions import ConfigurationError, ModelError, UnknownNameError
from .parameters import Array
from .settings import RobotSettings

MOVABLE = ('revolute', 'continuous', 'prismatic')
UNLIMITED = 1e30
# What a model takes from the elements of inertials and joints.
NUMBERS = {
    'mass': ('value',),
    'inertia': ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'),
    'origin': ('xyz', 'rpy'),
    'axis': ('xyz',),
}
# What rounding an angle to two decimals or more can cost [rad].
ALMOST = 6e-3


@dataclasses.dataclass(frozen=True)
class Description:
    """A URDF reduced to the identified joints; arrays follow `joints`, not the model's order."""

    name: str
    joints: tuple[str, ...]
    model: Any
    order: npt.NDArray[np.intp]
    prismatic: npt.NDArray[np.bool_]
    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    damping: Array
    dry_friction: Array
    warnings: tuple[str, ...]


def read_description(urdf: str, settings: RobotSettings) -> Description:
    """
    Read a URDF and reduce it to the joints of the configuration.

    Raises
    ------
    ModelError : malformed, without inertials, or with joints that cannot be handled
    UnknownNameError : a joint that the URDF lacks

    """
    root = _parse(urdf)
    elements = {str(joint.get('name')): joint for joint in root.findall('joint')}
    movable = tuple(k for k, joint in elements.items() if joint.get('type') in MOVABLE)
    joints = _select(elements, movable, settings)
    _check_types(elements, joints, settings)
    limits = {
        'lower': _limit(elements, joints, 'lower', -np.inf),
        'upper': _limit(elements, joints, 'upper', np.inf),
        'velocity': _limit(elements, joints, 'velocity', np.inf),
        'effort': _limit(elements, joints, 'effort', np.inf),
        'damping': _attribute(elements, joints, 'dynamics', 'damping', 0.0),
        'dry_friction': _attribute(elements, joints, 'dynamics', 'friction', 0.0),
    }
    warnings = _snap(root)
    model = _reduce(_build(root), joints, settings)
    _check_inertia(model)
    order = np.array([joints.index(name) for name in list(model.names)[1:]], dtype=np.intp)
    return Description(
        name=root.get('name') or 'robot',
        joints=joints,
        model=model,
        order=order,
        prismatic=np.array([elements[j].get('type') == 'prismatic' for j in joints]),
        **limits,
        warnings=warnings,
    )


def _parse(urdf: str) -> ElementTree.Element:
    if not urdf.strip():
        raise ModelError('the robot description is empty: give the text of a URDF')
    try:
        root = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ModelError(f'the robot description is not valid XML ({error}): repair it') from error
    if root.tag != 'robot':
        raise ModelError(
            f'the robot description starts with <{root.tag}>: give a URDF, which has <robot>'
        )
    _check_numbers(root)
    return root


def _check_numbers(root: ElementTree.Element) -> None:
    """Refuse what a parser of URDFs would leave out with a word on standard error only."""
    for parent in (*root.findall('link/inertial'), *root.findall('joint')):
        for element in parent.findall('*'):
            for key in NUMBERS.get(element.tag, ()):
                text = element.get(key, '0')
                if '$' in text:
                    raise ModelError(
                        f"the robot description holds '{text}', it is the source of a xacro: run "
                        'xacro on it first'
                    )
                try:
                    _ = [float(word) for word in text.split()]
                except ValueError as error:
                    raise ModelError(
                        f"{key} of <{element.tag}> in the robot description is '{text}': it must "
                        'be a number'
                    ) from error


def _select(
    elements: dict[str, ElementTree.Element], movable: tuple[str, ...], settings: RobotSettings
) -> tuple[str, ...]:
    for name in (*settings.joints, *settings.locked):
        if name not in movable:
            raise UnknownNameError('movable joint of the URDF', name, movable)
    if len(set(settings.joints)) < len(settings.joints):
        raise ConfigurationError("'joints' names a joint twice: name each one once")
    mimics = {k for k, joint in elements.items() if joint.find('mimic') is not None}
    joints = settings.joints or tuple(
        name for name in movable if name not in settings.locked and name not in mimics
    )
    both = set(joints) & set(settings.locked)
    if both:
        raise ConfigurationError(
            f'{", ".join(sorted(both))} is both identified and locked: take it out of one list'
        )
    if not joints:
        raise ModelError('the robot description has no movable joint: check the URDF')
    return joints


def _check_types(
    elements: dict[str, ElementTree.Element], joints: tuple[str, ...], settings: RobotSettings
) -> None:
    for name, joint in elements.items():
        if joint.get('type') in ('floating', 'planar'):
            raise ModelError(
                f'joint {name} is {joint.get("type")}: only arms on a fixed base can be '
                'identified, make it fixed'
            )
        mimic = joint.find('mimic')
        if mimic is None:
            continue
        master = mimic.get('joint')
        if name in joints or master in joints:
            raise ModelError(
                f'joint {name} mimics {master}: the two cannot be identified apart, '
                f'lock both or make {name} fixed'
            )


def _snap(root: ElementTree.Element) -> tuple[str, ...]:
    """
    Make angles exact that were written as a rounded multiple of π/2, such as 3.14 or 1.5708.

    Axes that are almost parallel give base parameters that no data can tell apart.
    """
    changed = []
    for joint in root.findall('joint'):
        origin = joint.find('origin')
        if origin is None or not origin.get('rpy'):
            continue
        words = str(origin.get('rpy')).split()
        exact = [_exact(word) for word in words]
        if any(e != w for e, w in zip(exact, words, strict=True)):
            origin.set('rpy', ' '.join(exact))
            if any(abs(float(e) - float(w)) > 1e-9 for e, w in zip(exact, words, strict=True)):
                changed.append(str(joint.get('name')))
    if not changed:
        return ()
    return (
        f'angles of {", ".join(changed)} were written as rounded multiples of π/2 and taken as '
        'exact: write more decimals in the URDF',
    )


def _exact(word: str) -> str:
    match = re.fullmatch(r'[-+]?\d*\.(\d{2,})', word)
    if match is None:
        return word
    value, decimals = float(word), len(match.group(1))
    quarter = round(value / (np.pi / 2))
    target = quarter * np.pi / 2
    # Rounded or cut off at its last decimal: anything else is a calibrated angle, left alone.
    if quarter == 0 or not 0.0 < abs(value - target) < min(10.0**-decimals, ALMOST):
        return word
    return repr(float(target))


def _build(root: ElementTree.Element) -> Any:
    for joint in root.findall('joint'):
        if joint.get('type') == 'continuous':
            joint.set('type', 'revolute')
            limit = joint.find('limit')
            if limit is None:
                limit = ElementTree.SubElement(
                    joint, 'limit', {'effort': str(UNLIMITED), 'velocity': str(UNLIMITED)}
                )
            limit.set('lower', str(-UNLIMITED))
            limit.set('upper', str(UNLIMITED))
        mimic = joint.find('mimic')
        if mimic is not None:
            joint.remove(mimic)
    try:
        return pinocchio.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
    except (ValueError, RuntimeError, IndexError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else 'unknown reason'
        raise ModelError(
            f'the robot description is not a usable URDF ({reason}): check it with check_urdf'
        ) from error


def _reduce(full: Any, joints: tuple[str, ...], settings: RobotSettings) -> Any:
    locked = [name for name in list(full.names)[1:] if name not in joints]
    missing = [name for name in joints if not full.existJointName(name)]
    if missing:
        raise ModelError(
            f'joint {missing[0]} is not connected to the root of the URDF: check its links'
        )
    q = pinocchio.neutral(full)
    for name in locked:
        q[full.joints[full.getJointId(name)].idx_q] = settings.locked.get(name, 0.0)
    if locked:
        model = pinocchio.buildReducedModel(full, [full.getJointId(k) for k in locked], q)
    else:
        model = full
    if len(settings.gravity) != 3:
        raise ConfigurationError("'gravity' must have three numbers, for example [0, 0, -9.81]")
    model.gravity.linear = np.array(settings.gravity)
    return model


def _check_inertia(model: Any) -> None:
    masses = [model.inertias[k + 1].mass for k in range(model.nv)]
    if not any(mass > 0.0 for mass in masses):
        raise ModelError(
            'the URDF has no inertials: give its links masses and inertias, rough ones suffice'
        )


def _limit(
    elements: dict[str, ElementTree.Element], joints: tuple[str, ...], key: str, default: float
) -> Array:
    values = _attribute(elements, joints, 'limit', key, default)
    unbounded = np.array([elements[j].get('type') == 'continuous' for j in joints])
    if key in ('lower', 'upper'):
        values = np.where(unbounded, default, values)
    return np.where(np.abs(values) >= UNLIMITED, default, values)


def _attribute(
    elements: dict[str, ElementTree.Element],
    joints: tuple[str, ...],
    tag: str,
    key: str,
    default: float,
) -> Array:
    result = []
    for joint in joints:
        child = elements[joint].find(tag)
        text = None if child is None else child.get(key)
        try:
            result.append(default if text is None else float(text))
        except ValueError as error:
            raise ModelError(
                f"{tag} {key} of joint {joint} is '{text}': it must be a number"
            ) from error
    return np.array(result)
