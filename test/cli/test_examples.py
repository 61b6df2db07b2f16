"""The scripts of examples/ run as they stand, in an empty folder."""

import os
from pathlib import Path
import subprocess
import sys

import pytest
import yaml

from .conftest import ROOT

EXAMPLES = ROOT / 'examples'
URDF = str(ROOT / 'urdf' / 'scara.urdf')


def example(name, folder, *words):
    """Run an example as a user does whose environment is active."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    start = [sys.executable] if name.endswith('.py') else ['sh']
    done = subprocess.run(
        [*start, str(EXAMPLES / name), *map(str, words)], cwd=folder, capture_output=True,
        text=True, env={**os.environ, 'PATH': path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_own_log_and_feed_forward_from_it(bag, tmp_path):
    assert 'good: can be used' in example('own_log.py', tmp_path, bag, URDF)
    assert (tmp_path / 'identified' / 'report.html').exists()
    lines = example('feed_forward.py', tmp_path, 'identified').splitlines()
    assert len(lines) == 5 and lines[0].startswith('0.0 s: ')


def test_a_payload(bag, loaded, tmp_path):
    example('payload.sh', tmp_path, bag, loaded, URDF)
    found = yaml.safe_load((tmp_path / 'payload.yaml').read_text())
    assert found['mass'] == pytest.approx(2.0, rel=0.02)


@pytest.mark.slow
def test_the_identified_arm_in_a_simulation(bag, tmp_path):
    pytest.importorskip('mujoco')
    assert '2 joints in MuJoCo' in example('sim_to_real.sh', tmp_path, bag, URDF)


def test_each_is_short_and_all_are_here():
    lengths = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.iterdir()}
    assert len(lengths) == 6 and max(lengths.values()) <= 30
