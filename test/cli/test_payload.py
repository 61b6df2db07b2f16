"""`robotid payload`: the difference of two recordings."""

from pathlib import Path
import re
import shutil

import numpy as np
import pytest
import yaml

from robotid_ros.cli.shared_options import EXIT_UNUSABLE
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.files.results import read_results

from .conftest import motion, ROOT

pytestmark = pytest.mark.usefixtures('without_bokeh')


def test_a_payload_is_found_and_written(run, bag, loaded, body, tmp_path):
    file = tmp_path / 'body.yaml'
    code, out, err = run('payload', bag, loaded, '-o', file, '--frame', 'joint_2')
    assert (code, err) == (0, '')
    content = yaml.safe_load(file.read_text())
    assert (content['robot'], content['frame']) == ('scara', 'joint_2')
    for symbol, value in body.items():
        entry = content['parameters'][symbol]
        assert abs(entry['value'] - value) < 4.0 * entry['sigma'] < 0.2 * abs(value)
    assert content['mass'] == pytest.approx(2.0, rel=0.02)
    assert content['centre_of_mass'][:2] == pytest.approx([0.2, -0.05], abs=0.01)
    own = content['inertia_at_centre']['zz']
    assert own == pytest.approx(body['ZZ'] - 2.0 * (0.2**2 + 0.05**2), abs=0.01)
    # The arm is horizontal: nothing shows these, and no number stands for them.
    assert content['parameters']['XX'] == {'value': None, 'sigma': float('inf'), 'unit': 'kg·m²'}
    assert content['centre_of_mass'][2] is None and content['sigma']['centre_of_mass'][2] > 1e9
    assert set(content['lines'].values()) == {None}
    assert 'does not distinguish XX' in out and 'z, ixx' in out and str(file) in out


def test_a_payload_of_efforts_that_are_no_torques_is_unusable(run, bag, loaded, tmp_path):
    """The URDF's masses tell that efforts are currents: no line to paste, nothing to set."""
    urdf, file = ROOT / 'urdf' / 'scara.urdf', tmp_path / 'body.yaml'
    heavy = re.sub(
        r'(mass value|i[xyz]{2})="([^"]+)"', lambda m: f'{m[1]}="{20 * float(m[2])}"',
        urdf.read_text(),
    )  # fmt: skip
    (tmp_path / 'heavy.urdf').write_text(heavy)
    code, out, err = run('payload', bag, loaded, '-o', file, '--urdf', tmp_path / 'heavy.urdf')
    assert code == EXIT_UNUSABLE and 'read wrongly, as F4' in err and 'to paste' not in out
    assert yaml.safe_load(file.read_text())['lines'] == {}
    code, _, err = run('payload', file, '--set', 'universal_robots')
    assert code == 1 and 'recordings that are read wrongly' in err


def test_the_frame_is_the_tool_where_none_is_named(run, bag, loaded, tmp_path):
    """The arm's tool0 is 0.4 m along x from its last joint."""
    files = tmp_path / 'joint.yaml', tmp_path / 'tool.yaml'
    run('payload', bag, loaded, '-o', files[0], '--frame', 'joint_2')
    code, out, _ = run('payload', bag, loaded, '-o', files[1])
    joint, tool = (yaml.safe_load(file.read_text()) for file in files)
    assert code == 0 and tool['frame'] == 'tool0' and 'in tool0' in out
    x, y, _ = joint['centre_of_mass']
    assert tool['centre_of_mass'][:2] == pytest.approx([x - 0.4, y], abs=1e-9)
    assert tool['inertia_at_centre']['zz'] == pytest.approx(joint['inertia_at_centre']['zz'])
    code, _, err = run('payload', bag, loaded, '-o', tmp_path / 'x', '--frame', 'base_link')
    assert code == 1 and "'base_link' moves with none of the joints" in err


def test_an_identified_arm_stands_for_the_empty_recording(run, bag, loaded, tmp_path):
    assert run('identify', bag, '-o', tmp_path / 'arm')[0] == 0
    file = tmp_path / 'body.yaml'
    content = None
    for known in (tmp_path / 'arm', tmp_path / 'arm' / 'parameters.yaml'):
        arguments = (known, loaded, '-o', file, '--frame', 'joint_2')
        if file.exists():
            code, _, err = run('payload', *arguments)
            assert code == 1 and 'exists already' in err and err.count('\n') == 1
            assert yaml.safe_load(file.read_text()) == content
        code, out, err = run('payload', *arguments, '--force')
        assert (code, err) == (0, ''), out
        content = yaml.safe_load(file.read_text())
        assert content['mass'] == pytest.approx(2.0, rel=0.02)
        assert content['centre_of_mass'][:2] == pytest.approx([0.2, -0.05], abs=0.01)


def test_an_arm_with_friction_of_another_law_stands_for_it_too(run, scara, body, tmp_path):
    """What the default opened, the plain model of the payload has not."""
    robot, chi = scara
    heavy = chi.copy()
    for symbol, value in body.items():
        heavy[robot.column(f'{symbol}2')] += value
    (tmp_path / 'scara.urdf').write_text(robot.urdf)
    t, q, dq, ddq = motion()
    for name, parameters in (('empty', chi), ('loaded', heavy)):
        tau = inverse_dynamics(robot, parameters, q, dq, ddq)
        tau += 2.0 * np.sign(dq) * np.exp(-np.abs(dq) / 0.1)
        tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
        columns = {'time': t}
        for k, joint in enumerate(robot.joints):
            columns |= {f'{joint}_position': q[:, k], f'{joint}_effort': tau[:, k]}
        rows = np.column_stack(list(columns.values()))
        np.savetxt(
            tmp_path / f'{name}.csv', rows, delimiter=',', header=','.join(columns), comments=''
        )
    log, urdf = tmp_path / 'empty.csv', ('--urdf', tmp_path / 'scara.urdf')
    assert run('identify', log, *urdf, '-o', tmp_path / 'arm')[0] == 0
    assert any(x.name.startswith('Ds') for x in read_results(tmp_path / 'arm').base)
    file = tmp_path / 'body.yaml'
    arguments = (tmp_path / 'arm', tmp_path / 'loaded.csv', '-o', file, '--frame', 'joint_2')
    code, _, err = run('payload', *arguments)
    assert code in (0, EXIT_UNUSABLE) and not err, err
    assert yaml.safe_load(file.read_text())['mass'] == pytest.approx(2.0, rel=0.1)


def test_no_payload_is_said_so(run, bag, tmp_path):
    again = shutil.copytree(bag, tmp_path / 'again')
    code, out, _ = run('payload', bag, again, '-o', tmp_path / 'none.yaml')
    assert code == EXIT_UNUSABLE and 'is too small compared with its σ' in out


def test_what_is_missing_is_named(run, bag, tmp_path):
    for arguments in ((bag, tmp_path / 'none'), (tmp_path / 'none', bag)):
        code, out, err = run('payload', *arguments, '-o', tmp_path / 'x.yaml')
        assert (code, out) == (1, '') and 'there is no recording at' in err
    (tmp_path / 'file').write_text('')
    code, _, err = run('payload', bag, bag, '-o', tmp_path / 'file' / 'x.yaml')
    assert code == 1 and err.count('\n') == 1 and 'a bug' not in err


def test_a_motion_for_no_mass_is_refused(run, tmp_path):
    config = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'
    for mass in ('0', '-1', 'nan', 'inf'):
        code, _, err = run('design', config, '--payload', mass, '-o', tmp_path / 'motion.yaml')
        assert code == 2 and '--payload' in err and 'must be a number above zero' in err
    assert not (tmp_path / 'motion.yaml').exists()


def test_a_payload_is_set_by_what_is_printed_where_its_interface_is_not_installed(
    run, bag, loaded, tmp_path
):
    file = tmp_path / 'body.yaml'
    joint = ('--frame', 'joint_2')
    code, out, err = run('payload', bag, loaded, '-o', file, *joint, '--set', 'universal_robots')
    assert code == 1 and "is in 'joint_2', universal_robots takes it in tool0" in err
    assert 'mass' in out and str(file) in out
    content = yaml.safe_load(file.read_text())
    content['frame'] = 'tool0'
    content['centre_of_mass'][2] = 0.1
    file.write_text(yaml.safe_dump(content))
    code, out, err = run('payload', file, '--set', 'universal_robots')
    assert (code, out) == (1, '') and err.count('\n') == 1
    assert 'ros2 service call /io_and_status_controller/set_payload ur_msgs/srv/SetPayload' in err
    code, _, err = run('payload', file, '--restore')
    assert code == 1 and 'is no file that --set wrote' in err
