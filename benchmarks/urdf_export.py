"""
Does `identified.urdf` load wherever the original does? On the robots of example-robot-data.

    python benchmarks/urdf_export.py [FOLDER] [--only WORD …] [--check]

FOLDER holds robot descriptions, at any depth; default: those of the pip package
`example-robot-data`, where it is installed. Of each the joints are identified, all of them and the
first half of them (the others locked, as fingers and other arms are), and given simulated
parameters: bodies that can exist, drawn around the prior, near it (as an identification changes a
good description) and far from it (as it changes a bad one). Asked of the text that is written:

pinocchio, mujoco : it loads, if the original does (`-` where the original does not; meshes and
    other geometry are left out)
same : largest difference of the parameters that it gives again from those that were written,
    relative to the largest of the link
bodies : links that had a physical body and have none now
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
import os
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from installed_robots import PACKAGE, robots_folder
import mujoco
import numpy as np
import pinocchio

from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.core.parameters.physical_consistency import link_coordinates, mass_properties
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.export.identified_model import identified_urdf, own_bodies

# How far the drawn bodies are from the prior: standard deviation of S^½, see `link_coordinates`.
NEAR, FAR = 0.1, 0.7
SAME = 1e-8


@dataclass
class Row:
    """What one description, half or whole, with bodies near or far, gave."""

    robot: str
    joints: int
    drawn: str
    loads: dict[str, bool | None]
    difference: float
    lost: int

    @property
    def good(self) -> bool:
        """Whether all is as it has to be."""
        return False not in self.loads.values() and self.difference < SAME and not self.lost

    def __str__(self) -> str:
        said = {True: 'yes', False: 'NO', None: '-'}
        loads = '  '.join(f'{said[x]:>9s}' for x in self.loads.values())
        name = f'{self.robot:32.32s} {self.joints:6d}  {self.drawn:4s}'
        return f'{name}  {loads}  {self.difference:8.1e}  {self.lost:6d}'


def descriptions(folder: Path | None, only: Sequence[str]) -> list[Path]:
    """Find the robot descriptions."""
    root = robots_folder(folder)
    found = [] if root is None else sorted(root.resolve().rglob('*.urdf'))
    return [path for path in found if not only or any(word in path.name for word in only)]


def simulated(robot: Robot, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Draw standard parameters of bodies that can exist."""
    chi = np.array(robot.prior)
    for start in robot.first_columns:
        root = np.eye(4) + spread * rng.normal(size=(4, 4))
        S = root @ root.T + 0.01 * np.eye(4)
        svec = [
            S[i, j] * (1.0 if i == j else np.sqrt(2.0)) for j in range(4) for i in range(j + 1)
        ]
        chi[start : start + 10] = link_coordinates(chi[start : start + 10]) @ svec
    friction = [k for k, p in enumerate(robot.parameters) if p.symbol in ('Fv', 'Fc', 'Ia')]
    chi[friction] = rng.uniform(0.1, 5.0, len(friction))
    return chi


def without_geometry(text: str) -> str:
    """Leave out what needs files beside the description, or names a material twice."""
    root = ElementTree.fromstring(text.encode())
    for link in root.findall('link'):
        for tag in ('visual', 'collision'):
            for element in link.findall(tag):
                link.remove(element)
    for element in root.findall('material'):
        root.remove(element)
    return ElementTree.tostring(root, encoding='unicode')


def loads_in_pinocchio(text: str) -> bool:
    """Whether Pinocchio reads it."""
    try:
        pinocchio.buildModelFromXML(without_geometry(text))
    except (ValueError, RuntimeError, IndexError):
        return False
    return True


def loads_in_mujoco(text: str) -> bool:
    """Whether MuJoCo compiles it."""
    try:
        mujoco.MjModel.from_xml_string(without_geometry(text))
    except ValueError:
        return False
    return True


LOADERS: dict[str, Callable[[str], bool]] = {
    'pinocchio': loads_in_pinocchio,
    'mujoco': loads_in_mujoco,
}


def difference(robot: Robot, chi: np.ndarray, again: Robot) -> float:
    """Return the largest difference of what the text gives again, relative."""
    worst = 0.0
    for start in robot.first_columns:
        link = slice(start, start + 10)
        size = np.abs(chi[link]).max()
        worst = max(worst, float(np.abs(again.prior[link] - chi[link]).max() / size))
    columns = [k for k, p in enumerate(robot.parameters) if p.symbol in ('Fv', 'Fc')]
    return max([worst, *np.abs(again.prior[columns] - chi[columns])])


def exists(body: np.ndarray) -> bool:
    """Whether a link has a mass, and principal moments that a body can have."""
    mass, _, central = mass_properties(body)
    principal = np.linalg.eigvalsh(central)
    return bool(mass > 0.0 and principal[0] > 0.0 and principal[0] + principal[1] > principal[2])


def lost_bodies(before: str, after: str) -> int:
    """Count the links that had a body that can exist and have none any more."""
    new = own_bodies(after)
    return sum(exists(body) and not exists(new[k]) for k, body in own_bodies(before).items())


def tried(path: Path) -> Iterator[Row]:
    """Write a description with simulated parameters, and look at it."""
    text = path.read_text()
    before = {name: load(text) for name, load in LOADERS.items()}
    whole = build_robot(text, RobotSettings())
    rng = np.random.default_rng(0)
    for count in sorted({len(whole.joints), (len(whole.joints) + 1) // 2}, reverse=True):
        settings = RobotSettings(joints=whole.joints[:count])
        robot = build_robot(text, settings)
        for drawn, spread in (('near', NEAR), ('far', FAR)):
            chi = simulated(robot, spread, rng)
            written = identified_urdf(robot, chi)
            loads = {k: load(written) if before[k] else None for k, load in LOADERS.items()}
            worst = difference(robot, chi, build_robot(written, settings))
            yield Row(path.stem, count, drawn, loads, worst, lost_bodies(text, written))


def main() -> int:
    """Find the robots and try them."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('folder', type=Path, nargs='?')
    parser.add_argument('--only', nargs='+', default=(), help='those whose name has such a word')
    parser.add_argument('--check', action='store_true', help='fail where one does not load')
    arguments = parser.parse_args()
    paths = descriptions(arguments.folder, arguments.only)
    if not paths:
        print(f'nothing to try: name a folder of URDFs, or pip install {PACKAGE}')
        return int(arguments.check)
    with TemporaryDirectory() as place:
        os.chdir(place)  # MuJoCo logs its warnings there
        bad = run(paths)
    return 1 if arguments.check and bad else 0


def run(paths: Sequence[Path]) -> int:
    """Try every robot; print, and count what is not good."""
    heads = ''.join(f'  {name:>9s}' for name in LOADERS)
    print(f'{"robot":32s} joints  drawn{heads[1:]}      same  bodies')
    rows, refused = [], 0
    for path in paths:
        try:
            for row in tried(path):
                print(row, flush=True)
                rows.append(row)
        except RobotIdError as error:
            refused += 1
            print(f'{path.stem:32.32s} is no robot that can be identified: {error}', flush=True)
    bad = sum(not row.good for row in rows)
    print(f'{len(paths)} robots, {refused} refused, {len(rows)} files written, {bad} not good')
    return bad


if __name__ == '__main__':
    sys.exit(main())
