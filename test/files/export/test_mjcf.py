"""MuJoCo moves an exported robot as the identified model does, drives and couplings included."""

from xml.etree import ElementTree

from identified_models import of_configuration, of_description, ROOT, without
import mujoco
from mujoco_dynamics import Simulated
import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.export.simulators import mjcf

NAMES = ('scara', 'tx40', 'ur10', 'arm3', 'emps')
MESH = (
    '<robot name="m"><link name="world"/><link name="a"><inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{shapes}</link>'
    '<joint name="j" type="continuous"><parent link="world"/><child link="a"/>'
    '<axis xyz="0 0 1"/></joint></robot>'
)
BODY = (
    '<inertial><origin xyz="0.1 0.02 0.03" rpy="0.1 0.2 0.3"/><mass value="2"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>'
)
LINK = f'<link name="{{}}">{BODY}</link>'
JOINT = (
    '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>'
    '<origin xyz="0.3 0.1 0" rpy="0.2 0.4 0"/><axis xyz="0 0.6 0.8"/>'
    '<limit lower="-2" upper="2" effort="9" velocity="3"/>{}</joint>'
)
# A finger and one that follows the first joint, from the second link.
GRIPPER = ''.join(
    [
        '<robot name="gripper">',
        *map(LINK.format, 'abcde'),
        JOINT.format('one', 'revolute', 'a', 'b', ''),
        JOINT.format('two', 'revolute', 'b', 'c', ''),
        JOINT.format('finger', 'prismatic', 'c', 'd', ''),
        JOINT.format(
            *('follower', 'prismatic', 'c', 'e'),
            '<mimic joint="one" multiplier="-0.4" offset="0.05"/><dynamics damping="7"/>',
        ),
        '</robot>',
    ]
)


def states(robot, count=5):
    """Draw states whose joints all turn faster than MuJoCo's dry friction needs to be whole."""
    q, dq, ddq = np.random.default_rng(1).uniform(-1.0, 1.0, (3, count, robot.n))
    return zip(q, dq + 0.5 * np.sign(dq), ddq, strict=True)


def expected(robot, chi, q, dq, ddq):
    return inverse_dynamics(robot, chi, q[None], dq[None], ddq[None])[0]


def check_efforts(robot, chi, simulated):
    """Compare inverse dynamics: to 1e-6, relative to the largest effort of a state."""
    for q, dq, ddq in states(robot):
        tau = expected(robot, chi, q, dq, ddq)
        found = simulated.efforts(q, dq, ddq)
        np.testing.assert_allclose(found, tau, rtol=0.0, atol=1e-6 * np.abs(tau).max())


@pytest.mark.parametrize('name', NAMES)
def test_mujoco_needs_the_same_efforts(tmp_path, name):
    model = of_configuration(
        tmp_path, name, friction={'default': ['viscous', 'coulomb', 'offset']}
    )
    robot, chi = model.robot, model.chi
    text, notes = mjcf(model)
    moving = Simulated(text, robot)
    check_efforts(robot, without(robot, chi, 'Ia', 'Fv', 'Fc'), moving)
    rigid = moving.without_friction()
    check_efforts(robot, without(robot, chi, 'Ia'), rigid)
    # Efforts are what the actuators are given: the offset is theirs.
    driven = without(robot, chi, 'Ia', 'off')
    for q, dq, ddq in states(robot):
        found = rigid.accelerations(q, dq, expected(robot, driven, q, dq, ddq))
        np.testing.assert_allclose(found, ddq, rtol=1e-6, atol=1e-6)
    assert len(notes) == 1 and f'of {robot.p} parameters' in notes[0]


def test_limits_of_joints_and_actuators_are_those_of_the_model(tmp_path):
    model = of_configuration(tmp_path, 'ur10', effort=[11.0, 12.0, 13.0, 14.0, 15.0, 16.0])
    simulated = mujoco.MjModel.from_xml_string(mjcf(model)[0])
    for k, joint in enumerate(model.robot.joints):
        limits = model.robot.limits
        assert simulated.joint(joint).range.tolist() == [limits.lower[k], limits.upper[k]]
        assert simulated.actuator(joint).ctrlrange.tolist() == [-11.0 - k, 11.0 + k]


def test_pinocchio_reads_it_with_its_armature(tmp_path):
    model = of_configuration(tmp_path, 'ur10')
    path = tmp_path / 'ur10.xml'
    path.write_text(mjcf(model)[0])
    other = pin.buildModelFromMJCF(str(path))
    order = [model.robot.joints.index(name) for name in list(other.names)[1:]]
    chi = without(model.robot, model.chi, 'Ia')
    for state in states(model.robot):
        tau = pin.rnea(other, other.createData(), *(x[order] for x in state))
        np.testing.assert_allclose(tau, expected(model.robot, chi, *state)[order], rtol=1e-9)


def test_joints_that_mimic_others_move_with_them(tmp_path):
    model = of_description(tmp_path, GRIPPER, friction={'default': ()})
    text, _ = mjcf(model)
    check_efforts(model.robot, model.chi, Simulated(text, model.robot))
    assert mujoco.MjModel.from_xml_string(text).eq_data[0, :2].tolist() == [0.05, -0.4]
    motors = [motor.get('name') for motor in ElementTree.fromstring(text).iter('motor')]
    assert motors == ['one', 'two', 'finger']


@pytest.mark.parametrize('joints', [('joint_1', 'joint_3'), ('joint_2',)])
def test_joints_that_were_locked_move_again(tmp_path, joints):
    locked = {name: 0.4 for name in ('joint_1', 'joint_2', 'joint_3') if name not in joints}
    text = (ROOT / 'urdf' / 'arm3.urdf').read_text()
    model = of_description(tmp_path, text, joints=joints, locked=locked)
    simulated = Simulated(mjcf(model)[0], model.robot)
    assert simulated.model.nv == 3 and model.robot.locked == locked
    bodies = without(model.robot, model.chi, 'Ia')
    check_efforts(model.robot, bodies, simulated.without_friction())


def test_springs_are_left_out_with_a_sentence(tmp_path):
    model = of_configuration(tmp_path, 'planar_2r_elastic')
    text, notes = mjcf(model)
    rigid = model.robot.rigid
    chi = np.array([model.chi[model.robot.column(p.name)] for p in rigid.parameters])
    check_efforts(rigid, without(rigid, chi, 'Ia'), Simulated(text, rigid).without_friction())
    assert 'springs between motor and link of' in notes[0] and notes[0] in text


def test_friction_without_a_place_is_told(tmp_path):
    terms = {
        'joint_1': ['viscous', 'stribeck', 'load_coulomb', 'coulomb'],
        'joint_2': ['viscous', 'stribeck', 'coulomb'],
    }
    model = of_configuration(tmp_path, 'scara', friction=terms)
    text, notes = mjcf(model)
    assert 'stand for other laws of friction' in notes[0] and notes[0] in text
    assert 'joint_1 ' in notes[0] and 'joint_2 ' in notes[0]
    assert mujoco.MjModel.from_xml_string(text).nv == 2


def tetrahedron(height=1):
    """Return a binary STL of four triangles."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, height]], np.float32) * 0.1
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    facets = [
        np.zeros(3, np.float32).tobytes() + corners[list(face)].tobytes() + b'\0\0'
        for face in faces
    ]
    return bytes(80) + np.uint32(len(faces)).tobytes() + b''.join(facets)


def test_meshes_are_found_or_named(tmp_path):
    place = tmp_path / 'ws' / 'my_arm' / 'meshes'
    place.mkdir(parents=True)
    (place / 'a link.stl').write_bytes(tetrahedron())
    (place / 'flat.stl').write_bytes(tetrahedron(height=0))
    shapes = [
        f'<{tag}><origin xyz="0 0 1"/><geometry><mesh filename="package://my_arm/meshes/{name}" '
        'scale="2 2 2"/></geometry></' + f'{tag}>'
        for tag, name in (
            *(('visual', 'a.dae'), ('visual', 'a%20link.stl'), ('visual', 'flat.stl')),
            *(('collision', 'b.stl'), ('collision', 'flat.stl')),
        )
    ]
    model = of_description(tmp_path, MESH.format(shapes=''.join(shapes)))
    text, notes = mjcf(model, [tmp_path / 'ws'])
    found = mujoco.MjModel.from_xml_string(text)
    edges = found.mesh_vert[:, None] - found.mesh_vert
    assert found.nmesh == 1 and np.linalg.norm(edges, axis=2).max() == pytest.approx(0.08**0.5)
    assert all(name in notes[-1] for name in ('a.dae', 'b.stl', 'flat.stl'))
    assert 'a link' not in notes[-1]
    assert mujoco.MjModel.from_xml_string(mjcf(model)[0]).nmesh == 0
    # The folder of the package itself: a checkout may have another name.
    assert mjcf(model, [tmp_path / 'ws' / 'my_arm']) == (text, notes)


def test_an_inertia_that_no_body_has_becomes_the_nearest_and_is_told(tmp_path):
    """Of a link that was not identified: MuJoCo would not load it."""
    text = GRIPPER.replace('izz="0.04"', 'izz="0.09"')
    model = of_description(tmp_path, text, joints=('one',), locked={'two': 0.1, 'finger': 0.0})
    file, notes = mjcf(model)
    assert mujoco.MjModel.from_xml_string(file).nv == 4
    assert 'no body has the inertia of c, d' in notes[-1] and notes[-1] in file


def test_shapes_without_a_size_are_left_out(tmp_path):
    geometries = ('sphere radius="0"', 'cylinder radius="1"', 'box size="1 1"', 'box size="1 1 2"')
    shapes = ''.join(
        f'<collision><geometry><{geometry}/></geometry></collision>' for geometry in geometries
    )
    model = of_description(tmp_path, MESH.format(shapes=shapes))
    found = mujoco.MjModel.from_xml_string(mjcf(model)[0])
    assert found.geom_size.tolist() == [[0.5, 0.5, 1.0]]
