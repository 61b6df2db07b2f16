"""The formats of `robotid export`, each registered once: a line of `EXPORT_FORMATS`."""

from collections.abc import Sequence
from csv import writer
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple, TYPE_CHECKING

if TYPE_CHECKING:
    from .identified_model import IdentifiedModel


class Format(NamedTuple):
    """A format, whose writer is imported when it is used: a function of the format's name."""

    suffix: str  # behind the robot's name where no file is named
    module: str


EXPORT_FORMATS = {
    'mjcf': Format('.xml', 'simulators'),
    'sdf': Format('.sdf', 'simulators'),
    'urdf': Format('.urdf', 'identified_model'),
    'isaaclab': Format('_isaaclab', 'simulators'),
    'ranges': Format('_ranges', 'ranges'),
    'ros2_controller': Format('_dynamics', 'ros2_controller'),
    'moveit': Format('_moveit_controllers.yaml', 'ros2_controller'),
    'csv': Format('_parameters.csv', 'export'),
}
# Columns of a table of parameters, which are the fields of its entries.
COLUMNS = ('name', 'joint', 'unit', 'value', 'sigma', 'percent', 'kind', 'combination', 'prior')


def write(
    name: str, model: 'IdentifiedModel', folders: Sequence[str] = ()
) -> tuple[dict[str, bytes], list[str]]:
    """Write a model in a format; return files by path, '' for a single one, and losses."""
    function: Any = getattr(import_module(f'.{EXPORT_FORMATS[name].module}', __package__), name)
    content, notes = function(model, folders) if name == 'mjcf' else function(model)
    files = content if isinstance(content, dict) else {'': content}
    return {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}, notes


def csv(model: 'IdentifiedModel') -> tuple[str, list[str]]:
    """Return one row a parameter; `table` tells base from standard ones. Nothing is lost."""
    stream = StringIO()
    rows = writer(stream, lineterminator='\n')
    rows.writerow(['table', *COLUMNS])
    for table in ('base', 'standard'):
        for entry in getattr(model.results, table):
            rows.writerow([table, *(getattr(entry, column) for column in COLUMNS)])
    return stream.getvalue(), []
