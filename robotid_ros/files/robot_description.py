"""Robot descriptions: URDF, or xacro where its package is installed."""

from collections.abc import Collection
from pathlib import Path

from ..core.finding_codes import finding
from ..core.findings import Finding
from ..core.model.urdf_parsing import movable_joints, parse_urdf
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


def summarise_description(urdf: str, recorded: Collection[str] = ()) -> str:
    """
    Say in words which robot a description is of, and which of its joints were not recorded.

    Parameters
    ----------
    urdf : its text
    recorded : names of the joints of a recording

    """
    try:
        names, followers = movable_joints(urdf)
    except ModelError as error:
        return f'unusable, {error}'
    lacking = [name for name in names if name not in recorded and name not in followers]
    text = f"'{robot_name(urdf)}' with the joints {', '.join(names) or 'none'}"
    if recorded and lacking:
        text += f', without joint states of {", ".join(lacking)}'
    return text


def robot_name(urdf: str) -> str:
    """
    Return the robot's name in a description.

    Raises
    ------
    ModelError : malformed

    """
    return parse_urdf(urdf).get('name', '')


def other_robot_warning(identified: str | None, recorded: str | None) -> list[Finding]:
    """Compare the robots of parameters and recording by name and joints; None: unknown."""
    if identified is None or recorded is None:
        return []
    names = [robot_name(text) for text in (identified, recorded)]
    joints = [movable_joints(text)[0] for text in (identified, recorded)]
    if names[0] == names[1] and joints[0] == joints[1]:
        return []
    what = [f"'{name}' ({', '.join(each)})" for name, each in zip(names, joints, strict=True)]
    return [finding('other_robot', identified=what[0], recorded=what[1])]
