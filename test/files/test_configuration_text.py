"""The written configuration says what was chosen, loads, and is found right where it lies."""

import dataclasses
from pathlib import Path

import pytest

from robotid_ros.core.model import build_robot
from robotid_ros.core.setup.robot_setup import KnownFacts, set_up_robot
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.configuration_text import (
    configuration_text,
    settings_text,
    urdf_setting,
    WIDTH,
)
from robotid_ros.files.yaml import parse_yaml
from robotid_ros.settings import setting

URDF = Path(__file__).resolve().parents[2] / 'urdf'
SLIDER = """<robot name="gantry"><link name="base"/>
  <link name="cart"><inertial><origin xyz="0 0 0.1"/><mass value="3"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" velocity="0.5" effort="200"/></joint>
  <joint name="turn" type="continuous"><parent link="cart"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit velocity="2" effort="20"/></joint>
</robot>"""


@pytest.fixture(scope='module')
def arm():
    return set_up_robot((URDF / 'arm3.urdf').read_text())


def write(folder, setup, urdf):
    path = folder / 'robot.yaml'
    path.write_text(configuration_text(setup, str(urdf)))
    return path


def test_names_that_mean_something_in_yaml_stay_names(tmp_path):
    names = ('1', 'b: c #d')
    text = SLIDER.replace('"rail"', f'"{names[0]}"').replace('"turn"', f'"{names[1]}"')
    configuration = load(write(tmp_path, set_up_robot(text), URDF / 'arm3.urdf'))
    assert configuration.robot.joints == tuple(configuration.simulation.gains) == names


def test_what_was_chosen_is_what_is_read(tmp_path, arm):
    configuration = load(write(tmp_path, arm, URDF / 'arm3.urdf'))
    assert configuration.robot.joints == arm.arm.joints
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    assert robot.limits.acceleration.tolist() == arm.limits.acceleration.tolist()
    assert all(robot.open_friction)
    found, chosen = configuration.excitation, arm.excitation
    for name in ('start', 'margins', 'time_limit', 'period', 'order'):
        assert getattr(found, name) == getattr(chosen, name)
    folders = tuple(map(str, (URDF, *URDF.parents)))
    expected = dataclasses.replace(chosen.workspace, mesh_folders=folders)
    assert found.workspace == expected
    simulation = configuration.simulation
    assert simulation.initial_positions == chosen.start
    assert set(simulation.gains) == set(arm.arm.joints)
    assert simulation.gains['joint_1'].p == pytest.approx(arm.drives.p[0], rel=1e-2)
    assert simulation.viscous == pytest.approx(arm.drives.viscous.tolist(), rel=1e-2)


def test_prismatic_and_continuous_joints_have_tolerances_and_ranges_of_their_own(tmp_path):
    path = write(tmp_path, set_up_robot(SLIDER), 'gantry.urdf')
    assert '# How far turn may turn, which have no position limits.' in path.read_text()
    configuration = load(path)
    assert configuration.excitation.tracking_error == (0.02, 0.1)
    assert configuration.excitation.amplitude == pytest.approx(3.142)
    # At 2 rad/s, two thirds of the noise of a joint of 3 rad/s.
    assert configuration.simulation.noise.position == (2e-6, pytest.approx(1.33e-5))


def test_what_cannot_be_checked_is_left_to_the_user_to_accept(tmp_path, arm):
    path = write(tmp_path, set_up_robot(SLIDER), 'gantry.urdf')
    assert load(path).excitation.accept_unchecked == ()
    text = path.read_text()
    assert 'has no collision geometry' in ' '.join(text.replace('#', '').split())
    hidden = '# accept_unchecked: [collision_geometry]'
    assert hidden in text
    path.write_text(text.replace(hidden, hidden.removeprefix('# ')))
    assert load(path).excitation.accept_unchecked == ('collision_geometry',)
    assert 'accept_unchecked' not in write(tmp_path, arm, 'arm3.urdf').read_text()


def test_what_is_known_of_a_live_robot_is_taken_over(tmp_path):
    gains = {'joint_2': {'p': 7.0, 'd': 3.0}}
    facts = KnownFacts(
        controller='my_controller', update_rate=250.0, gains=gains, effort_kind='joint_torque'
    )
    setup = set_up_robot((URDF / 'arm3.urdf').read_text(), facts=facts)
    configuration = load(write(tmp_path, setup, URDF / 'arm3.urdf'))
    assert configuration.excitation.controller == 'my_controller'
    assert configuration.simulation.controller == 'my_controller'
    assert configuration.simulation.update_rate == 250.0
    assert configuration.robot.effort_kind == 'joint_torque'
    assert configuration.simulation.gains['joint_2'].p == 7.0
    assert configuration.simulation.gains['joint_1'].p > 7.0


def test_a_description_beside_its_configuration_is_named_relative_to_it():
    beside = urdf_setting(Path('/robots/arm/urdf/arm.urdf'), Path('/robots/arm/arm.yaml'))
    assert beside == 'urdf/arm.urdf'
    elsewhere = urdf_setting(Path('/robots/arm/urdf/arm.urdf'), Path('/home/me/arm.yaml'))
    assert elsewhere == '/robots/arm/urdf/arm.urdf'


def test_long_lists_and_comments_are_wrapped_and_read_back():
    names = tuple(f'a_joint_with_a_long_name_{k}: "odd"' for k in range(9))

    @dataclasses.dataclass
    class Group:
        joints: tuple[str, ...] = setting(names, 'word ' * 60)

    @dataclasses.dataclass
    class Free:
        x: float = setting(0.0, 'hidden')

    @dataclasses.dataclass
    class Groups:
        robot: Group = setting(Group, 'the robot')
        more: dict[str, Free] = setting(dict, 'others')

    text = settings_text(Groups, 'head ' * 40)
    assert max(map(len, text.splitlines())) <= WIDTH
    parsed = parse_yaml(text, 'text')['/**']['ros__parameters']
    assert parsed == {'robot': {'joints': [*names]}, 'more': {}}
    assert '    #   NAME:\n' in text
