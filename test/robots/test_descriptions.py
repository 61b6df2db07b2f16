"""Robot descriptions: they load everywhere, are bodies that can exist, and match their sources."""

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin
import pytest

FOLDER = Path(__file__).resolve().parents[2] / 'urdf'
FILES = sorted(FOLDER.glob('*.urdf'))
MOVABLE = {
    'arm3': 3,
    'emps': 1,
    'planar_2r_elastic': 2,
    'puma560': 6,
    'scara': 2,
    'tx40': 6,
    'ur10': 6,
}
EVERY = pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)


def model(name):
    return pin.buildModelFromUrdf(str(FOLDER / f'{name}.urdf'))


def placements(robot, q):
    data = robot.createData()
    pin.forwardKinematics(robot, data, q)
    return [placement.homogeneous for placement in data.oMi[1:]]


def rotation(axis, angle):
    return pin.SE3(pin.utils.rotate(axis, angle), np.zeros(3)).homogeneous


def translation(x, y, z):
    return pin.SE3(np.eye(3), np.array([x, y, z], float)).homogeneous


def test_every_robot_is_described():
    assert {path.stem for path in FILES} == set(MOVABLE)


@EVERY
def test_pinocchio_and_mujoco_see_the_same_robot(path):
    robot = pin.buildModelFromUrdf(str(path))
    physics = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(physics)
    rng = np.random.default_rng(0)
    assert robot.nq == robot.nv == physics.nv == MOVABLE[path.stem]
    for _ in range(5):
        q = rng.uniform(robot.lowerPositionLimit, robot.upperPositionLimit)
        dq, ddq = rng.normal(size=(2, robot.nv))
        data.qpos, data.qvel, data.qacc = q, dq, ddq
        mujoco.mj_forward(physics, data)
        data.qacc = ddq
        mujoco.mj_inverse(physics, data)
        # Dry and viscous friction of the URDF are MuJoCo's passive and constraint forces.
        rigid = data.qfrc_inverse + data.qfrc_passive + data.qfrc_constraint
        torque = pin.rnea(robot, robot.createData(), q, dq, ddq)
        assert rigid == pytest.approx(torque, rel=1e-6, abs=1e-6)


@EVERY
def test_links_are_bodies_that_can_exist(path):
    robot = pin.buildModelFromUrdf(str(path))
    for inertia in robot.inertias[1:]:
        assert inertia.mass > 0
        assert np.linalg.eigvalsh(inertia.toPseudoInertia().toMatrix()).min() > 1e-6


@EVERY
def test_joints_have_limits_and_friction(path):
    for joint in ElementTree.parse(path).getroot().iter('joint'):
        if joint.get('type') == 'fixed':
            continue
        limit = {name: float(value) for name, value in joint.find('limit').attrib.items()}
        assert limit['lower'] < limit['upper']
        assert limit['velocity'] > 0 and limit['effort'] > 0
        dynamics = joint.find('dynamics').attrib
        assert float(dynamics['damping']) >= 0 and float(dynamics['friction']) >= 0


@EVERY
def test_angles_are_whole_digits(path):
    quarter = math.pi / 4
    for origin in ElementTree.parse(path).getroot().iter('origin'):
        for angle in map(float, origin.get('rpy').split()):
            nearest = round(angle / quarter) * quarter
            assert angle == nearest or abs(angle - nearest) > 1e-3


@EVERY
def test_each_says_where_its_numbers_come_from(path):
    text = path.read_text()
    assert text.index('<!--') < text.index('<robot')
    assert len(text[text.index('<!--') : text.index('-->')].split()) > 40


@EVERY
def test_links_do_not_collide_at_rest(path):
    robot, geometry, _ = pin.buildModelsFromUrdf(str(path))
    bodies = [item.parentJoint for item in geometry.geometryObjects]
    for (i, a), (j, b) in itertools.combinations(enumerate(bodies), 2):
        if a != b and robot.parents[a] != b and robot.parents[b] != a:
            geometry.addCollisionPair(pin.CollisionPair(i, j))
    q = np.clip(pin.neutral(robot), robot.lowerPositionLimit, robot.upperPositionLimit)
    assert not pin.computeCollisions(
        robot, robot.createData(), geometry, geometry.createData(), q, False
    )


def test_tx40_follows_its_dh_table():
    table = [  # alpha, d, theta - q, r: modified DH, theta of joints 2 and 3 is the position
        (0, 0, 0, 0),
        (-math.pi / 2, 0, 0, 0),
        (0, 0.225, 0, 0.035),
        (math.pi / 2, 0, 0, 0.225),
        (-math.pi / 2, 0, 0, 0),
        (math.pi / 2, 0, math.pi, 0),
    ]
    robot = model('tx40')
    q = np.random.default_rng(0).uniform(robot.lowerPositionLimit, robot.upperPositionLimit)
    pose = translation(0, 0, 0.32)
    for (alpha, d, offset, r), position, placement in zip(
        table, q, placements(robot, q), strict=True
    ):
        pose = pose @ rotation('x', alpha) @ translation(d, 0, 0)
        pose = pose @ rotation('z', position + offset) @ translation(0, 0, r)
        np.testing.assert_allclose(placement, pose, atol=1e-12)


@pytest.mark.parametrize(
    ('name', 'base', 'table'),
    [
        (
            'ur10',
            rotation('z', math.pi),
            [
                (0.1273, 0, math.pi / 2),
                (0, -0.612, 0),
                (0, -0.5723, 0),
                (0.163941, 0, math.pi / 2),
                (0.1157, 0, -math.pi / 2),
                (0.0922, 0, 0),
            ],
        ),
        ('arm3', np.eye(4), [(0.3, 0, math.pi / 2), (0, 0.5, 0), (0, 0.5, 0)]),
        (
            'puma560',
            translation(0, 0, 0.6718),
            [
                (0, 0, math.pi / 2),
                (0, 0.4318, 0),
                (0.15005, 0.0203, -math.pi / 2),
                (0.4318, 0, math.pi / 2),
                (0, 0, -math.pi / 2),
            ],
        ),
    ],
)
def test_links_sit_where_the_standard_dh_table_puts_them(name, base, table):
    robot = model(name)
    q = np.random.default_rng(1).uniform(robot.lowerPositionLimit, robot.upperPositionLimit)
    offset = [0, math.pi / 2, 0] if name == 'arm3' else np.zeros(len(table))
    pose = base
    found = placements(robot, q)
    for j, (d, a, alpha) in enumerate(table):
        pose = pose @ rotation('z', q[j] + offset[j])
        np.testing.assert_allclose(found[j], pose, atol=1e-9)
        pose = pose @ translation(a, 0, d) @ rotation('x', alpha)


def test_scara_has_the_nominal_parameters_of_its_paper():
    robot = model('scara')
    first, second = robot.inertias[1], robot.inertias[2]
    about_joint = [i.toDynamicParameters()[9] for i in (first, second)]
    length = np.linalg.norm(robot.jointPlacements[2].translation[:2])
    moment = second.mass * second.lever
    assert length == pytest.approx(0.5)
    assert about_joint[0] + second.mass * length**2 == pytest.approx(3.44, abs=1e-9)
    assert about_joint[1] == pytest.approx(0.062, abs=1e-9)
    assert length * moment[0] == pytest.approx(0.121, abs=1e-9)
    assert length * moment[1] == pytest.approx(0.007, abs=1e-9)


def test_scara_feels_no_gravity():
    robot = model('scara')
    torque = pin.computeGeneralizedGravity(robot, robot.createData(), np.array([0.3, -1.0]))
    assert torque == pytest.approx(np.zeros(2), abs=1e-12)


def test_tx40_weighs_what_its_data_sheet_says():
    weight = sum(inertia.mass for inertia in model('tx40').inertias)
    assert weight == pytest.approx(27.0, abs=0.1)


def test_arm3_has_uniform_rods():
    for inertia in model('arm3').inertias[2:]:
        assert inertia.mass == pytest.approx(1.414)
        assert inertia.lever == pytest.approx([0.25, 0.0, 0.0])
        assert inertia.inertia[2, 2] == pytest.approx(1.414 * 0.5**2 / 12, rel=5e-3)


def test_puma_has_the_published_gravity_load_and_inertia():
    """Compare with the Robotics Toolbox at its nominal pose, motors taken out of the inertia."""
    robot = model('puma560')
    data = robot.createData()
    q = np.array([0, math.pi / 4, math.pi, 0, math.pi / 4, 0])
    gravity = pin.computeGeneralizedGravity(robot, data, q)
    assert gravity == pytest.approx([0, 31.6399, 6.0351, 0, 0.0283, 0], abs=1e-4)
    motors = 200e-6 * np.array([62.6111, 107.815, 53.7063]) ** 2
    inertia = np.diag(pin.crba(robot, data, q))[:3] + motors
    # Link 3 had to become a body that can exist: 8 g·m² along the forearm.
    assert inertia == pytest.approx([3.6594, 4.4137, 0.9378], abs=0.009)
