"""What an identification found, in the formats of other programs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .descriptions import srdf, urdf
from .identified_model import IdentifiedModel
from .inertials import inertials
from .simulators.mjcf import mjcf
from .simulators.sdf import sdf
from .simulators.shapes import mesh_folders_of
from .tables import csv_table, mat_structs, npz_arrays

Written = tuple[str | bytes, list[str]]


@dataclass(frozen=True)
class Options:
    """`mesh_folders` for MJCF: where packages are; `like` for inertials: file to follow."""

    mesh_folders: Sequence[str] = ()
    like: str = ''


def _mjcf(model: IdentifiedModel, options: Options) -> Written:
    return mjcf(model, [*options.mesh_folders, *mesh_folders_of(model.results.settings)])


WRITERS: dict[str, Callable[[IdentifiedModel, Options], Written]] = {
    'mjcf': _mjcf,
    'sdf': lambda model, _: sdf(model),
    'urdf': lambda model, _: urdf(model),
    'srdf': lambda model, _: srdf(model),
    'inertials': lambda model, options: inertials(model, options.like),
    'csv': lambda model, _: (csv_table(model.results), []),
    'mat': lambda model, _: (mat_structs(model.results), []),
    'npz': lambda model, _: (npz_arrays(model.results), []),
}
