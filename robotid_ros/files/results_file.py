"""The files of an identification: parameters.yaml, and torques.npz beside it."""

from collections.abc import Mapping
import dataclasses
from pathlib import Path

from ..core.finding_codes import as_data, from_data
from ..core.findings import Severity
from ..exceptions import FileError
from .atomic import read_text, write_text
from .bounded import damage_errors, read_series, write_series
from .results import Results, Torques, URDF
from .verification import read_verification, VERIFICATION
from .yaml import dump_yaml, from_plain, parse_yaml, to_plain

PARAMETERS = 'parameters.yaml'
TORQUES = 'torques.npz'
REPORT = 'report.html'
# What an identification writes.
RESULT_FILES = (PARAMETERS, TORQUES, URDF, REPORT)
FORMAT, SERVO_FORMAT = 1, 'servos-1'
# Words of earlier versions; all others are warnings.
SEVERITIES = {'note': Severity.INFO, 'serious': Severity.ERROR}
# What an identification of servos from commands writes.
MODEL, DESCRIPTION = 'identified.xml', 'description.urdf'
SERVO_FILES = (PARAMETERS, MODEL, DESCRIPTION)


def write_results(results: Results, folder: str | Path) -> Path:
    """
    Write `parameters.yaml` and `torques.npz`.

    Every number reads back bit for bit. Returns the path of `parameters.yaml`; raises FileError
    where the folder cannot be written.
    """
    plain = {f.name: to_plain(getattr(results, f.name)) for f in dataclasses.fields(results)}
    plain['findings'] = [to_plain(as_data(found)) for found in results.findings]
    del plain['torques'], plain['verification']
    if results.torques:
        write_series(Path(folder) / TORQUES, results.torques)
    return write_text(Path(folder) / PARAMETERS, dump_yaml({'format': FORMAT, **plain}))


def results_folder(path: str | Path) -> Path:
    """Return the folder of results, of which the path is, or of the `parameters.yaml` in it."""
    return Path(path) if Path(path).is_dir() else Path(path).parent


def read_results(path: str | Path) -> Results:
    """
    Read `parameters.yaml`, or the folder that holds it; torques too when they are beside it.

    Raises FileError where it is missing, or not what `write_results` writes.
    """
    path = Path(path, PARAMETERS) if Path(path).is_dir() else Path(path)
    if not path.exists():
        raise FileError(
            f"no such file: '{path}'; give a {PARAMETERS}, or the folder that robotid identify "
            'wrote it to'
        )
    content = parse_yaml(read_text(path), str(path))
    if isinstance(content, Mapping) and content.get('format') == SERVO_FORMAT:
        raise FileError(
            f"'{path}' holds servos that were identified from commands, no torques: use the "
            'identified.xml beside it in MuJoCo'
        )
    if not isinstance(content, Mapping) or content.get('format') != FORMAT:
        raise FileError(f"'{path}' holds no identified parameters: give a {PARAMETERS}")
    with damage_errors(path, 'identify again', FileError):
        names = (field.name for field in dataclasses.fields(Results))
        # Files of earlier versions lack others; without these one was cut short.
        values = {k: content[k] for k in names if k in content or k == 'history'}
        if 'findings' not in content:  # of earlier versions, with sentences
            severities = content.get('severities') or ['warning'] * len(content['warnings'])
            found = [
                from_data(str(text), SEVERITIES.get(severity, Severity.WARNING))
                for text, severity in zip(content['warnings'], severities, strict=True)
            ]
        elif isinstance(content['findings'], list):
            found = [from_data(each) for each in content['findings']]
        else:
            raise TypeError('findings are no list')
        values['findings'] = tuple(found)
        values['torques'] = read_series(path.with_name(TORQUES), Torques, 'identify again')
        verified = read_verification(path.with_name(VERIFICATION))
        # Of other parameters that were in this folder before, it says nothing.
        fits = verified is not None and verified.results == values['created']
        values['verification'] = verified if fits else None
        return from_plain(Results, values)
