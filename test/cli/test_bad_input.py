"""Recordings as strangers bring them: `identify` gives the right parameters or one sentence."""

import re
import shutil

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
import yaml

pytestmark = pytest.mark.usefixtures('without_bokeh')

EPOCH = 1_700_000_000_000_000_000
STEP = 2_000_000
MESH = '<mesh filename="package://nowhere/x.stl" scale="0.001 0.001 0.001"/>'
CLUTTER = """
  <gazebo><plugin filename="x" name="y"><parameters>$(find x)/y.yaml</parameters></plugin></gazebo>
  <ros2_control name="arm" type="system"><hardware><plugin>x</plugin></hardware>
    <joint name="joint_1"><command_interface name="effort"/></joint></ros2_control>
  <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
    <joint name="joint_1"/>
    <actuator name="m"><mechanicalReduction>1</mechanicalReduction></actuator>
  </transmission>
</robot>"""
FINGER = (
    '<link name="{0}"><inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" '
    'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="{0}_joint" type="prismatic">'
    '<parent link="tool0"/><child link="{0}"/><axis xyz="0 1 0"/>'
    '<limit lower="0" upper="0.04" effort="1" velocity="1"/>{1}</joint>'
)


@pytest.fixture(scope='module')
def made():
    from plant_recording import plant

    return plant()


@pytest.fixture(scope='module')
def rows(made):
    return list(messages(made))


@pytest.fixture
def config(tmp_path):
    def config(urdf=None, **robot):
        from plant_recording import JOINTS, URDF

        (tmp_path / 'arm.urdf').write_text(urdf or URDF)
        robot = {'urdf': str(tmp_path / 'arm.urdf'), 'joints': list(JOINTS), **robot}
        groups = {'robot': robot, 'identification': {'essential': False}}
        path = tmp_path / 'arm.yaml'
        path.write_text(yaml.safe_dump({'/**': {'ros__parameters': groups}}))
        return path

    return config


def messages(made, stamp=None):
    """Yield time of reception and message of each sample, joints the other way round."""
    from bag_tools import joint_state

    recording = made.recording
    for k, (q, dq, tau) in enumerate(
        zip(recording.position, recording.velocity, recording.effort, strict=True)
    ):
        now = EPOCH + k * STEP
        when = now if stamp is None else stamp(k, now)
        names = recording.joints[::-1]
        yield now, joint_state(when, names, q[::-1], dq[::-1], tau[::-1])


def write(path, rows, plugin=StoragePlugin.MCAP, mode=None):
    from bag_tools import JOINT_STATE, STORE

    writer = Writer(path, version=9, storage_plugin=plugin)
    if mode is not None:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection('/joint_states', JOINT_STATE, typestore=STORE)
        for received, data in rows:
            writer.write(connection, received, data)
    return path


@pytest.fixture
def identified(run, made, tmp_path):
    """Identify a bag that is right; gives the names of its findings."""

    def identified(bag, config):
        from plant_recording import arm

        output = tmp_path / 'out'
        # The plain model is the quickest: what is read does not depend on the model.
        model = ('--method', 'wls', '-o', output, '--force')
        code, _, err = run('identify', bag, '-c', config, *model)
        assert code == 0, err
        found = yaml.safe_load((output / 'parameters.yaml').read_text())
        true = made.base(arm())
        errors = [abs(p['value'] - true[p['name']]) / p['sigma'] for p in found['base']]
        assert len(errors) == 25 and np.mean(np.array(errors) < 3.0) >= 0.95, errors
        return {each['name'] for each in found['findings']}

    return identified


@pytest.fixture
def refused(run, tmp_path):
    """Identify a bag that is refused in one sentence."""

    def refused(bag, config):
        code, out, err = run('identify', bag, '-c', config, '-o', tmp_path / 'refused')
        assert code == 1 and out == ''
        assert re.fullmatch(r'robotid: [^\n]+\n', err) and 'a bug' not in err, err
        return err

    return refused


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
@pytest.mark.parametrize('mode', [None, CompressionMode.FILE, CompressionMode.MESSAGE])
def test_joint_states_alone_in_every_format(rows, identified, config, tmp_path, plugin, mode):
    identified(write(tmp_path / 'bag', rows, plugin, mode), config())


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_compressed_file_without_its_metadata(
    rows, identified, refused, config, tmp_path, plugin
):
    bag = write(tmp_path / 'bag', rows, plugin, CompressionMode.MESSAGE)
    (bag / 'metadata.yaml').unlink()
    identified(bag, config())
    whole = write(tmp_path / 'whole', rows, plugin, CompressionMode.FILE)
    (packed,) = whole.glob('*.zstd')
    identified(packed, config())
    (whole / 'metadata.yaml').unlink()
    identified(whole, config())
    packed.rename(tmp_path / 'packed.db3')
    assert "rename it to 'packed.db3.zstd'" in refused(tmp_path / 'packed.db3', config())


def test_a_bag_in_several_files(rows, identified, config, tmp_path):
    (tmp_path / 'bag').mkdir()
    for part in range(3):
        third = rows[part * len(rows) // 3 : (part + 1) * len(rows) // 3]
        piece = write(tmp_path / f'piece_{part}', third)
        shutil.move(piece / f'piece_{part}.mcap', tmp_path / 'bag' / f'bag_{part}.mcap')
    identified(tmp_path / 'bag', config())


@pytest.mark.parametrize(
    ('stamp', 'name', 'words'),
    [
        (lambda k, now: now - EPOCH, '', ''),
        (lambda k, now: 0, 'no_stamps', 'carry no stamps'),
        (lambda k, now: now if k < 3000 else now - 10**11, 'clock_jumped', 'by -100 s'),
        (lambda k, now: now if k < 3000 else now + 10**15, 'clock_jumped', 'by +1e+06 s'),
        (lambda k, now: 0 if k in (0, 700) else now, 'stamps_far_off', '2 samples'),
    ],
    ids=['from zero', 'none', 'back', 'ahead', 'two zero'],
)
def test_clocks(made, run, identified, config, tmp_path, stamp, name, words):
    bag = write(tmp_path / 'bag', messages(made, stamp))
    code, out, _ = run('inspect', bag)
    assert code == 0 and words in out
    assert not name or name in identified(bag, config())


def test_grippers_and_changing_orders(made, identified, config, tmp_path):
    from bag_tools import joint_state

    rng, rows, r = np.random.default_rng(0), [], made.recording
    for k in range(r.time.size):
        order = rng.permutation(4)
        names = [('finger', *r.joints)[i] for i in order]
        position, effort = np.append(0.1, r.position[k]), np.append(np.nan, r.effort[k])
        now = EPOCH + k * STEP
        rows.append((now, joint_state(now, names, position[order], (), effort[order])))
        if k % 5 == 0:
            rows.append((now + 1, joint_state(now + 1, ['wheel'], [0.0], [0.0], [0.0])))
    identified(write(tmp_path / 'bag', rows), config())


def test_velocities_only(made, run, refused, config, tmp_path):
    from bag_tools import joint_state

    r = made.recording
    rows = [
        (EPOCH + k * STEP, joint_state(EPOCH + k * STEP, r.joints, (), dq, tau))
        for k, (dq, tau) in enumerate(zip(r.velocity, r.effort, strict=True))
    ]
    bag = write(tmp_path / 'bag', rows)
    code, out, _ = run('inspect', bag)
    assert code == 4 and 'position' in out
    assert 'has no position of any joint' in refused(bag, config())


def test_urdfs_as_they_are(rows, identified, refused, config, tmp_path):
    from plant_recording import URDF

    bag = write(tmp_path / 'bag', rows)
    rounded = URDF.replace('1.5707963267948966', '1.57').replace('3.141592653589793', '3.14')
    assert 'angles_rounded' in identified(bag, config(rounded))
    cylinder = '<cylinder radius="0.08" length="0.2"/>'
    identified(bag, config(URDF.replace(cylinder, MESH).replace('</robot>', CLUTTER)))
    fingers = FINGER.format('a', '') + FINGER.format('b', '<mimic joint="a_joint"/>')
    identified(bag, config(URDF.replace('</robot>', f'{fingers}</robot>')))
    raw = URDF.replace('mass value="8.0"', 'mass value="${mass}"')
    assert 'run xacro' in refused(bag, config(raw))
    assert "'0,25 0 0'" in refused(bag, config(URDF.replace('0.25 0.0 0.0', '0,25 0 0')))


def test_inspect_says_beforehand_what_identify_will_say(made, run, tmp_path):
    from bag_tools import joint_state

    r = made.recording
    position = (r.position + np.array([3.0, 0.0, 0.0]) + np.pi) % (2.0 * np.pi) - np.pi
    effort = r.effort.copy()
    effort[:, 1] = 3.3
    rows = [
        (EPOCH + k * STEP, joint_state(EPOCH + k * STEP, r.joints, q, (), tau))
        for k, (q, tau) in enumerate(zip(position, effort, strict=True))
    ]
    code, out, _ = run('inspect', write(tmp_path / 'bag', rows))
    assert code == 0
    assert 'position of joint_1 jumps by 2π' in out
    assert [line.split()[-1] for line in out.splitlines() if line.startswith('joint_2 ')] == [
        'constant'
    ]
