"""What Gazebo is given: the robot unchanged, plus effort interfaces on every controlled joint."""

from collections.abc import Mapping
import dataclasses
from importlib import resources
from pathlib import Path
import re
from xml.etree import ElementTree

import numpy as np
import pinocchio
import pytest
import yaml

from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.core.setup.joint_choice import JointTree
from robotid_ros.core.verification.gains import body_inertia, BodyLoops
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.configuration import Configuration, load, read_urdf
from robotid_ros.files.export.gazebo import (
    controller_parameters,
    friction_factors,
    gazebo_configuration,
    gazebo_description,
    prepare_gazebo,
    RobotInGazebo,
    SYSTEM,
    with_fixed_joints,
)
from robotid_ros.simulation_settings import GainSettings, SimulationSettings

URDF = Path(str(resources.files('robotid_ros'))).parent / 'urdf'
CONFIGURATIONS = sorted((URDF.parent / 'config').glob('*.yaml'))
ROBOTS = sorted(path.stem for path in URDF.glob('*.urdf'))


def driven_joints(urdf: str) -> list[str]:
    return list(JointTree(urdf).independent)


@pytest.mark.parametrize('name', ROBOTS)
def test_robot_keeps_its_dynamics(name: str) -> None:
    urdf = (URDF / f'{name}.urdf').read_text()
    joints = driven_joints(urdf)
    text = gazebo_description(urdf, joints, [], '/tmp/parameters.yaml')
    before, after = (pinocchio.buildModelFromXML(t) for t in (urdf, text))
    assert list(after.names) == list(before.names)
    q = pinocchio.neutral(before)
    masses = [pinocchio.crba(m, m.createData(), q) for m in (before, after)]
    assert masses[1] == pytest.approx(masses[0], abs=1e-12)


def test_hardware_of_a_real_robot_is_left_out() -> None:
    """The plugin loads every system that the description names, and fails at foreign ones."""
    urdf = (URDF / 'arm3.urdf').read_text()
    real = (
        '<ros2_control name="arm" type="system"><hardware><plugin>maker/RealHardware</plugin>'
        '</hardware></ros2_control><gazebo><plugin filename="libgz_ros2_control-system.so" '
        'name="gz_ros2_control::GazeboSimROS2ControlPlugin"><parameters>theirs.yaml</parameters>'
        '</plugin></gazebo><gazebo reference="link_1"><plugin filename="gz-sim-contact-system" '
        'name="contact"/></gazebo></robot>'
    )
    text = gazebo_description(urdf.replace('</robot>', real), driven_joints(urdf), [], 'p.yaml')
    robot = ElementTree.fromstring(text)
    assert [s.findtext('hardware/plugin') for s in robot.findall('ros2_control')] == [SYSTEM]
    assert [p.text for p in robot.iter('parameters')] == ['p.yaml']
    assert robot.find("gazebo/plugin[@name='contact']") is not None


@pytest.mark.parametrize(
    ('wanted', 'rate'),
    [(2000, 1000), (1000, 1000), (800, 500), (500, 500), (400, 250), (300, 250), (150, 125)],
)
def test_the_rate_is_one_at_which_gazebo_updates(wanted: float, rate: int) -> None:
    """The plugin updates at the first step that is not sooner than a period of the controller."""
    content = controller_parameters(
        SimulationSettings(update_rate=wanted, state_rate=100.0), ['a']
    )
    assert content['controller_manager']['ros__parameters']['update_rate'] == rate
    step, period, last, updates = 1_000_000, round(1e9 / rate), 0, 0
    for now in range(step, 10**9 + 1, step):
        if now - last >= period:
            last, updates = now, updates + 1
    assert updates == rate


def test_every_joint_has_effort_and_starts_where_told() -> None:
    urdf = (URDF / 'arm3.urdf').read_text()
    joints = driven_joints(urdf)
    positions = [0.1 * i for i in range(len(joints))]
    robot = ElementTree.fromstring(gazebo_description(urdf, joints, positions, 'p.yaml'))
    found = robot.findall('ros2_control/joint')
    assert [j.get('name') for j in found] == joints
    assert all(j.find("command_interface[@name='effort']") is not None for j in found)
    assert [float(j.find('.//param').text) for j in found] == positions
    states = [[s.get('name') for s in j.findall('state_interface')] for j in found]
    assert states == [['position', 'velocity']] * len(joints)
    assert robot.find('gazebo/plugin/parameters').text == 'p.yaml'


@pytest.mark.parametrize('path', CONFIGURATIONS, ids=lambda p: p.stem)
def test_every_configured_robot_comes_with_its_controllers(path: Path, tmp_path: Path) -> None:
    configuration, file = load(path), tmp_path / 'controllers.yaml'
    robot = ElementTree.fromstring(prepare_gazebo(configuration, file))
    assert robot.findtext('gazebo/plugin/parameters') == str(file)
    parameters = yaml.safe_load(file.read_text())
    controller = parameters[configuration.simulation.controller]['ros__parameters']
    names = [joint.get('name') for joint in robot.findall('ros2_control/joint')]
    assert controller['joints'] == names
    assert all(controller['gains'][name]['p'] > 0.0 for name in names)
    assert unstable_joints(configuration, controller['gains']) == []
    times = [parameters[name]['ros__parameters']['use_sim_time'] for name in parameters]
    assert times == [True] * 3


def bodies(configuration: Configuration) -> Robot:
    settings = dataclasses.replace(configuration.robot, elastic=ElasticSettings())
    return build_robot(read_urdf(configuration) or '', settings)


def unstable_joints(
    configuration: Configuration, gains: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Simulate each posture's bodies under a controller as Gazebo steps them, name who escapes."""
    robot, h = bodies(configuration), 1e-3
    p, d = np.array([[gains[joint][name] for joint in robot.joints] for name in 'pd'])
    mass = body_inertia(robot)
    step = np.linalg.inv(mass + h * np.diag(robot.damping))
    q, dq = np.full((2, len(mass), robot.n), 1e-6) * [[[1.0]], [[0.0]]]
    for _ in range(1000):
        force = np.einsum('kij,kj->ki', mass, dq) - h * (p * q + d * dq)
        dq = np.clip(np.einsum('kij,kj->ki', step, force), -1.0, 1.0)
        q = q + h * dq
    return [robot.joints[j] for j in np.flatnonzero((np.abs(q) > 1e-4).any(axis=0))]


def test_gains_that_rotors_bear_are_named_where_there_are_none() -> None:
    """Those of a geared robot shake its wrist in Gazebo; lowered by hand, nothing changes."""
    configuration = load(URDF.parent / 'config' / 'ur10.yaml')
    gains = {j: dataclasses.asdict(g) for j, g in configuration.simulation.gains.items()}
    assert 'wrist_3_joint' in unstable_joints(configuration, gains)
    robot = bodies(configuration)
    values = np.array([[gains[j][name] for j in robot.joints] for name in 'pid'])
    assert 'wrist_3_joint' in BodyLoops(robot, values, 1000.0).unstable_joints()
    lowered = BodyLoops(robot, values, 1000.0).bearable_gains()
    assert BodyLoops(robot, lowered, 1000.0).unstable_joints() == []
    assert (lowered <= values).all()
    assert BodyLoops(robot, lowered, 1000.0).bearable_gains() == pytest.approx(lowered)


def test_joints_of_gazebo_are_rigid_and_may_sag(tmp_path: Path) -> None:
    """It has no springs, no joint states of the motors behind them, and no rotors to damp."""
    given = URDF.parent / 'config' / 'planar_2r_elastic.yaml'
    written, before = load(gazebo_configuration(given, tmp_path)), load(given)
    assert not written.robot.elastic.joints
    assert build_robot(read_urdf(written) or '', written.robot).elastic is None
    assert written.excitation == before.excitation
    rigid = URDF.parent / 'config' / 'scara.yaml'
    assert gazebo_configuration(rigid, tmp_path) is rigid
    values = yaml.safe_load((URDF.parent / 'config' / 'arm3.yaml').read_text())
    groups = values['/**']['ros__parameters']
    groups['robot']['urdf'] = str(URDF / 'arm3.urdf')
    groups['excitation']['tracking_error'] = [0.2, 0.01, 0.01]
    for gains in groups['simulation']['gains'].values():
        gains['p'] = 100.0
    soft = tmp_path / 'soft.yaml'
    soft.write_text(yaml.safe_dump(values))
    sag = RobotInGazebo(load(soft)).sag()
    there = yaml.safe_load(gazebo_configuration(soft, tmp_path / 'there').read_text())
    allowed = there['/**']['ros__parameters']['excitation']
    assert allowed['tracking_error'] == pytest.approx([0.2, *(2.5 * sag[1:])], abs=1e-4)
    assert (np.array(allowed['goal_tolerance']) >= 1.5 * sag - 1e-4).all()


def test_joints_that_nothing_drives_stand_where_they_are_locked() -> None:
    """A gripper would dangle: fixed, it is where the model has it, and the arm weighs the same."""
    finger = (
        '<inertial><origin xyz="0.1 0.02 0"/><mass value="0.2"/>'
        '<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    urdf = (URDF / 'arm3.urdf').read_text()
    end = ElementTree.fromstring(urdf).findall('link')[-1].get('name')
    added = f"""
      <link name="thumb">{finger}<link name="slide">{finger}<link name="far">{finger}
      <joint name="swing" type="revolute"><parent link="{end}"/><child link="thumb"/>
        <origin xyz="0.1 0 0.2" rpy="0.3 -0.2 0.9"/><axis xyz="0 2 1"/>{limit}</joint>
      <joint name="push" type="prismatic"><parent link="thumb"/><child link="slide"/>
        <axis xyz="0 0 1"/>{limit}<mimic joint="swing" multiplier="0.5" offset="0.1"/></joint>
      <joint name="turn" type="continuous"><parent link="slide"/><child link="far"/></joint>
    </robot>"""
    whole = urdf.replace('</robot>', added)
    joints = tuple(driven_joints(urdf))
    robot = build_robot(whole, RobotSettings(joints=joints, locked={'swing': 0.4, 'turn': -0.7}))
    before = pinocchio.buildModelFromXML(whole)
    after = pinocchio.buildModelFromXML(with_fixed_joints(whole, robot))
    assert list(after.names) == ['universe', *joints]
    q = np.array([0.2, -0.5, 0.9, 0.4, 0.3, np.cos(-0.7), np.sin(-0.7)])
    data = before.createData(), after.createData()
    weights = [
        pinocchio.computeGeneralizedGravity(m, d, x)[:3]
        for m, d, x in zip((before, after), data, (q, q[:3]), strict=True)
    ]
    assert weights[1] == pytest.approx(weights[0], abs=1e-12)
    placed = []
    for model, d, x in zip((before, after), data, (q, q[:3]), strict=True):
        pinocchio.framesForwardKinematics(model, d, x)
        placed.append(d.oMf[model.getFrameId('far')].homogeneous)
    assert placed[1] == pytest.approx(placed[0], abs=1e-12)


def test_dry_friction_of_light_damped_joints_is_a_multiple_in_gazebo() -> None:
    """The force that stops a step of DART is that of (M + h D) and not of M."""
    robot = bodies(load(URDF.parent / 'config' / 'emps.yaml'))
    mass, h = float(body_inertia(robot)[0, 0, 0]), 1e-3
    damping, speed, dry = 4.0 * mass / h, 0.3, 2.0
    robot = dataclasses.replace(robot, damping=np.array([damping]))
    stepped = mass / (mass + h * damping) * speed - h / mass * dry
    as_force = (mass * speed / h - stepped * (mass + h * damping) / h) / dry
    assert friction_factors(robot) == pytest.approx([as_force])


def test_links_without_inertials_share_the_mass_of_the_robot(tmp_path: Path) -> None:
    text = (URDF / 'arm3.urdf').read_text()
    bare = tmp_path / 'bare.urdf'
    bare.write_text(re.sub('<inertial>.*?</inertial>', '', text, flags=re.DOTALL))
    robot = RobotSettings(urdf=str(bare), mass=20.0)
    spawned = prepare_gazebo(Configuration(robot=robot), tmp_path / 'controllers.yaml')
    model = pinocchio.buildModelFromXML(spawned)
    assert all(inertia.mass > 0.0 for inertia in model.inertias.tolist()[1:])


def test_a_robot_without_description_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='URDF'):
        prepare_gazebo(Configuration(), tmp_path / 'controllers.yaml')


def test_positions_must_match_joints() -> None:
    urdf = (URDF / 'arm3.urdf').read_text()
    with pytest.raises(ValueError):
        gazebo_description(urdf, driven_joints(urdf), [0.0], 'p.yaml')


def test_controller_is_in_effort_mode_with_the_configured_gains() -> None:
    settings = SimulationSettings(controller='arm', gains={'a': GainSettings(p=5.0, d=1.0)})
    content = yaml.safe_load(yaml.safe_dump(controller_parameters(settings, ['a', 'b'])))
    controller = content['arm']['ros__parameters']
    assert controller['command_interfaces'] == ['effort']
    assert controller['gains'] == {'a': {'p': 5.0, 'i': 0.0, 'd': 1.0, 'ff_velocity_scale': 0.0}}
    assert set(content['controller_manager']['ros__parameters']) >= {'arm'}
