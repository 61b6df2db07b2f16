"""Shapes of links, as a description gives them, and the files of their meshes."""

from collections.abc import Mapping, Sequence
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from ....exceptions import FileError, RobotIdError
from ....plant.urdf_reading import origin_of
from ...configuration import from_mapping, resolve
from ..link_bodies import Array

PACKAGE = 'package://'
# Kinds of shapes, and how many numbers say their size.
COUNTS = {'box': 3, 'cylinder': 2, 'capsule': 2, 'sphere': 1, 'mesh': 0}


@dataclass(frozen=True)
class Shape:
    """
    A visual or collision element of a link.

    Attributes
    ----------
    visual : False for a collision element
    kind : of COUNTS
    place : H (4, 4) in the link's frame
    size : of a box three edges, else radius and length [m]
    mesh : URI of the file, and its scale (3,)
    rgba : colour, where one is given

    """

    visual: bool
    kind: str
    place: Array
    size: tuple[float, ...] = ()
    mesh: str = ''
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    rgba: tuple[float, ...] = ()


def read_shapes(root: ElementTree.Element) -> dict[str, list[Shape]]:
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


def _shape(element: ElementTree.Element, colours: Mapping[Any, ElementTree.Element]) -> Shape:
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


def find_mesh(uri: str, folders: Sequence[str | Path]) -> Path | None:
    """
    Find the file of a mesh.

    Parameters
    ----------
    uri : `package://`, `file://`, an absolute path, or one relative to a folder
    folders : where packages may be, besides those that ament knows

    """
    name = unquote(uri.removeprefix(PACKAGE))
    places = [Path(folder, name) for folder in folders if '://' not in name]
    with contextlib.suppress(FileError):
        places.append(resolve(uri))
    return next((place.absolute() for place in places if place.is_file()), None)


def mesh_folders_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the configuration of an identification says that packages are."""
    try:
        return from_mapping(settings).excitation.workspace.mesh_folders
    except RobotIdError:
        return ()
