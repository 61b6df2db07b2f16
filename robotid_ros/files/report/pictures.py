"""Pictures as files of their own: the name says the format."""

from io import BytesIO
from pathlib import Path
from typing import Any

from ...exceptions import FileError
from ..atomic import write_bytes

FORMATS = ('.png', '.svg', '.pdf')
RESOLUTION = 110  # of pixels [1/inch]


def picture_format(path: str | Path) -> str:
    """
    Return the format that a name ends in, without the dot.

    Raises
    ------
    FileError : none of `FORMATS`

    """
    suffix = Path(path).suffix
    if suffix not in FORMATS:
        raise FileError(f"'{path}' is no picture: let its name end in {', '.join(FORMATS)}")
    return suffix.removeprefix('.')


def write_picture(path: str | Path, figure: Any) -> Path:
    """
    Write a figure of matplotlib.

    Raises
    ------
    FileError : the name says no format, or the file cannot be written

    """
    buffer = BytesIO()
    figure.savefig(buffer, format=picture_format(path), dpi=RESOLUTION)
    return write_bytes(path, buffer.getvalue())
