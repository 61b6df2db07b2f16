"""
Whatever the documents show runs: their commands and their Python, in the order of each page.

What they show as output is compared with what is printed, figures and folders aside.

What needs a robot, a network or another program is listed with what covers it instead.
"""

import argparse
import contextlib
import json
from pathlib import Path
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import servo_plant
import yaml

from .conftest import motion, record, ROOT

PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('**/*.md'))]
FLANGE = (
    '<link name="flange"/><joint name="to_flange" type="fixed"><parent link="link_2"/>'
    '<child link="flange"/></joint></robot>'
)
BLOCK = re.compile(r'^```(\w*)\n(.*?)^```', re.DOTALL | re.MULTILINE)
# Kinds of blocks that run; '' are transcripts, whose commands stand behind '$ '.
RUN = ('sh', 'python', '')
# Lines of the shell, and beginnings of Python, that do not run here, and the test, script or
# benchmark that runs the like.
ELSEWHERE = {
    r'make (demo|test)': '.ci/run',
    r'\. \.venv/bin/activate': 'test/cli/test_snippets.py',
    r'robotid demo': 'test/session/test_demo.py',
    r'robotid doctor': 'test/nodes/doctor',
    r'robotid fleet': 'test/fleet',
    r'robotid init( +-o \S+)?$': 'test/nodes/doctor',
    r'robotid .*--method (didim|both)': 'test/core/replay',
    r'robotid identify ros1\.bag': 'test/files/formats/test_round_trips.py',
    r'python examples/randomize': 'test/cli/test_export_ranges.py',
    r'robotid payload .*--(set|restore)': 'test/nodes/identification',
    r'ros2 (launch|run robotid_ros|service|param|topic)': 'test/session',
    r'ros2 run ros_gz_sim|xacro ': 'benchmarks/export.py',
    r'python -m mujoco.viewer': 'benchmarks/export.py',
    r'rosdep |colcon ': '.ci/colcon.sh',
    r'pip install|python3 -m venv': 'benchmarks/wheel.py',
    r'export ROS_SECURITY|ros2 security|for name in|done$|ROS_SECURITY': 'config/security',
    r'eval "\$\(register-python-argcomplete': 'test/cli/test_every_verb.py',
    r'import robotid_ros as rid\n$': 'test/test_library.py',
    r'import numpy as np\nimport robotid_ros as rid\n\nlog = np': 'test/test_library.py',
    r'model = rid.InverseDynamics.load\(.*\ntau = model.efforts': 'test/test_library.py',
    r'from robotid_ros.core.payload.payload import': 'test/core/payload',
    r'gains = identify_drive_gains': 'test/core/payload',
}


def blocks(page: Path) -> list[tuple[str, str]]:
    found = [(kind, text) for kind, text in BLOCK.findall(page.read_text()) if kind in RUN]
    typed = re.compile(r'^\$ (.*)$', re.MULTILINE)
    shown = [(kind, text if kind else '\n'.join(typed.findall(text))) for kind, text in found]
    return [(kind, text) for kind, text in shown if text]


def commands(text: str) -> list[str]:
    """Lines of a block for the shell, without comments; a backslash joins lines."""
    lines = text.replace('\\\n', ' ').splitlines()
    return [line for line in (re.sub(r'\s+#.*', '', x).strip() for x in lines) if line]


def elsewhere(text: str) -> str | None:
    return next((by for what, by in ELSEWHERE.items() if re.match(what, text)), None)


def outputs(page: Path) -> list[str]:
    """Return what a page shows as printed by commands that run here: text, and below '$ '."""
    found = []
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == 'text':
            found.append(text)
        elif kind == '':
            typed = [x.partition('\n') for x in re.split(r'^\$ ', text, flags=re.MULTILINE)[1:]]
            found += [output for command, _, output in typed if output and not elsewhere(command)]
    return found


def masked(text: str) -> str:
    """Text without figures, folders, lines of tables and the breaks of its lines."""
    text = re.sub(r'[-+]?\d[\d.,]*(e[-+]?\d+)?', '#', text)
    return re.sub(r'[\s─]+', ' ', re.sub(r"[^\s'(]*/(?=[\w.])", '', text)).strip()


def expect_shown(page: Path, printed: str) -> None:
    """Expect what a page shows, in its order; '…' stands for what it leaves out."""
    rest = masked(printed)
    for piece in (x.strip() for text in outputs(page) for x in masked(text).split('…')):
        assert piece in rest, f'{page.name} shows: {piece}\nprinted: {printed}'
        rest = rest.partition(piece)[2]


SHOWN = [page for page in PAGES if blocks(page)]
# README, then: I have a log, a robot, want a payload, feed-forward, a better simulation, research.
PATHS = [
    ROOT / 'README.md',
    *(
        ROOT / 'docs' / 'guide' / f'{name}.md'
        for name in (
            *('your_log', 'your_robot', 'payload', 'feed_forward', 'use_the_result', 'research'),
        )
    ),
]


@pytest.fixture(scope='module')
def inputs(tmp_path_factory, scara, loaded):
    """Files that the documents speak of, of one small arm."""
    folder = tmp_path_factory.mktemp('inputs')
    robot, chi = scara
    for name in ('my_robot', 'arm'):
        (folder / f'{name}.urdf').write_text(robot.urdf.replace('</robot>', FLANGE))
    bare = re.sub('<inertial>.*?</inertial>', '', robot.urdf, flags=re.DOTALL)
    (folder / 'm10ia.urdf').write_text(bare)
    (folder / 'recordings').mkdir()
    bag = record(folder / 'recordings', robot, chi, 'empty')
    shutil.copytree(loaded, folder / 'recordings' / 'with_gripper')
    for name in ('my_bag', 'other_bag', 'empty_bag', 'recordings/tx40'):
        shutil.copytree(bag, folder / name)
    shutil.copytree(loaded, folder / 'loaded_bag')
    (mcap,), (other,) = bag.glob('*.mcap'), loaded.glob('*.mcap')
    for name in ('empty', 'monday', 'tuesday', 'arm'):
        shutil.copy(mcap, folder / f'{name}.mcap')
    shutil.copy(other, folder / 'loaded.mcap')
    _write_tables(folder, robot, chi)
    _write_data_sets(folder)
    _write_configurations(folder)
    from robotid_ros.cli.main import main

    with contextlib.chdir(folder):
        assert main(['identify', 'my_bag', '-o', 'results', '--method', 'wls']) == 0
    shutil.copytree(folder / 'results', folder / 'recordings' / 'arm_identified')
    return folder


def _write_tables(folder: Path, robot, chi) -> None:
    import scipy.io

    from robotid_ros.core.model.dynamics import inverse_dynamics

    t, q, dq, ddq = motion(30.0)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(2).normal(size=tau.shape)
    table = np.column_stack([t, q, tau])
    for name in ('my_log', 'other_log', 'arm', 'one', 'two', 'three', 'tuesday'):
        head = 'time,q1,q2,tau1,tau2'
        np.savetxt(folder / f'{name}.csv', table, delimiter=',', header=head, comments='')
    current = {'time': t, 'enc': np.degrees(q), 'I': tau / 0.12}
    scipy.io.savemat(folder / 'arm.mat', current)


def _write_data_sets(folder: Path) -> None:
    """Write data sets of an arm with one servo."""
    chain = servo_plant.ARM[:1]
    truth = {'shoulder': {'stiffness': 18.0, 'damping': 0.6, 'armature': 0.028, 'Fc': 0.05}}
    time = np.arange(0.0, 8.0, 1.0 / 30)
    for seed, name in enumerate(('my_dataset', 'other_dataset')):
        commands = servo_plant.motion(time, 1, seed, 0.6)
        recording = servo_plant.record(chain, truth, commands, 30, 0.05)
        servo_plant.save_lerobot(folder / name, recording)
    (folder / 'so101.urdf').write_text(servo_plant.urdf(chain))


def _write_configurations(folder: Path) -> None:
    """Write the SCARA's configuration under every name, with designs that take no time."""
    text = yaml.safe_load((ROOT / 'config' / 'scara.yaml').read_text())
    groups = text['/**']['ros__parameters']
    groups['robot']['urdf'] = str(folder / 'arm.urdf')
    groups['excitation'] |= {'period': 6.0, 'order': 4, 'periods': 2, 'iterations': 4, 'starts': 1}
    groups['simulation']['update_rate'] = 500.0
    groups['simulation']['state_rate'] = 250.0
    (folder / 'config').mkdir()
    for name in ('config/tx40', 'config/arm', 'config/scara', 'arm', 'ur10'):
        (folder / f'{name}.yaml').write_text(yaml.safe_dump(text))


@pytest.mark.parametrize(
    'page',
    [
        pytest.param(p, marks=[pytest.mark.slow] * (p.stem == 'simulation'))
        for p in SHOWN
        if p not in PATHS
    ],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_what_a_page_shows_runs(run, inputs, tmp_path, monkeypatch, page):
    folder, names, printed = tmp_path / 'here', {}, ''
    shutil.copytree(inputs, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv('HOME', str(tmp_path))
    for kind, text in blocks(page):
        for piece in [text] if kind == 'python' else commands(text):
            if covered := elsewhere(piece):
                assert (ROOT / covered).exists(), covered
            elif kind == 'python':
                exec(compile(piece, str(page), 'exec'), names)
            else:
                printed += _run_command(run, piece)
    expect_shown(page, printed)


@pytest.mark.parametrize(
    'page',
    [PATHS[0], *(pytest.param(page, marks=pytest.mark.slow) for page in PATHS[1:])],
    ids=lambda p: p.stem,
)
def test_readme_and_the_six_paths_run_in_a_fresh_shell(inputs, tmp_path, page):
    """As typed, one after another: nothing is on the path but what the first lines put there."""
    activate = Path(sys.prefix) / 'bin' / 'activate'
    if not activate.exists():
        pytest.skip('this Python is in no virtual environment')
    shutil.copytree(inputs, tmp_path / 'here')
    (tmp_path / 'here' / '.venv').symlink_to(sys.prefix)
    lines = ['. .venv/bin/activate']
    for kind, text in blocks(page):
        for piece in [text] if kind == 'python' else commands(text):
            if covered := elsewhere(piece):
                assert (ROOT / covered).exists(), covered
            elif kind == 'python':
                lines.append(f"python - <<'END'\n{piece}\nEND")
            else:
                # A design in no time is poor.
                lines.append(piece + ' || test $? = 3' * piece.startswith('robotid design'))
    assert any(line.startswith('robotid ') for line in lines)
    shell = subprocess.run(
        ['env', '-i', f'HOME={tmp_path}', 'PATH=/usr/bin:/bin', 'sh', '-ec', '\n'.join(lines)],
        cwd=tmp_path / 'here', capture_output=True, text=True,
    )  # fmt: skip
    assert shell.returncode == 0, shell.stderr
    expect_shown(page, shell.stdout)


def test_each_of_the_six_paths_shows_what_is_printed_and_a_picture():
    for page in PATHS[1:]:
        text = page.read_text()
        assert '](../pictures/' in text, page
        assert outputs(page) or 'payload.png' in text, page


def test_the_notebook_runs(inputs, tmp_path, monkeypatch):
    """Cell by cell; what ends a cell can be shown, as a notebook would."""
    shutil.copytree(inputs / 'config', tmp_path / 'config')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MPLBACKEND', 'Agg')
    notebook = json.loads((ROOT / 'docs/notebooks/first_identification.ipynb').read_text())
    cells = [''.join(c['source']) for c in notebook['cells'] if c['cell_type'] == 'code']
    names = {}
    for cell in cells:
        *lines, last = cell.splitlines()
        exec('\n'.join(lines), names)
        value = eval(last, names)
        assert 10 < len(repr(value)) < 400


def _run_command(run, line: str) -> str:
    words = shlex.split(line)
    assert words[0] == 'robotid', f'{line}: run it, or say in ELSEWHERE what covers it'
    if words[1] in ('identify', 'payload', 'validate', 'compare'):
        words.append('--force')  # the commands of a page are alternatives, here on one log
    code, out, err = run(*words[1:])
    # 3: a design in no time is poor.
    assert code in ((0, 3) if words[1] == 'design' else (0,)), (line, out, err)
    return out


@pytest.mark.parametrize('page', PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_the_text_have_the_options_that_they_name(page):
    known = {}
    for words in re.findall(r'`robotid ([a-z]+)([^`]*)`', page.read_text()):
        verb, rest = words
        known[verb] = known.get(verb) or known_options(verb)
        assert set(re.findall(r'--[a-z-]+', rest)) <= set(known[verb]), words


def known_options(verb: str) -> list[str]:
    from robotid_ros.cli.main import build_parser

    (verbs,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert verb in verbs.choices, f'there is no command {verb}'
    found, waiting = [], [verbs.choices[verb]]
    while waiting:
        for action in waiting.pop()._actions:
            found += action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
    return found


def test_everything_that_is_covered_elsewhere_is_shown():
    pieces = [
        piece
        for page in SHOWN
        for kind, text in blocks(page)
        for piece in ([text] if kind == 'python' else commands(text))
    ]
    unused = [what for what in ELSEWHERE if not any(re.match(what, piece) for piece in pieces)]
    assert unused == []
