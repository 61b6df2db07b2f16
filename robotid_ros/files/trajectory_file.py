"""`trajectory.yaml`: a design with its evidence, exact to the last bit."""

from pathlib import Path
from typing import Any

from ..core.excitation.design import Design
from ..core.findings import as_data, from_data, Severity
from ..exceptions import ConfigurationError, TrajectoryError
from .atomic import new_names, read_text, write_text
from .bounded import damage_errors
from .yaml import dump_yaml, parse_yaml, to_plain

FORMAT = 'robotid_ros/trajectory/1'
# What a design says, with the severity of sentences in files of earlier versions.
SEVERITIES = {
    'notes': Severity.INFO,
    'unchecked': Severity.WARNING,
    'shortcomings': Severity.ERROR,
}


def write_design(path: str | Path, design: Design, *, overwrite: bool = True) -> Path:
    """Write a design; whole or not at all. Raises FileError where the file cannot be written."""
    return write_text(path, dump_design(design), overwrite=overwrite)


def save_design(folder: str | Path, robot: str, design: Design) -> Path:
    """Write a design under the robot's name and its hash, or return the file that holds it."""
    text, name = dump_design(design), f'{robot or "robot"}_trajectory_{design.trajectory.hash}'
    for path in new_names(Path(folder, f'{name}.yaml')):
        if not path.exists():
            return write_text(path, text, overwrite=False)
        if read_text(path) == text:
            break
    return path


def read_design(path: str | Path) -> Design:
    """Read what `write_design` wrote; TrajectoryError: no such file, or changed since then."""
    try:
        values = parse_yaml(read_text(path), str(path))
    except ConfigurationError as error:
        raise TrajectoryError(str(error)) from error
    if not isinstance(values, dict) or values.get('format') != FORMAT:
        raise TrajectoryError(
            f"'{path}' is not a trajectory file of this version: make one with 'robotid design'"
        )
    with damage_errors(path, 'design again', TrajectoryError):
        found = {
            name: [from_data(each, severity) for each in values.get(name, ())]
            for name, severity in SEVERITIES.items()
        }
    design = Design.from_dict({**values, **found})
    if design.trajectory.hash != values.get('hash'):
        raise TrajectoryError(
            f"'{path}' was changed after its design, its hash does not match: design it again"
        )
    return design


def dump_design(design: Design) -> str:
    """Describe a design as YAML text."""
    frequency = {'fundamental_frequency': 1.0 / design.trajectory.period}  # ω_f/2π [Hz]
    values: dict[str, Any] = {'format': FORMAT, 'hash': design.trajectory.hash, **frequency}
    found = {name: [to_plain(as_data(f)) for f in getattr(design, name)] for name in SEVERITIES}
    return dump_yaml({**values, **design.to_dict(), **found})
