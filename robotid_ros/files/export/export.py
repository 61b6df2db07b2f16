"""The formats of `robotid export`, each registered once: a line of `EXPORT_FORMATS`."""

import csv
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple, TYPE_CHECKING

if TYPE_CHECKING:
    from .identified_model import IdentifiedModel


class Format(NamedTuple):
    """A format, whose writer is imported when it is used."""

    suffix: str  # behind the robot's name where no file is named
    module: str
    function: str  # of an `IdentifiedModel`
    option: str = ''  # of `write` that it takes, if it does


EXPORT_FORMATS = {
    'mjcf': Format('.xml', 'simulators', 'mjcf', 'folders'),
    'sdf': Format('.sdf', 'simulators', 'sdf'),
    'urdf': Format('.urdf', 'identified_urdf', 'urdf'),
    'isaaclab': Format('_isaaclab', 'simulators', 'isaaclab'),
    'ranges': Format('_ranges', 'ranges', 'ranges'),
    'ros2_controller': Format('_dynamics', 'ros2_controller', 'ros2_controller'),
    'moveit': Format('_moveit_controllers.yaml', 'ros2_controller', 'moveit'),
    'csv': Format('_parameters.csv', 'export', 'csv_table'),
}
# Columns of a table of parameters, which are the fields of its entries.
COLUMNS = ('name', 'joint', 'unit', 'value', 'sigma', 'percent', 'kind', 'combination', 'prior')


def write(
    name: str, model: 'IdentifiedModel', **options: Any
) -> tuple[dict[str, bytes], list[str]]:
    """Write a model in a format; return files by path, '' for a single one, and losses."""
    form = EXPORT_FORMATS[name]
    writer: Any = getattr(import_module(f'.{form.module}', __package__), form.function)
    content, notes = writer(model, **{k: v for k, v in options.items() if k == form.option})
    files = content if isinstance(content, dict) else {'': content}
    return {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}, notes


def csv_table(model: 'IdentifiedModel') -> tuple[str, list[str]]:
    """Return one row a parameter; `table` tells base from standard ones. Nothing is lost."""
    stream = StringIO()
    rows = csv.writer(stream, lineterminator='\n')
    rows.writerow(['table', *COLUMNS])
    for table in ('base', 'standard'):
        for entry in getattr(model.results, table):
            rows.writerow([table, *(getattr(entry, column) for column in COLUMNS)])
    return stream.getvalue(), []
