"""Robot descriptions: URDF, or xacro where its package is installed."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
import os
from pathlib import Path
import re
from tempfile import TemporaryDirectory
from types import MappingProxyType
from xml.etree import ElementTree

import numpy as np

from ..core.findings import Finding, finding
from ..core.model.urdf_parsing import parse_urdf
from ..core.setup.joint_choice import JointTree
from ..exceptions import ConfigurationError, FileError, ModelError
from ..plant import urdf_reading
from .atomic import read_text

NO_ARGUMENTS: Mapping[str, str] = MappingProxyType({})


def read_description(path: str | Path, arguments: Mapping[str, str] = NO_ARGUMENTS) -> str:
    """Read a URDF; run xacro on the source of one. FileError, ModelError: it cannot be read."""
    text = read_text(path)
    if not text.strip():
        raise FileError(f"'{path}' is empty: give the right file")
    if '<xacro:' not in text and Path(path).suffix != '.xacro':
        if arguments:
            raise ConfigurationError(
                f"'{path}' is no xacro and takes no arguments: leave out "
                f'{next(iter(arguments))}:=…, or name its .xacro'
            )
        return text
    try:
        import xacro
        from xacro.substitution_args import ArgException
    except ImportError as error:
        raise FileError(
            f"'{path}' is the source of a xacro: pip install xacro, or give what "
            f"'xacro {Path(path).name}' prints"
        ) from error
    with _packages_beside(Path(path).absolute()):
        try:
            document = xacro.process_file(str(path), mappings=dict(arguments))
            return str(document.toprettyxml(indent='  '))
        except Exception as error:
            # Its own exceptions wrap others, and repeat what these say.
            cause: BaseException = error
            while inner := getattr(cause, 'exc', None):
                cause = inner
            if isinstance(cause, ArgException):
                raise ModelError(
                    f"'{path}' asks for an argument: add {cause}:=VALUE to 'robotid init', or "
                    f"give what 'xacro {Path(path).name} {cause}:=VALUE' prints"
                ) from error
            said = ' '.join(str(cause).split()).partition(', searching')[0]
            reason = said or type(cause).__name__
            if isinstance(cause, OSError) and cause.filename:
                name = cause.filename  # of a package, where that is
                reason = f"there is no '{os.path.realpath(name) if os.path.isabs(name) else name}'"
            elif isinstance(cause, RecursionError):
                reason = 'a file includes itself, or a macro calls itself, without an end'
            raise ModelError(
                f"xacro refuses '{path}' ({reason}): correct it; put the packages that it names "
                'beside its own, or source their workspace'
            ) from error


@contextmanager
def _packages_beside(path: Path) -> Iterator[None]:
    """
    Let `$(find …)` find, besides installed packages, checkouts in the folders above a file.

    The file's own package comes first, then the nearest ones.
    """
    known = os.environ.get('AMENT_PREFIX_PATH', '')
    with TemporaryDirectory() as prefix:
        index = Path(prefix, 'share', 'ament_index', 'resource_index', 'packages')
        index.mkdir(parents=True)
        folders = path.parents[:-1]  # not that of all files
        own = (folder / 'package.xml' for folder in folders)
        beside = chain(*(sorted(folder.glob('*/package.xml')) for folder in folders))
        for manifest in filter(Path.is_file, chain(own, beside)):
            text = manifest.read_text(errors='replace') if os.access(manifest, os.R_OK) else ''
            name = re.search(r'<name>\s*([\w-]+)\s*</name>', text)
            if name and not (index / name[1]).exists():  # the nearest one counts
                (index / name[1]).touch()
                Path(prefix, 'share', name[1]).symlink_to(manifest.parent)
        os.environ['AMENT_PREFIX_PATH'] = os.pathsep.join(filter(None, (known, prefix)))
        try:
            yield
        finally:
            os.environ['AMENT_PREFIX_PATH'] = known
            if not known:
                del os.environ['AMENT_PREFIX_PATH']


def summarise_description(urdf: str, recorded: Collection[str] = ()) -> str:
    """Say in words which robot a description is of, and which of its joints were not recorded."""
    try:
        tree = JointTree(urdf)
    except ModelError as error:
        return f'unusable, {error}'
    lacking = [name for name in tree.independent if name not in recorded]
    text = f"'{tree.name}' with the joints {', '.join(tree.movable) or 'none'}"
    if recorded and lacking:
        text += f', without joint states of {", ".join(lacking)}'
    return text


def other_robot_warning(identified: str | None, recorded: str | None) -> list[Finding]:
    """Compare the robots of parameters and recording by name and joints; None: unknown."""
    if identified is None or recorded is None:
        return []
    robots = [(tree.name, tree.movable) for tree in map(JointTree, (identified, recorded))]
    if robots[0] == robots[1]:
        return []
    ours, theirs = (f"'{name}' ({', '.join(joints)})" for name, joints in robots)
    return [finding('other_robot', identified=ours, recorded=theirs)]


# The body that a link without mass becomes [kg, m]: small beside any link.
LEAST_MASS, LEAST_RADIUS = 1e-3, 1e-2
# Radius of gyration that a repaired body has at least, over its largest: moments that are written
# with ten digits still fulfil A + B > C.
SLENDEREST = 1e-3


def repair_inertials(urdf: str, moving: Collection[str] = ()) -> tuple[str, dict[str, str]]:
    """Replace impossible inertials by the nearest possible; return the text, what was wrong."""
    root, sentences = parse_urdf(urdf), dict[str, str]()
    links = {link.get('name', ''): link for link in root.findall('link')}
    for name, body in urdf_reading.read_inertials(root).items():
        repaired, error = urdf_reading.make_consistent(body)
        became = ''
        if body[3, 3] == 0.0 and (
            name in moving or error > urdf_reading.INERTIA_TOLERANCE or body.any()
        ):
            reason, became = 'no mass', f'{LEAST_MASS:.3g} kg and '
            inertia = LEAST_MASS * LEAST_RADIUS**2 * np.eye(3)
            repaired = urdf_reading.pseudo_inertia(LEAST_MASS, np.zeros(3), inertia)
        elif error > urdf_reading.INERTIA_TOLERANCE:
            reason = f'moments of inertia {_moments(body)} kg·m², which no body has'
            mass, com, inertia = urdf_reading.inertial_at_com(repaired)
            least = SLENDEREST**2 * np.trace(inertia)  # of second moments, all above 0
            repaired = urdf_reading.pseudo_inertia(mass, com, inertia + 2.0 * least * np.eye(3))
        else:
            continue
        sentences[name] = f'{reason}; possible: {became}{_moments(repaired)} kg·m²'
        urdf_reading.write_inertial(links[name], repaired)
    return ElementTree.tostring(root, encoding='unicode'), sentences


def _moments(body: urdf_reading.Array) -> str:
    """Write the principal moments at the centre of mass."""
    moments = np.linalg.eigvalsh(urdf_reading.inertial_at_com(body)[2])
    return ', '.join(f'{moment:.3g}' for moment in moments)
