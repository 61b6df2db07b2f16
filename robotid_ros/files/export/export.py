"""The formats of `robotid export`, each registered once: a line of `FORMATS`."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from .identified_model import IdentifiedModel


@dataclass(frozen=True)
class Format:
    """
    A format, whose writer is imported when it is used.

    Attributes
    ----------
    suffix : put behind the robot's name where no file is named
    module, function : the writer, of an `IdentifiedModel`, or of the `Results` for a table
    options : that it takes, of those of `write`
    table : a table of parameters, which W and Y of a log can be written in too

    """

    suffix: str
    module: str
    function: str
    options: Sequence[str] = ()
    table: bool = False


FORMATS = {
    'mjcf': Format('.xml', 'mjcf', 'mjcf', ('folders',)),
    'sdf': Format('.sdf', 'sdf', 'sdf'),
    'urdf': Format('.urdf', 'identified_urdf', 'urdf'),
    'srdf': Format('.srdf', 'identified_urdf', 'srdf'),
    'inertials': Format('_inertials.yaml', 'inertials', 'inertials', ('like',)),
    'moveit': Format('_moveit_controllers.yaml', 'moveit', 'moveit'),
    'csv': Format('_parameters.csv', 'tables', 'csv_table', table=True),
    'mat': Format('_parameters.mat', 'tables', 'mat_structs', table=True),
    'npz': Format('_parameters.npz', 'tables', 'npz_arrays', table=True),
}


def write(
    name: str, model: 'IdentifiedModel', *, folders: Sequence[str] = (), like: str = ''
) -> tuple[bytes, list[str]]:
    """
    Write a model in a format.

    Parameters
    ----------
    name : of `FORMATS`
    model : what was identified
    folders : where the packages of meshes are, besides those of the configuration
    like : file whose structure inertials follow

    Returns
    -------
    The content of the file, and sentences on what it does not hold.

    """
    form = FORMATS[name]
    writer: Any = getattr(import_module(f'.{form.module}', __package__), form.function)
    if form.table:
        content, notes = writer(model.results), []
    else:
        given = {'folders': folders, 'like': like}
        content, notes = writer(model, **{option: given[option] for option in form.options})
    return content.encode() if isinstance(content, str) else content, notes
