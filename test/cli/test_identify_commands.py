"""`robotid identify --method commands`: from a data set of LeRobot to a MuJoCo model."""

import dataclasses
import json
from pathlib import Path
import subprocess
import sys

import isaaclab_names
import mujoco
import numpy as np
import pytest
import servo_plant

from robotid_ros.files.export.ranges import possible
from robotid_ros.files.export.servos import read_model
from robotid_ros.files.rollouts import AT_ONCE, IDENTIFIED
from robotid_ros.files.yaml import parse_yaml

from .conftest import unwrapped

ARM = (('shoulder', 'world', (0, 0, 0.1), '0 1 0', 0.4, (0.0, 0.0, 0.12), (4e-3, 4e-3, 4e-4)),)
TRUTH = {'shoulder': {'stiffness': 18.0, 'damping': 0.6, 'armature': 0.028, 'Fc': 0.05}}


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    """Write data sets of an arm with one servo at 25 Hz, of two motions."""
    pytest.importorskip('pyarrow')
    folder = tmp_path_factory.mktemp('so')
    time = np.arange(0.0, 9.0, 1.0 / 25)
    for seed, name in ((3, 'set'), (4, 'other')):
        commands = servo_plant.motion(time, 1, seed, 0.6)
        recording = servo_plant.record(ARM, TRUTH, commands, 25, 0.05, noise=5e-4)
        servo_plant.save_lerobot(folder / name, recording)
    (folder / 'arm.urdf').write_text(servo_plant.urdf(ARM))
    return folder


@pytest.fixture(scope='module')
def servos(dataset, tmp_path_factory):
    """Identify the servo."""
    from robotid_ros.cli.main import main

    folder = tmp_path_factory.mktemp('servos')
    arguments = ('identify', dataset / 'set', '--urdf', dataset / 'arm.urdf', '-o', folder)
    assert main([*map(str, arguments), '--method', 'commands', '--units', 'position=deg']) == 0
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


@pytest.mark.slow
def test_rollouts_follow_another_motion(run, dataset, servos):
    arguments = ('rollout', dataset / 'other', servos, '--units', 'position=deg', '--draws', 5)
    code, text, errors = run(*arguments, '--json')
    assert (code, errors) == (0, ''), errors
    found = json.loads(text)
    assert found['driven_by'] == 'servos' and found['starts'] == 1
    (identified,), (commands,) = (found['rms'][key] for key in (IDENTIFIED, AT_ONCE))
    low, high = (ends[0] for ends in found['band'])
    # Noise of the encoder, and little more; draws are about as good.
    assert identified < 1e-3 < 0.05 < commands
    assert low < high < 4.0 * identified
    assert found['horizon'][IDENTIFIED][-1] is None  # never left
    code, text, _ = run(*arguments)
    assert code == 0 and 'along the recorded commands' in unwrapped(text)


@pytest.mark.slow
def test_draws_are_as_the_covariance_says(servos):
    model = read_model(servos)
    found, robots = model.estimate, [*possible(model, 4000)]
    content = parse_yaml((servos / 'parameters.yaml').read_text(), '')
    parameters = {p['symbol']: p for p in content['parameters']}
    draws = {
        'stiffness': [each.servos['shoulder'].stiffness for each in robots],
        'armature': [each.chi[each.robot.column('Ia1')] for each in robots],
        'delay': [each.servos['shoulder'].delay for each in robots],
    }
    for symbol, drawn in draws.items():
        values, own = np.array(drawn[1:]), parameters[symbol]
        assert drawn[0] == pytest.approx(own['value'])
        assert values.mean() == pytest.approx(own['value'], abs=0.1 * own['sigma'])
        assert values.std() == pytest.approx(own['sigma'], rel=0.05)
        assert (values > 0.0).all()
    names = [symbol for symbol, _ in found.names]
    k, j = names.index('stiffness'), names.index('armature')
    expected = found.covariance[k, j] / np.sqrt(found.covariance[k, k] * found.covariance[j, j])
    both = np.corrcoef(draws['stiffness'][1:], draws['armature'][1:])
    assert both[0, 1] == pytest.approx(expected, abs=0.05)


def test_ranges_of_servos_randomise_the_model(run, servos, tmp_path):
    arguments = ('export', servos, '--format', 'ranges', '-o', tmp_path / 'ranges')
    code, _, errors = run(*arguments)
    assert (code, errors) == (0, '')
    table = parse_yaml((tmp_path / 'ranges/ranges.yaml').read_text(), '')
    kp = table['joints']['shoulder']['kp']
    assert kp['low'] < kp['identified'] < kp['high'] and kp['unit'] == 'N·m/rad'
    assert table['delay']['low'] < 0.05 < table['delay']['high']
    assert 'bodies' not in table and 'draws.npz has complete' in table['notes'][0]
    script = Path(__file__).resolve().parents[2] / 'examples/randomize.py'
    command = [sys.executable, script, servos / 'identified.xml', tmp_path / 'ranges']
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len({line.split()[-2] for line in done.stdout.splitlines()}) == 3
    example = script.with_name('isaaclab_events.py')
    terms = isaaclab_names.run(example.read_text(), str(example))['terms']
    found = terms(str(tmp_path / 'ranges/ranges.yaml'))
    limits = found['shoulder_servo'].params['stiffness_distribution_params']
    assert limits == (kp['low'], kp['high'])
    code, _, errors = run('export', servos, '--format', 'csv')
    assert code == 1 and 'ranges' in errors


@pytest.mark.parametrize('kind', ['mjcf', 'sdf', 'urdf', 'isaaclab'])
def test_simulators_get_the_servos(run, servos, tmp_path, kind):
    code, text, errors = run('export', servos, '--format', kind, '-o', tmp_path / 'out')
    assert (code, errors) == (0, '')
    # What does not fit is said, here and in the file.
    lost = {
        'mjcf': ['which is not in this file'],
        'isaaclab': ['which is not in this file', 'the bias of servos is left out'],
        'sdf': ['rotor inertias', 'stiffness, damping, bias and limit of servos are left out'],
        'urdf': ['stiffness, damping, bias and limit of servos are left out'],
    }[kind]
    (file,) = (tmp_path / 'out').glob('*.py') if kind == 'isaaclab' else [tmp_path / 'out']
    for sentence in lost:
        assert sentence in unwrapped(text) and sentence in unwrapped(file.read_text())
    content = parse_yaml((servos / 'parameters.yaml').read_text(), '')
    values = {p['symbol']: p['value'] for p in content['parameters']}
    if kind == 'mjcf':
        model = mujoco.MjModel.from_xml_path(str(tmp_path / 'out'))
        assert model.actuator('shoulder').gainprm[0] == values['stiffness']
    if kind == 'isaaclab':
        (module,) = (tmp_path / 'out').glob('*_cfg.py')
        found = isaaclab_names.run(module.read_text(), str(module))['ROBOT_CFG']
        actuator = found.actuators['joints']
        assert actuator.stiffness == {'shoulder': values['stiffness']}
        assert actuator.damping == {'shoulder': values['damping']}
        (stage,) = (tmp_path / 'out').glob('*.usda')
        per_degree = values['stiffness'] * np.pi / 180
        text = stage.read_text().partition('physics:stiffness = ')[2]
        assert float(text.partition('\n')[0]) == pytest.approx(per_degree)


@pytest.mark.slow
def test_the_model_has_the_bodies_that_a_known_mass_shows(run, tmp_path):
    """All are 1.4 times as heavy as described."""
    pytest.importorskip('pyarrow')
    place, last = (0.0, 0.0, 0.1), ARM[-1][0]
    heavy = (*ARM[-1][:4], 1.4 * ARM[-1][4], ARM[-1][5], [1.4 * x for x in ARM[-1][6]])
    truth = {row[0]: TRUTH['shoulder'] for row in ARM}
    time, logs = np.arange(0.0, 6.0, 1.0 / 25), [tmp_path / 'bare', tmp_path / 'loaded']
    for seed, added in enumerate((None, (last, 0.3, place))):
        commands = servo_plant.motion(time, len(ARM), seed, 0.5)
        plant = (*ARM[:-1], heavy)
        log = servo_plant.record(plant, truth, commands, 25, 0.04, 4e-4, seed, added)
        servo_plant.save_lerobot(logs[seed], log)
    (tmp_path / 'arm.urdf').write_text(servo_plant.urdf(ARM))
    options = ('--method', 'commands', '--units', 'position=deg', '-o', tmp_path / 'out')
    mass = ('--known-mass', f'0.3@{last}_link:0,0,0.1')
    code, _, errors = run('identify', *logs, '--urdf', tmp_path / 'arm.urdf', *options, *mass)
    assert (code, errors) == (0, ''), errors
    content = parse_yaml((tmp_path / 'out/parameters.yaml').read_text(), '')
    scales = [each for each in content['parameters'] if each['symbol'] == 'bodies']
    assert [each['joint'] for each in scales] == ['']
    model = mujoco.MjModel.from_xml_path(str(tmp_path / 'out/identified.xml'))
    for row, scale in zip(ARM, scales, strict=True):
        found = model.body(f'{row[0]}_link')
        assert found.mass[0] == pytest.approx(scale['value'] * row[4], rel=1e-9)
        moments = scale['value'] * np.array(row[6])
        np.testing.assert_allclose(np.sort(found.inertia), np.sort(moments), rtol=1e-6)
        np.testing.assert_allclose(found.ipos, row[5], atol=1e-9)
        assert abs(scale['value'] - 1.4) <= 3.0 * scale['sigma']
        assert scale['value'] - 3.0 * scale['sigma'] > 1.0
    # Draws have other bodies too, and a range of each; the table says so.
    code, _, errors = run('export', tmp_path / 'out', '--format', 'ranges', '-o', tmp_path / 'r')
    assert (code, errors) == (0, '')
    table = parse_yaml((tmp_path / 'r/ranges.yaml').read_text(), '')
    draws = np.load(tmp_path / 'r/draws.npz')
    for row, scale in zip(ARM, scales, strict=True):
        mass = table['bodies'][f'{row[0]}_link']['mass']
        assert mass['identified'] == pytest.approx(scale['value'] * row[4], rel=1e-9)
        own = draws['mass'][:, list(draws['bodies']).index(f'{row[0]}_link')]
        assert own.std() == pytest.approx(scale['sigma'] * row[4], rel=0.15)


def test_two_arms_in_one_data_set(run, dataset, tmp_path):
    time = np.arange(0.0, 9.0, 1.0 / 25)
    left = servo_plant.record(ARM, TRUTH, servo_plant.motion(time, 1, 3, 0.6), 25, 0.05)
    both = dataclasses.replace(
        left,
        joints=('left_shoulder', 'right_shoulder'),
        position=np.hstack([left.position, -left.position]),
        effort=np.hstack([left.effort, left.effort]),
        reference=dataclasses.replace(
            left.reference,
            **{k: np.hstack([getattr(left.reference, k)] * 2) for k in ('dq', 'ddq')},
            q=np.hstack([left.reference.q, -left.reference.q]),
        ),
    )
    folder = servo_plant.save_lerobot(tmp_path / 'two', both)
    code, _, errors = run(
        'identify', folder, '--urdf', dataset / 'arm.urdf', '--method', 'commands'
    )
    assert code == 1 and "'left_shoulder', which is no joint" in unwrapped(errors)
    assert '--columns' in errors and len(errors.splitlines()) < 8


def test_what_does_not_go_together_is_said(run, dataset, tmp_path):
    arguments = ('identify', dataset / 'set', '--urdf', dataset / 'arm.urdf')
    arguments += ('--method', 'commands', '-o', tmp_path / 'out')
    code, _, errors = run(*arguments, '--validation', dataset / 'set')
    assert code == 1 and '--validation' in errors
    code, _, errors = run(*arguments, '--known-mass', '0.2@shoulder_link')
    assert code == 1 and 'one without' in errors
    bare = tmp_path / 'bare.urdf'
    bare.write_text(servo_plant.urdf(ARM, inertials=False))
    code, _, errors = run(*arguments[:3], bare, *arguments[4:], '--force')
    assert code == 1 and 'no inertials' in errors
    code, _, errors = run(*arguments, '--known-mass', '0.2')
    assert code == 2 and 'KG@LINK' in errors


@pytest.mark.parametrize(
    ('words', 'part'),
    [
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
