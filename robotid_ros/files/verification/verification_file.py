"""`verification.yaml` beside the results that it is about; its runs in `verification.npz`."""

from collections.abc import Mapping
import dataclasses
from pathlib import Path

from ...core.verification.tracking import Tracking
from ...exceptions import FileError
from ..atomic import read_text, write_text
from ..torques_file import read_series, write_series
from ..yaml import dump_yaml, from_plain, parse_yaml, to_plain
from .values import Verification

VERIFICATION, SERIES = 'verification.yaml', 'verification.npz'
GAINS, GAINS_BEFORE = 'controller_gains.yaml', 'controller_gains_before.yaml'
FORMAT = 1


def write_verification(folder: Path, verification: Verification) -> Path:
    """
    Write both files; return the path of `verification.yaml`.

    Raises
    ------
    FileError : the folder cannot be written

    """
    plain = to_plain(dataclasses.replace(verification, series={}))
    del plain['series']
    write_series(folder / SERIES, verification.series)
    return write_text(folder / VERIFICATION, dump_yaml({'format': FORMAT, **plain}))


def read_verification(path: Path) -> Verification | None:
    """
    Read what `write_verification` wrote; None where there is no file.

    Raises
    ------
    FileError : it is damaged

    """
    if not path.exists():
        return None
    content = parse_yaml(read_text(path), str(path))
    try:
        if content.pop('format') != FORMAT:
            raise ValueError('another format')
        if lacking := {'tracking', 'efforts', 'gains', 'static'} - content.keys():
            raise KeyError(*sorted(lacking))
        series = read_series(path.with_name(SERIES), Tracking, 'verify again')
        return from_plain(Verification, {**content, 'series': series})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"'{path}' is damaged ({error}): verify again, or remove it") from error


def write_gains(
    path: Path, controller: str, gains: Mapping[str, Mapping[str, float]], comment: str
) -> Path:
    """
    Write gains as a parameter file that the controller's own configuration can load.

    Parameters
    ----------
    path : of the file; one of this name is replaced
    controller : full name, such as '/arm_controller'
    gains : {joint: {p, i, d}}
    comment : what they are, a line

    """
    parameters = {'gains': {joint: dict(values) for joint, values in gains.items()}}
    text = dump_yaml({controller: {'ros__parameters': parameters}})
    return write_text(path, f'# {comment}\n{text}')
