"""The simulated robot as a process: bad input, divergence, interrupt."""

import os
from pathlib import Path
import signal
import subprocess
import sys

import pytest
from three_joint_robot import JOINTS, SIMULATION, URDF
from waiting import PATIENCE
import yaml

ROOT = Path(__file__).parents[3]


@pytest.fixture
def start_process(domain):
    started = []

    def start(*arguments):
        environment = os.environ | {'PYTHONPATH': str(ROOT), 'ROS_DOMAIN_ID': str(domain)}
        started.append(subprocess.Popen(
            [sys.executable, '-m', 'robotid_ros.nodes', 'simulated_robot', *arguments],
            env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        ))  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_divergence_ends_it_with_one_sentence(tmp_path, start_process):
    config = tmp_path / 'wild.yaml'
    gains = {joint: {'p': 0.0, 'd': -1e6} for joint in JOINTS}
    values = {'robot': {'urdf': 'three.urdf'}, 'simulation': SIMULATION | {'gains': gains}}
    values['simulation'] = values['simulation'] | {'limit_effort': False}
    (tmp_path / 'three.urdf').write_text(URDF)
    config.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
    process = start_process('--ros-args', '--params-file', str(config))
    _, text = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert 'diverged' in text and 'Traceback' not in text


def test_interrupt_ends_it_cleanly(start_process):
    config = ROOT / 'config' / 'tx40.yaml'
    process = start_process('--ros-args', '--params-file', str(config))
    lines = []
    for line in process.stderr:
        lines.append(line)
        if 'is active' in line:
            break
    assert 'is active' in lines[-1], lines
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert 'Traceback' not in rest


@pytest.mark.parametrize(
    ('arguments', 'word'),
    [
        ((), 'no robot'),
        (('--ros-args', '-p', 'simulation.nonsense:=1'), 'nonsense'),
        (('--ros-args', '-p', 'robot_description:=nonsense'), 'XML'),
    ],
)
def test_bad_input_is_one_sentence(arguments, word, start_process):
    process = start_process(*arguments)
    _, text = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert word in text and 'Traceback' not in text
