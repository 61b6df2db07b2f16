"""What goes wrong is one sentence on standard error and an exit code."""

import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from waiting import PATIENCE
import yaml

from robotid_ros.cli import identify, inspect, main as entry
from robotid_ros.cli.main import VERBS
from robotid_ros.cli.shared_options import EXIT_UNUSABLE

from .conftest import unwrapped

JOINTS = ('joint_1', 'joint_2')


@pytest.fixture
def record(tmp_path):
    """Write joint states: stamps [s], position, effort; everything else left out."""
    from bag_tools import EPOCH, joint_state, write_mcap

    def record(time, position, effort, joints=JOINTS):
        rows = zip(time, position, effort, strict=True)
        messages = (joint_state(EPOCH + round(t * 1e9), joints, q, (), e) for t, q, e in rows)
        return write_mcap(tmp_path, messages, 'made')

    return record


@pytest.fixture
def config(tmp_path):
    def config(urdf='scara.urdf', **groups):
        root = Path(__file__).resolve().parents[2] / 'urdf'
        groups.setdefault('robot', {})['urdf'] = str(root / urdf)
        path = tmp_path / 'robot.yaml'
        path.write_text(yaml.safe_dump({'/**': {'ros__parameters': groups}}))
        return path

    return config


def signals(count=2000, rate=200.0):
    t = np.arange(count) / rate
    q = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
    return t, q, np.random.default_rng(0).normal(size=q.shape)


def python(script, *arguments):
    """Run a script in a process of its own."""
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    command = [sys.executable, '-c', script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def sentence(outcome, *words):
    """One line on standard error, nothing else, exit code 1."""
    code, out, err = outcome
    assert code == 1, (out, err)
    assert out == ''
    assert re.fullmatch(r'robotid: [^\n]+\n', err), err
    assert 'a bug' not in err
    for word in words:
        assert word in err
    return err


def test_bad_signals_are_refused(run, record, config, tmp_path):
    t, q, tau = signals()
    file = config()

    def outcome(*arrays):
        return run('identify', record(*arrays), '-c', file, '-o', tmp_path / 'out')

    none = [()] * len(t)
    sentence(outcome(t, q, none), 'has no effort')
    dead = np.where([True, False], tau, np.nan)
    sentence(outcome(t, q, dead), 'no changing effort of joint_2')
    sentence(outcome(t, np.full_like(q, np.nan), tau), 'joint')
    sentence(outcome(t, np.zeros_like(q), tau), 'still')
    sentence(outcome(t[:60], q[:60], tau[:60]), 'lasts')
    assert not (tmp_path / 'out').exists()


@pytest.mark.usefixtures('without_bokeh')
def test_some_damage_is_survived(run, record, config, tmp_path):
    t, q, tau = signals(4000)
    file = config()
    for damage in ('repeated', 'jumping', 'nan'):
        time, effort = t.copy(), tau.copy()
        if damage == 'repeated':
            time[100:110] = time[99]
        elif damage == 'jumping':
            time[2000:] += 3.0
        else:
            effort[50:53] = np.nan
        path = record(time, q, effort)
        code, _, err = run('identify', path, '-c', file, '-o', tmp_path / damage)
        # The efforts are noise: written, and unusable.
        assert code == EXIT_UNUSABLE and (tmp_path / damage / 'parameters.yaml').exists(), err


@pytest.mark.usefixtures('without_bokeh')
def test_missing_things_are_named(run, record, config, tmp_path):
    path = record(*signals())
    sentence(run('identify', tmp_path / 'none'), 'there is no recording')
    sentence(run('identify', path), 'no robot description', '-c')
    sentence(run('identify', path, '-c', tmp_path / 'none.yaml'), 'no such file')
    sentence(run('identify', path, '-c', config('none.urdf')), 'none.urdf', 'no such file')
    code, out, _ = run('identify', path, '-c', config('tx40.urdf'), '-o', tmp_path / 'out')
    assert code == EXIT_UNUSABLE  # of noise
    assert 'They are taken as locked at joint_3 0, joint_4 0' in unwrapped(out)
    sentence(run('identify', path, '-c', config(robot={'jonits': []})), "'robot.jonits'")
    sentence(run('identify', path, '-c', config(robot={'name': 3})), "'robot.name'", 'str')
    sentence(run('identify', path, '-c', config(), '--method', 'magic'), 'use one of auto, ols')
    sentence(run('identify', path, '-c', config(), '--from', 5, '--to', 3), 'start first')
    sentence(
        run('validate', path, '--parameters', tmp_path), 'parameters.yaml', 'robotid identify'
    )
    sentence(run('report', path), 'parameters.yaml')


@pytest.mark.parametrize(
    'text',
    ['', 'no xml', '<robot name="x"/>', '<robot name="x"><link name="a"/></robot>', '<a/>'],
)
def test_bad_descriptions_are_refused(run, record, config, tmp_path, text):
    (tmp_path / 'bad.urdf').write_text(text)
    file = config(str(tmp_path / 'bad.urdf'))
    sentence(run('identify', record(*signals()), '-c', file))


def test_a_full_disk_is_one_sentence(run, bag, tmp_path):
    folder = tmp_path / 'disk'
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip('mounting a small disk needs root')
    mount = ['mount', '-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip('no small disk can be mounted here')
    try:
        sentence(run('identify', bag, '-o', folder), 'no space left on device; free some')
        assert not [f for f in folder.iterdir() if f.name.startswith('.')]
    finally:
        subprocess.run(['umount', '-l', str(folder)], check=True)


def test_inspect_fails_where_nothing_can_be_identified(run, record):
    t, q, tau = signals(300)
    code, out, err = run('inspect', record(t, q, np.zeros_like(tau)))
    assert (code, err) == (4, '')
    assert 'no joint that moves has a live effort' in out


@pytest.mark.parametrize('verb', VERBS)
def test_every_verb_explains_itself(run, verb):
    code, out, _ = run(verb, '--help')
    assert code == 0 and f'robotid {verb}' in out and '--debug' in out


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('fly',), 'use one of demo, design, identify'),
        (('idntify',), "did you mean 'identify'?"),
        (('fleet', 'rn'), "did you mean 'run'?"),
        (('identify',), 'bag'),
        (('identify', 'x', '--part', 'half'), 'write 0:0.5'),
        (('identify', 'x', '--part', '2:1'), 'write 0:0.5'),
        (('design', 'x', '--time-limit', '-1'), 'above zero'),
        (('design', 'x', '--time-limit', 'nan'), 'above zero'),
        (('identify', 'x', '--urfd=y'), "did you mean '--urdf'?"),
        (('identify', 'x', '--effort-kind', 'joint'), "did you mean 'joint_torque'?"),
        (('fleet', 'report', 'x', '--otput', 'y'), "did you mean '--output'?"),
        (('fleet', 'report', 'x', 'y'), "no place for 'y'"),
        (('validate', 'x'), '--parameters'),
    ],
)
def test_wrong_usage_is_code_2_and_one_sentence(run, arguments, words):
    code, out, err = run(*arguments)
    assert (code, out, err.count('\n')) == (2, '', 1)
    assert words in err and '--help' in err


def test_no_command_at_all_shows_where_to_begin(run):
    code, out, err = run()
    assert (code, out) == (2, '')
    for verb in ('demo', 'identify', 'init'):
        assert f'\n  robotid {verb} ' in err


def test_mistyped_names_are_answered_with_the_nearest(run, record, config, tmp_path):
    path = record(*signals())
    sentence(run('identify', path, '-c', config(robot={'jonits': []})), "did you mean 'joints'?")
    sentence(run('identify', path, '--joints', 'joint1', '-c', config()), "mean 'joint_1'?")
    sentence(run('identify', tmp_path / 'mad', '-c', config()), f"did you mean '{path}'?")
    sentence(run('identify', path, '-c', tmp_path / 'robt.yaml'), "robot.yaml'?")
    sentence(run('identify', path, '-c', config(), '--method', 'wsl'), "did you mean 'wls'?")
    sentence(run('demo', 'ur1'), "did you mean 'ur10'?")


def test_interrupts_and_bugs(run, monkeypatch):
    def interrupt(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(inspect, 'run', interrupt)
    assert run('inspect', 'x') == (130, '', 'robotid: interrupted\n')

    def bug(args):
        raise ZeroDivisionError('oh\nno')

    monkeypatch.setattr(identify, 'run', bug)
    code, _, err = run('identify', 'x')
    assert code == 1 and err.count('\n') == 1 and 'a bug: run again with --debug' in err
    with pytest.raises(ZeroDivisionError):
        entry.main(['identify', 'x', '--debug'])


def test_no_verb_on_recordings_touches_ros(bag, tmp_path):
    script = (
        'import sys\n'
        'from robotid_ros.cli.main import main\n'
        'bag, out = sys.argv[1:]\n'
        'assert main(["inspect", bag]) == 0\n'
        'assert main(["identify", bag, "-o", out]) == 0\n'
        'assert main(["validate", bag, "--parameters", out]) == 0\n'
        'assert main(["report", out]) == 0\n'
        'found = [m for m in sys.modules if m.split(".")[0] in ("rclpy", "sensor_msgs")]\n'
        'sys.exit(f"imported {found}" if found else 0)\n'
    )
    done = python(script, bag, tmp_path / 'out')
    assert done.returncode == 0, done.stderr


def test_what_a_bag_or_results_hold_needs_no_dynamics(bag, results_of_bag):
    script = (
        'import sys\n'
        'from robotid_ros.cli.main import main\n'
        'bag, results = sys.argv[1:]\n'
        'assert main(["inspect", bag]) == 0\n'
        'assert main(["report", results]) == 0\n'
        'assert main(["compare", results, results]) == 0\n'
        'heavy = {"scipy", "pinocchio", "rosbags.rosbag1", "sqlite3"} & set(sys.modules)\n'
        'sys.exit(f"imported {heavy}" if heavy else 0)\n'
    )
    done = python(script, bag, results_of_bag())
    assert done.returncode == 0, done.stderr


def test_help_needs_no_numerics():
    script = (
        'import sys\n'
        'from robotid_ros.cli.main import main\n'
        'main(["--help"])\n'
        'heavy = {"numpy", "scipy", "pinocchio", "matplotlib", "rclpy", "jinja2", "rich"}\n'
        'heavy &= set(sys.modules)\n'
        'sys.exit(f"imported {heavy}" if heavy else 0)\n'
    )
    done = python(script)
    assert done.returncode == 0, done.stderr
    assert 'identify' in done.stdout


INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == module and not sent:
            sent.append(name)
            os.kill(os.getpid(), signal.SIGINT)

module, executable, *arguments = sys.argv[1:]
sent = []
sys.meta_path.insert(0, Interrupt())
from robotid_ros import entry

sys.argv[1:] = arguments
sys.exit(getattr(entry, executable)())
"""


@pytest.mark.parametrize('module', ['numpy', 'numpy.linalg', 'pinocchio', 'jinja2'])
def test_an_interrupt_while_importing_is_no_traceback(bag, tmp_path, module):
    done = python(
        INTERRUPTED, module, 'robotid', 'identify', bag, '-o', tmp_path / 'out', '--quiet'
    )
    assert (done.returncode, done.stderr) == (130, 'robotid: interrupted\n')


@pytest.mark.parametrize(
    ('module', 'executable'),
    [
        ('robotid_ros.cli.design', 'robotid'),
        ('rclpy', 'recorder'),
        ('numpy', 'excitation'),
        ('robotid_ros.nodes.identification.identification_node', 'identification'),
    ],
)
def test_an_interrupt_before_anything_began_ends_at_once(module, executable):
    done = python(INTERRUPTED, module, executable)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, '')


def test_what_cannot_be_written_is_said_before_the_work(run, bag, tmp_path):
    (tmp_path / 'file').write_text('kept')
    sentence(run('identify', bag, '-o', tmp_path / 'file'), 'is a file, not a folder')
    other = shutil.copytree(bag, tmp_path / 'other')
    sentence(run('payload', bag, other, '-o', tmp_path / 'file' / 'x'), 'is a file, not a folder')
    assert (tmp_path / 'file').read_text() == 'kept'
    config = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'
    for options, words in (
        (('-o', tmp_path / 'file'), 'exists already'),
        (('-o', tmp_path / 'a.html'), 'its own page'),
        (('-o', tmp_path / '..'), 'is a folder'),
    ):
        sentence(run('design', config, *options), words)


FULL = 'no space left on device; free some space, or name another place'


@pytest.mark.parametrize(
    ('redirection', 'code', 'words'),
    [
        ('| head -n 1', 0, ''),
        ('> /dev/full', 1, f'robotid: cannot read or write the output: {FULL}'),
        ('>&-', 0, ''),
        ('2>&- | head -n 1', 0, ''),
    ],
)
@pytest.mark.parametrize('unbuffered', ['', '1'])
def test_output_goes_wherever_it_can(bag, redirection, code, words, unbuffered):
    command = f'{sys.executable} -m robotid_ros.cli inspect {bag} --quiet {redirection}'
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), 'LC_ALL': 'C'}
    environment |= {'PYTHONIOENCODING': 'ascii', 'PYTHONUTF8': '0', 'PYTHONUNBUFFERED': unbuffered}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env=environment, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr.strip()) == (code, words)
