"""
Do exported models move as the identified ones? On the arms of example-robot-data.

    python benchmarks/export.py [FOLDER] [--arms NAME …] [--meshes] [--robots NAME …] [--check]

FOLDER holds the robots of example-robot-data; default: those of that pip package, where it is
installed. Each arm gets simulated parameters, bodies that can exist and drives with a rotor; all
its joints are identified, and then the first half of them with the others locked. Asked of what is
written, with friction off, at random states: the largest difference of its inverse dynamics from
the package's, relative to the largest effort of the state.

mujoco : MJCF in MuJoCo (with the meshes that are found, with --meshes)
mjcf : the same file in Pinocchio
urdf : URDF in Pinocchio, with the rotors of MJCF
sdf : SDFormat in Drake, which reads it by sdformat, without rotors; where `pydrake` is installed

Where a link that was not identified has an inertia that no body has, MuJoCo would not load it: the
nearest one is written, which is said, and no bound asked for.

Then with friction: torques of exported files beside those of the identified model, on the robots
of `config/` (some 20 minutes), see `exported_torques.py`.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from common import command_line, verdict
from exported_torques import compare, NAMES
from installed_robots import ARMS, PACKAGE, robots_folder
import mujoco
import numpy as np
import pinocchio
from urdf_export import simulated, without_geometry

from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.model.urdf_parsing import parse_urdf, snap_angles
from robotid_ros.files.configuration import mesh_folders
from robotid_ros.files.export.identified_model import identified_urdf, IdentifiedModel, urdf
from robotid_ros.files.export.simulators import mjcf, sdf
from robotid_ros.files.results import Results

SAME, STATES, LEAST = 1e-6, 20, 10
NEAR = 0.1  # how far the drawn bodies are from the description's, see `urdf_export`
Efforts = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def drawn_model(text: str, settings: RobotSettings) -> IdentifiedModel:
    """Return a robot as an identification leaves it, friction left out."""
    robot = build_robot(text, settings)
    chi = simulated(robot, NEAR, np.random.default_rng(0))
    kept = [p.symbol in (*INERTIAL, 'Ia') for p in robot.parameters]
    chi = np.where(kept, chi, 0.0)
    again = build_robot(identified_urdf(robot, chi), settings)
    results = Results(robot.name, 'wls', '', robot.joints, (), (), ())
    return IdentifiedModel(results, again, chi)


def efforts_in_mujoco(text: str, robot: Robot) -> Efforts:
    """Return the inverse dynamics of an MJCF."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in names_of(robot)]
    for name, position in robot.locked.items():
        data.qpos[model.joint(name).qposadr[0]] = position
    positions = [joint.qposadr[0] for joint in joints]
    rows = [joint.dofadr[0] for joint in joints]

    def efforts(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        data.qpos[positions], data.qvel[rows], data.qacc[rows] = q, dq, ddq
        mujoco.mj_inverse(model, data)
        return np.array(data.qfrc_inverse[rows])

    return efforts


def efforts_in_pinocchio(model: pinocchio.Model, robot: Robot) -> Efforts:
    """Return the inverse dynamics of a model of Pinocchio; locked joints stay where they are."""
    data = model.createData()
    unbounded = pinocchio.neutral(model)
    for name, position in robot.locked.items():
        place(model, unbounded, name, position)
    rows = [model.joints[model.getJointId(name)].idx_v for name in names_of(robot)]

    def efforts(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        full, (v, a) = unbounded.copy(), np.zeros((2, model.nv))
        for name, position in zip(names_of(robot), q, strict=True):
            place(model, full, name, position)
        v[rows], a[rows] = dq, ddq
        return np.array(pinocchio.rnea(model, data, full, v, a)[rows])

    return efforts


def efforts_in_drake(text: str, robot: Robot) -> Efforts | None:
    """Return the inverse dynamics of an SDFormat file, None without Drake."""
    try:
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant
        from pydrake.multibody.tree import MultibodyForces
    except ImportError:
        return None
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text, 'sdf')
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    positions = np.zeros(plant.num_positions())
    for name, position in robot.locked.items():
        positions[plant.GetJointByName(name).position_start()] = position
    joints = [plant.GetJointByName(name) for name in names_of(robot)]
    columns = [joint.position_start() for joint in joints]
    rows = [joint.velocity_start() for joint in joints]

    def efforts(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        (velocity, acceleration), forces = np.zeros((2, len(positions))), MultibodyForces(plant)
        positions[columns], velocity[rows], acceleration[rows] = q, dq, ddq
        plant.SetPositions(context, positions)
        plant.SetVelocities(context, velocity)
        plant.CalcForceElementsContribution(context, forces)
        return np.array(plant.CalcInverseDynamics(context, acceleration, forces)[rows])

    return efforts


def place(model: pinocchio.Model, q: np.ndarray, name: str, position: float) -> None:
    """Set the position of a joint; unbounded ones have cosine and sine."""
    joint = model.joints[model.getJointId(name)]
    values = [position] if joint.nq == 1 else [np.cos(position), np.sin(position)]
    q[joint.idx_q : joint.idx_q + joint.nq] = values


def names_of(robot: Robot) -> tuple[str, ...]:
    """Return the joints and those that mimic them."""
    return (*robot.joints, *(follower.name for follower in robot.followers))


def difference(model: IdentifiedModel, efforts: Efforts) -> float:
    """Return the largest difference from the package's model, relative."""
    robot, worst = model.robot, 0.0
    jacobian, rng = robot.mimic_jacobian, np.random.default_rng(1)
    for q, dq, ddq in rng.uniform(-1.0, 1.0, (STATES, 3, robot.n)):
        expected = inverse_dynamics(robot, model.chi, q[None], dq[None], ddq[None])[0]
        found = jacobian.T @ efforts(robot.link_positions(q), jacobian @ dq, jacobian @ ddq)
        worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
    return worst


def differences(model: IdentifiedModel, folders: Sequence[str]) -> tuple[tuple[float, ...], bool]:
    """
    Write what is to be read, and read it.

    Returns
    -------
    How far each is from the model, and whether its bodies are those of the description.

    """
    robot = model.robot
    with TemporaryDirectory() as folder:
        text, notes = mjcf(model, folders)
        plain = Path(folder, 'robot.xml')
        plain.write_text(mjcf(model)[0])
        of_mjcf = pinocchio.buildModelFromMJCF(str(plain))
        # What is written rounded, 3.14, is exact in the package's model: not what is asked here.
        root = parse_urdf(without_geometry(urdf(model)[0]))
        snap_angles(root)
        of_urdf = pinocchio.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
        for name, joint in zip(of_mjcf.names, of_mjcf.joints, strict=True):
            if joint.nv == 1 and of_urdf.existJointName(name):
                own = of_urdf.joints[of_urdf.getJointId(name)]
                of_urdf.armature[own.idx_v] = of_mjcf.armature[joint.idx_v]
        for other in (of_mjcf, of_urdf):
            other.gravity.linear = robot.gravity
        readers = (
            efforts_in_mujoco(text, robot),
            efforts_in_pinocchio(of_mjcf, robot),
            efforts_in_pinocchio(of_urdf, robot),
        )
        bodies = np.where([p.symbol == 'Ia' for p in robot.parameters], 0.0, model.chi)
        plain_robot = replace(robot, urdf=without_geometry(robot.urdf))
        rigid = replace(model, robot=plain_robot, chi=bodies)
        in_drake = efforts_in_drake(sdf(rigid)[0], robot)
        found = [difference(model, efforts) for efforts in readers]
        if in_drake is not None:
            found.append(difference(rigid, in_drake))
        possible = not any('that no body has' in note for note in notes)
        return tuple(found), possible


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument('folder', nargs='?', type=Path, help='of the robots')
    parser.add_argument('--arms', nargs='+', choices=tuple(ARMS), default=tuple(ARMS))
    parser.add_argument('--robots', nargs='*', choices=NAMES, default=NAMES, help='with friction')
    parser.add_argument('--meshes', action='store_true', help='load them in MuJoCo, too')
    return parser.parse_args()


def main() -> int:
    """Print a row for each arm and count of identified joints, then those with friction."""
    args = options()
    return verdict([*check_bodies(args), *compare(args.robots)], args.check)


def check_bodies(args: argparse.Namespace) -> list[str]:
    """Compare bodies and drives without friction; return what misses its bound."""
    folder = robots_folder(args.folder)
    if folder is None:
        return [f'no robots: name their folder, or pip install {PACKAGE}']
    paths = {arm: folder / ARMS[arm] for arm in args.arms}
    print(f'{"arm":12s} joints   mujoco     mjcf     urdf      sdf')
    missed = []
    for arm in {path: arm for arm, path in paths.items()}.values():
        text, folders = paths[arm].read_text(), mesh_folders(paths[arm]) if args.meshes else ()
        joints = build_robot(text, RobotSettings()).joints
        for count in (len(joints), (len(joints) + 1) // 2):
            model = drawn_model(text, RobotSettings(joints=joints[:count]))
            found, possible = differences(model, folders)
            told = '' if possible else '  impossible inertia in the description'
            figures = ' '.join(f'{x:8.1e}' for x in found)
            print(f'{arm:12s} {count:6d} {figures}{told}', flush=True)
            if max(found) > SAME and possible:
                missed.append(f'{arm} with {count} joints: {max(found):.1e}, at most {SAME:g}')
    arms = len(set(paths.values()))
    if arms < LEAST:
        missed.append(f'{arms} arms: {LEAST} are asked for')
    return missed


if __name__ == '__main__':
    sys.exit(main())
