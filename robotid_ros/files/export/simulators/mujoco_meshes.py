"""The meshes of an MJCF file: each of them once, and only those that MuJoCo reads."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from ....exceptions import shortened
from ...atomic import file_errors
from ..xml_text import spaced
from .shapes import find_mesh, Shape

FORMATS = ('.stl', '.obj', '.msh')


class Meshes:
    """The meshes of a file, each of them once; and those that MuJoCo could not read."""

    def __init__(self, assets: ET.Element, folders: Sequence[str | Path]) -> None:
        self._assets, self._folders = assets, folders
        self._names: dict[tuple[str, tuple[float, ...]], str] = {}
        self._missing: dict[str, None] = {}

    def add(self, shape: Shape) -> str | None:
        """Return the name of a shape's mesh, None where it has to be left out."""
        known = self._names.get((shape.mesh, shape.scale))
        if known is not None:
            return known
        path = find_mesh(shape.mesh, self._folders)
        if path is None or not _readable(path):
            self._missing[shape.mesh] = None
            return None
        name = f'{path.stem}_{len(self._names)}'
        scale = spaced(shape.scale)
        ET.SubElement(self._assets, 'mesh', name=name, file=str(path), scale=scale)
        self._names[shape.mesh, shape.scale] = name
        return name

    def notes(self) -> list[str]:
        """Say what is missing."""
        if not self._missing:
            return []
        return [
            f'meshes that were not found, or are no binary {", ".join(FORMATS)}, are left out: '
            f'{shortened([*self._missing])}; --mesh-folder names the folders of their packages'
        ]


def _readable(path: Path) -> bool:
    """Return whether MuJoCo reads a mesh: of STL it takes the binary kind."""
    if path.suffix.lower() != '.stl':
        return path.suffix.lower() in FORMATS
    with file_errors(path), path.open('rb') as stream:
        count = np.frombuffer(stream.read(84)[80:], '<u4')
    return len(count) == 1 and path.stat().st_size == 84 + 50 * int(count[0])
