"""`robotid identify --method commands`: from a data set of LeRobot to a MuJoCo model."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
import servo_plant

from robotid_ros.files.yaml import parse_yaml

ARM = (('shoulder', 'world', (0, 0, 0.1), '0 1 0', 0.4, (0.0, 0.0, 0.12), (4e-3, 4e-3, 4e-4)),)
TRUTH = {'shoulder': {'stiffness': 18.0, 'damping': 0.6, 'armature': 0.028, 'Fc': 0.05}}


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    """Write a data set in degrees, without efforts, of an arm with one servo at 30 Hz."""
    pyarrow, writer = (pytest.importorskip(f'pyarrow{part}') for part in ('', '.parquet'))
    folder = tmp_path_factory.mktemp('so')
    time = np.arange(0.0, 9.0, 1.0 / 25)
    commands = servo_plant.motion(time, 1, 3, 0.6)
    recording = servo_plant.record(ARM, TRUTH, commands, 25, 0.05, noise=5e-4)
    (folder / 'set/meta').mkdir(parents=True)
    (folder / 'set/data/chunk-000').mkdir(parents=True)
    feature = {'dtype': 'float32', 'shape': [1], 'names': ['shoulder.pos']}
    features = {'action': feature, 'observation.state': feature}
    info = {'codebase_version': 'v3.0', 'fps': 25, 'features': features}
    (folder / 'set/meta/info.json').write_text(json.dumps(info))
    columns = {
        'action': [*np.rad2deg(commands).astype(np.float32)],
        'observation.state': [*np.rad2deg(recording.position).astype(np.float32)],
        'timestamp': time.astype(np.float32),
        'episode_index': np.zeros(len(time), int),
    }
    writer.write_table(pyarrow.table(columns), folder / 'set/data/chunk-000/file-000.parquet')
    (folder / 'arm.urdf').write_text(servo_plant.urdf(ARM))
    return folder


def test_one_command_makes_parameters_and_a_model(run, dataset, tmp_path):
    arguments = ('identify', dataset / 'set', '--urdf', dataset / 'arm.urdf')
    arguments += ('--method', 'commands', '--units', 'position=deg', '-o', tmp_path / 'out')
    code, text, errors = run(*arguments, '--all')
    assert (code, errors) == (0, ''), errors
    assert 'stiffness' in text and 'N·m/rad' in text and '--known-mass' in text
    content = parse_yaml((tmp_path / 'out/parameters.yaml').read_text(), '')
    values = {p['symbol']: p for p in content['parameters']}
    for symbol, true in {**TRUTH['shoulder'], 'delay': 0.05}.items():
        assert abs(values[symbol]['value'] - true) <= 3.0 * values[symbol]['sigma'], symbol
    model = mujoco.MjModel.from_xml_path(str(tmp_path / 'out/identified.xml'))
    assert model.actuator('shoulder').gainprm[0] == values['stiffness']['value']
    assert model.actuator('shoulder').biasprm[2] == -values['damping']['value']
    assert model.dof_armature[0] == values['armature']['value']
    assert model.dof_frictionloss[0] == pytest.approx(values['Fc']['value'])
    assert model.dof_damping[0] == 0.0 and not model.actuator('shoulder').forcelimited
    # Other commands say what it is; nothing is replaced unasked.
    code, _, errors = run('report', tmp_path / 'out')
    assert code == 1 and 'identified from commands' in errors
    code, _, errors = run(*arguments)
    assert code == 1 and '--force' in errors


def test_what_does_not_go_together_is_said(run, dataset, tmp_path):
    arguments = ('identify', dataset / 'set', '--urdf', dataset / 'arm.urdf')
    arguments += ('--method', 'commands', '-o', tmp_path / 'out')
    code, _, errors = run(*arguments, '--validation', dataset / 'set')
    assert code == 1 and '--validation' in errors
    code, _, errors = run(*arguments, '--known-mass', '0.2@shoulder_link')
    assert code == 1 and 'one without' in errors
    code, _, errors = run(*arguments, '--known-mass', '0.2')
    assert code == 2 and 'KG@LINK' in errors


@pytest.mark.parametrize(
    ('words', 'part'),
    [
        (('--free-bodies',), 'options of --method commands'),
        (('--known-mass', '0.2@link_1'), 'options of --method commands'),
        (('--columns', 'command=q_des{i}'), 'leave command= out'),
    ],
)
def test_other_methods_do_not_ignore_what_is_for_commands(run, tmp_path, words, part):
    table = tmp_path / 'log.csv'
    table.write_text('t,q1,q2,tau1,tau2,q_des1,q_des2\n' + '0,0,0,0,0,0,0\n' * 3)
    urdf = Path(__file__).resolve().parents[2] / 'urdf' / 'scara.urdf'
    code, out, err = run('identify', table, '--urdf', urdf, '-o', tmp_path / 'found', *words)
    assert (code, out) == (1, '') and part in ' '.join(err.split())
    assert not (tmp_path / 'found').exists()
