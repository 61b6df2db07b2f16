"""Robot descriptions: URDF, or xacro where its package is installed."""

from pathlib import Path

from ..exceptions import FileError, ModelError
from .atomic import read_text


def read_description(path: str | Path) -> str:
    """
    Read a URDF; run xacro on the source of one.

    Raises
    ------
    FileError : the file is missing, or xacro is not installed
    ModelError : xacro refuses it

    """
    text = read_text(path)
    if '<xacro:' not in text and Path(path).suffix != '.xacro':
        return text
    try:
        import xacro
    except ImportError as error:
        raise FileError(
            f"'{path}' is the source of a xacro: pip install xacro, or give what "
            f"'xacro {Path(path).name}' prints"
        ) from error
    try:
        return str(xacro.process_file(str(path)).toprettyxml(indent='  '))
    except Exception as error:
        reason = ' '.join(str(error).split()) or type(error).__name__
        raise ModelError(
            f"xacro refuses '{path}' ({reason}): correct it, or source the workspace of the "
            'packages that it names'
        ) from error
