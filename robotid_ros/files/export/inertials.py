"""
Inertials as YAML, for descriptions that are xacros and load them.

Without an example the structure is that of franka_description's inertials.yaml, one entry a link.
With one, a file of the robot's own description package, its structure and whatever was not
identified are kept: that of franka_description, or of ur_description's physical_parameters.yaml.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from ...core.parameters.physical_consistency import mass_properties
from ...exceptions import ConfigurationError, FileError, reason_of, shortened
from ..atomic import read_text
from .bodies import Array, MOMENTS, own_bodies
from .identified_model import explain_losses, IdentifiedModel

AXES = ('x', 'y', 'z')
ANGLES = ('roll', 'pitch', 'yaw')
# Where ur_description has them.
GROUP, SECTIONS = 'inertia_parameters', ('center_of_mass', 'rotation', 'tensor')


def inertials(model: IdentifiedModel, like: str = '') -> tuple[str, list[str]]:
    """
    Write the inertials of all links that have a body, and sentences on what it does not hold.

    `like` is a file whose structure and other values are kept. FileError: it cannot be read;
    ConfigurationError: its structure is another one, or it names none of the links.
    """
    bodies = {name: body for name, body in own_bodies(model.robot.urdf).items() if body[3, 3] > 0}
    notes = explain_losses(model, set())
    if not like:
        content: dict[str, Any] = {name: _entry(body) for name, body in bodies.items()}
    else:
        content, left_out = _filled(_read(like), bodies, like)
        moving = {frame.name for frame in model.robot.model.frames if frame.parentJoint > 0}
        left_out = [link for link in left_out if link in moving]
        if left_out:
            notes.append(f"'{like}' has no place for {shortened(left_out)}: they are left out")
    head = '\n'.join(f'# {line}' for line in ('identified by robotid', *notes))
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return f'{head}\n{text}', notes


def _entry(body: Array) -> dict[str, Any]:
    """Return the entry of a link as franka_description has it."""
    mass, com, moments = _properties(body)
    origin = {'xyz': ' '.join(map(repr, com)), 'rpy': '0 0 0'}
    inertia = {name.removeprefix('i'): value for name, value in moments.items()}
    return {'origin': origin, 'mass': mass, 'inertia': inertia}


def _properties(body: Array) -> tuple[float, list[float], dict[str, float]]:
    """Return mass, centre of mass, and the moments at it along the link's axes."""
    mass, com, tensor = mass_properties(body)
    moments = tensor[np.triu_indices(3)].tolist()
    return mass, com.tolist(), dict(zip(MOMENTS, moments, strict=True))


def _read(path: str) -> dict[str, Any]:
    """Read a file as xacro does, which takes keys that are given twice, and aliases."""
    try:
        content = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise FileError(f"'{path}' is not valid YAML ({reason_of(error)}): repair it") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"'{path}' holds no inertials: give a file like {EXAMPLES}")
    return content


EXAMPLES = "franka_description's inertials.yaml or ur_description's physical_parameters.yaml"


def _filled(
    content: dict[str, Any], bodies: Mapping[str, Array], path: str
) -> tuple[dict[str, Any], list[str]]:
    """Put bodies in the places of a file's; returns those that have none, too."""
    group: Any = content.get(GROUP)
    known = isinstance(group, dict) and all(isinstance(group.get(s), dict) for s in SECTIONS)
    entries = [k for k, v in content.items() if isinstance(v, dict) and 'mass' in v]
    parts = list(group['tensor']) if known else entries
    links = {part: link for part in parts if (link := _link_of(str(part), [*bodies])) is not None}
    if not links:
        raise ConfigurationError(
            f"'{path}' names none of the links {shortened([*bodies])}, or is no file like "
            f'{EXAMPLES}'
        )
    left_out = [link for link in bodies if link not in links.values()]
    if not known:
        own = {part: {**content[part], **_entry(bodies[link])} for part, link in links.items()}
        return {**content, **own}, left_out
    group = {**group, **{section: dict(group[section]) for section in SECTIONS}}
    for part, link in links.items():
        mass, com, moments = _properties(bodies[link])
        group[f'{part}_mass'] = mass
        group['center_of_mass'][f'{part}_cog'] = dict(zip(AXES, com, strict=True))
        group['rotation'][part] = dict.fromkeys(ANGLES, 0.0)
        group['tensor'][part] = moments
    return {**content, GROUP: group}, left_out


def _link_of(part: str, links: Sequence[str]) -> str | None:
    """Return the one link with the name of a part, which may have a prefix and `_link`."""
    names = (part, f'{part}_link')
    found = [link for link in links if link in names]
    found = found or [link for link in links if link.endswith(tuple(f'_{n}' for n in names))]
    return found[0] if len(found) == 1 else None
