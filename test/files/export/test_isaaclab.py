"""Exports for Isaac Lab: valid for USD's own checks; MuJoCo needs the efforts of the model."""

from identified_models import of_configuration, of_description, without
from isaaclab_names import run
import mujoco
from mujoco_dynamics import Simulated
import numpy as np
import pytest

from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.export.simulators import isaaclab

pytest.importorskip('pxr')
from pxr import Usd, UsdGeom, UsdPhysics, UsdValidation

DEGREE = np.pi / 180.0
BODY = (
    '<inertial><origin xyz="0.1 0.02 0.03" rpy="0.1 0.2 0.3"/><mass value="2"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>'
)
JOINT = (
    '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>'
    '<origin xyz="0.3 0.1 0" rpy="0.2 0.4 0"/><axis xyz="0 0.6 -0.8"/>'
    '<limit lower="0.2" upper="2" effort="9" velocity="3"/>{}</joint>'
)
# Names that USD does not have, a tool that is fixed, a joint that slides, one that follows.
HAND = (
    '<robot name="2-hand">'
    + ''.join(f'<link name="{name}">{BODY}</link>' for name in ('base', 'arm/1', 'arm.1', 'jaw'))
    + f'<link name="tool">{BODY}<visual><geometry><mesh filename="a.stl"/></geometry></visual>'
    + '</link>'
    + JOINT.format('turn-1', 'revolute', 'base', 'arm/1', '')
    + JOINT.format('slide', 'prismatic', 'arm/1', 'arm.1', '')
    + JOINT.format('close', 'prismatic', 'arm/1', 'jaw', '<mimic joint="slide"/>')
    + '<joint name="fixed" type="fixed"><parent link="arm.1"/><child link="tool"/>'
    + '<origin xyz="0 0.1 0.2" rpy="0.3 0 0"/></joint></robot>'
)


def opened(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    (name,) = (name for name in files if name.endswith('.usda'))
    return Usd.Stage.Open(str(folder / name))


def mistakes(stage):
    context = UsdValidation.ValidationContext(
        UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    )
    return [error.GetMessage() for error in context.Validate(stage)]


def placed(position, orientation):
    """Return H (4, 4) of a pose of USD."""
    place = np.eye(4)
    turn = np.array([orientation.GetReal(), *orientation.GetImaginary()], dtype=float)
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, turn / np.linalg.norm(turn))
    place[:3, :3], place[:3, 3] = matrix.reshape(3, 3), position
    return place


def written(values):
    return ' '.join(map(repr, map(float, values)))


def as_mjcf(stage, names):
    """Return the bodies and joints of a stage as MJCF, the joints with our names."""
    joints = {
        prim.GetRelationship('physics:body1').GetTargets()[0].name: prim
        for prim in stage.Traverse()
        if prim.IsA(UsdPhysics.Joint)
    }
    bodies = {
        prim.GetName(): prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)
    }

    def text(name):
        prim, joint = bodies[name], joints[name]

        def get(key):
            return prim.GetAttribute(f'physics:{key}').Get()

        axes = placed(get('centerOfMass'), get('principalAxes'))
        inside = (
            f'<inertial pos="{written(axes[:3, 3])}" quat="{quat(axes)}" '
            f'mass="{get("mass")}" diaginertia="{written(get("diagonalInertia"))}"/>'
        )
        place = np.eye(4)
        if not joint.IsA(UsdPhysics.FixedJoint):

            def at(key):
                return joint.GetAttribute(key).Get()

            frames = [
                placed(at(f'physics:localPos{k}'), at(f'physics:localRot{k}')) for k in (0, 1)
            ]
            place = frames[0] @ np.linalg.inv(frames[1])
            slides = joint.IsA(UsdPhysics.PrismaticJoint)
            axis = f'physxJointAxis:{"linear" if slides else "angular"}'
            unit = 1.0 if slides else 1.0 / DEGREE
            inside += (
                f'<joint name="{names[joint.GetName()]}" type="{"slide" if slides else "hinge"}" '
                f'axis="{written(frames[1][:3, 0])}" armature="{at(axis + ":armature")}" '
                f'damping="{at(axis + ":viscousFrictionCoefficient") * unit}" '
                f'frictionloss="{at(axis + ":dynamicFrictionEffort")}"/>'
            )
        inside += ''.join(
            text(child)
            for child, other in joints.items()
            if [path.name for path in other.GetRelationship('physics:body0').GetTargets()]
            == [name]
        )
        frame = f'pos="{written(place[:3, 3])}" quat="{quat(place)}"'
        return f'<body name="{name}" {frame}>{inside}</body>'

    (root,) = (name for name, joint in joints.items() if joint.IsA(UsdPhysics.FixedJoint))
    return f'<mujoco><worldbody>{text(root)}</worldbody></mujoco>'


def quat(place):
    found = np.zeros(4)
    mujoco.mju_mat2Quat(found, place[:3, :3].ravel())
    return written(found)


def check_efforts(model, stage):
    """Compare inverse dynamics without dry friction; USD has single precision."""
    robot = model.robot
    names = {name.replace('-', '_').replace('.', '_'): name for name in robot.joints}
    names |= {follower.name: follower.name for follower in robot.followers}
    simulated = Simulated(as_mjcf(stage, names), robot)
    simulated.model.dof_frictionloss[:] = 0.0
    simulated.model.opt.gravity[:] = robot.gravity
    chi = without(robot, model.chi, 'Ia', 'Fv')
    states = np.random.default_rng(1).uniform(-1.0, 1.0, (5, 3, 1, robot.n))
    for q, dq, ddq in states:
        tau = inverse_dynamics(robot, chi, q, dq, ddq)[0]
        found = simulated.efforts(q[0], dq[0], ddq[0])
        np.testing.assert_allclose(found, tau, rtol=0.0, atol=1e-5 * np.abs(tau).max())


def configuration(files):
    """Return what the configuration asks for."""
    ((name, text),) = ((name, text) for name, text in files.items() if name.endswith('_cfg.py'))
    return run(text, f'/somewhere/{name}')['ROBOT_CFG']


@pytest.mark.parametrize('name', ['scara', 'tx40', 'ur10', 'emps'])
def test_usd_holds_the_model(tmp_path, name):
    model = of_configuration(
        tmp_path, name, friction={'default': ['viscous', 'coulomb']}, couplings={}
    )
    files, _ = isaaclab(model)
    stage = opened(tmp_path, files)
    assert mistakes(stage) == []
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdPhysics.GetStageKilogramsPerUnit(stage) == 1.0
    check_efforts(model, stage)
    robot, found = model.robot, configuration(files)
    (group,) = found.actuators.values()
    assert group.joint_names_expr == list(robot.joints)
    assert found.spawn.usd_path == f'/somewhere/{name}.usda'
    for k, joint in enumerate(robot.joints):
        prim = stage.GetPrimAtPath(f'/{name}/joints/{joint}')
        kind, unit = ('linear', 1.0) if robot.prismatic[k] else ('angular', DEGREE)

        def get(key, prim=prim):
            return prim.GetAttribute(key).Get()

        axis, plain = f'physxJointAxis:{kind}', model.for_simulation.plain_friction[joint]
        assert get(f'{axis}:armature') == pytest.approx(group.armature[joint], rel=1e-6)
        assert get(f'{axis}:dynamicFrictionEffort') == pytest.approx(plain.coulomb, rel=1e-6)
        assert group.friction[joint] == group.dynamic_friction[joint] == plain.coulomb
        viscous = get(f'{axis}:viscousFrictionCoefficient')
        assert viscous == pytest.approx(plain.viscous * unit, rel=1e-6)
        assert group.viscous_friction[joint] == plain.viscous
        assert get('physics:upperLimit') == pytest.approx(robot.limits.upper[k] / unit, rel=1e-6)
        assert get(f'drive:{kind}:physics:maxForce') == robot.limits.effort[k]
        speed = robot.limits.velocity[k]
        assert get(f'{axis}:maxJointVelocity') == pytest.approx(speed / unit, rel=1e-6)
        assert group.velocity_limit_sim[joint] == speed


def test_names_and_what_usd_lacks(tmp_path):
    model = of_description(tmp_path, HAND)
    files, notes = isaaclab(model)
    assert sorted(files) == ['_2_hand.usda', '_2_hand_cfg.py']
    stage = opened(tmp_path, files)
    assert mistakes(stage) == []
    bodies = [p.GetName() for p in stage.Traverse() if p.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert sorted(bodies) == ['arm_1', 'arm_1_', 'base', 'jaw']
    assert stage.GetPrimAtPath('/_2_hand/arm_1_/tool')
    check_efforts(model, stage)
    (group,) = configuration(files).actuators.values()
    assert group.joint_names_expr == ['turn_1', 'slide']
    assert configuration(files).init_state.joint_pos == {'turn_1': 0.2, 'slide': 0.2}
    text = '\n'.join(notes)
    for part in ('close', 'convert_urdf.py', 'got underscores', 'arm/1'):
        assert part in text
    assert all(note in stage.GetRootLayer().documentation for note in notes)
