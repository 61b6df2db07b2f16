"""The wheel holds all that the command line and the library need, and finds it where it is."""

import os
from pathlib import Path
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, '-m', 'pip', '--disable-pip-version-check', '--no-input')


def outside() -> dict[str, str]:
    """Environment in which nothing leads to this repository or to packages of ROS."""
    return {k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'AMENT_PREFIX_PATH')}


@pytest.fixture(scope='module')
def wheel(tmp_path_factory) -> Path:
    """Build it from a copy, which a build leaves its traces in."""
    folder = tmp_path_factory.mktemp('wheel')
    names = ('robotid_ros', 'config', 'launch', 'resource', 'urdf', 'README.md', 'package.xml')
    for name in (*names, 'setup.py', 'setup.cfg', 'pyproject.toml', 'LICENSE'):
        source, target = ROOT / name, folder / 'source' / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns('__pycache__'))
        else:
            shutil.copy(source, target)
    command = [*PIP, 'wheel', '-q', '--no-deps', '--no-build-isolation', '--no-index', '-w']
    command += [str(folder), str(folder / 'source')]
    done = subprocess.run(command, capture_output=True, text=True, env=outside(), cwd=folder)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob('*.whl')
    return path


def test_every_file_is_in_it(wheel: Path):
    held = set(zipfile.ZipFile(wheel).namelist())
    data = f'{"-".join(wheel.name.split("-")[:2])}.data/data/share/robotid_ros'
    for folder in ('config', 'launch', 'urdf'):
        files = [f for f in (ROOT / folder).rglob('*') if f.is_file() and f.suffix != '.pyc']
        assert {f'{data}/{f.relative_to(ROOT)}' for f in files} <= held
    source = {
        str(f.relative_to(ROOT))
        for f in (ROOT / 'robotid_ros').rglob('*')
        if f.is_file() and f.parent.name != '__pycache__'
    }
    assert source <= held
    assert not any(name.startswith(('test/', 'benchmarks/')) for name in held)


def test_it_declares_what_it_needs(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    (name,) = (n for n in archive.namelist() if n.endswith('.dist-info/METADATA'))
    metadata = archive.read(name).decode()
    needed = {line.split()[1].split('>')[0] for line in metadata.splitlines() if is_core(line)}
    assert {'jinja2', 'numpy', 'pin', 'scipy', 'rich'} <= needed
    assert not {'mujoco', 'rclpy', 'ros-jazzy-rclpy'} & needed
    for extra in ('sim', 'ros', 'formats', 'dev'):
        assert f'Provides-Extra: {extra}' in metadata


def is_core(line: str) -> bool:
    return line.startswith('Requires-Dist') and 'extra ==' not in line


def test_what_is_installed_finds_its_files_without_ament(wheel: Path, tmp_path: Path):
    command = [*PIP, 'install', '-q', '--no-deps', '--no-index', '--prefix', str(tmp_path / 'p')]
    subprocess.run([*command, '--ignore-installed', str(wheel)], check=True, env=outside())
    (site,) = (tmp_path / 'p').rglob('site-packages')
    script = (
        'import sys; from pathlib import Path\n'
        'import robotid_ros as rid\n'
        'from robotid_ros.cli.demo import find_config\n'
        'here = Path(sys.argv[1]).resolve()\n'
        'assert Path(rid.__file__).resolve().is_relative_to(here), rid.__file__\n'
        'config = find_config("scara")\n'
        'assert config.resolve().is_relative_to(here), config\n'
        'print(rid.load_robot(config).joints)\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', script, str(tmp_path / 'p')],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**outside(), 'PYTHONPATH': str(site)},
    )
    assert done.returncode == 0, done.stderr
    assert "('joint_1', 'joint_2')" in done.stdout
    assert (tmp_path / 'p' / 'bin' / 'robotid').exists()


def test_one_version_is_told():
    from xml.etree import ElementTree

    import robotid_ros

    told = ElementTree.parse(ROOT / 'package.xml').getroot().findtext('version')
    assert robotid_ros.__version__ == told
