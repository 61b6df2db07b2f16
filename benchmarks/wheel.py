"""
Build the wheel, install it with its dependencies into an empty environment, and use it there.

No ROS, no repository on the path: `python benchmarks/wheel.py`. It needs the network, for the
packages that the wheel names.
"""

import os
from pathlib import Path
import subprocess
import sys
import tempfile
import time

ROOT = Path(__file__).resolve().parents[1]
# A design that is quick, its session on the simulated robot, an identification, files.
SCRIPT = """
import sys
import robotid_ros as rid
from robotid_ros.cli.demo import find_config

assert not {'rclpy'} & set(sys.modules)
config = find_config('scara')
design = rid.design(config, iterations=20, starts=1)
recording = rid.simulate(config, design)
result = rid.identify(recording)
print(result, result.validation.relative_residual)
rid.save(result, recording, 'results')
"""
COMMANDS = (
    ('--version',),
    ('report', 'results'),
    ('export', 'results', '--format', 'mjcf'),
    ('export', 'results', '--format', 'csv'),
    ('init', 'results/identified.urdf', '-o', 'again.yaml'),
)


def main() -> None:
    """Build, install, use; each step with the time that it took."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = place / 'empty' / 'bin' / 'python'
        step('an empty environment', sys.executable, '-m', 'venv', place / 'empty', cwd=place)
        pip = (python, '-m', 'pip', '--disable-pip-version-check', '--no-input')
        git = ('git', '-C', ROOT, 'archive', '--format=tar', '-o', place / 'source.tar', 'HEAD')
        step('the source as committed', *git, cwd=place)
        (place / 'source').mkdir()
        step('unpacked', 'tar', '-xf', place / 'source.tar', '-C', place / 'source', cwd=place)
        wheel = (*pip, 'wheel', '-q', '--no-deps', '-w', place, place / 'source')
        step('the wheel', *wheel, cwd=place)
        (built,) = place.glob('*.whl')
        step('installed', *pip, 'install', '-q', f'{built}[sim]', cwd=place)
        step('the library', python, '-c', SCRIPT, cwd=place)
        for command in COMMANDS:
            step(f'robotid {" ".join(command)}', python.parent / 'robotid', *command, cwd=place)


def step(name: str, *command: object, cwd: Path) -> None:
    """Run a command where nothing leads to the repository; stop where it fails."""
    begin = time.monotonic()
    keep = {k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'AMENT_PREFIX_PATH')}
    subprocess.run([str(word) for word in command], check=True, cwd=cwd, env=keep)
    print(f'{time.monotonic() - begin:7.1f} s  {name}', flush=True)


if __name__ == '__main__':
    main()
