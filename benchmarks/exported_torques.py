"""
Torques of exported files beside those of the identified model, friction included.

    python benchmarks/exported_torques.py [--robots NAME …] [--check]

`export.py` asks for it too. Each robot of `config/` runs its motion in simulation, without a
clock, with the friction that is shipped and with a Stribeck effect beside it, and is identified:
with the friction terms of its configuration, with those that cross-validation chooses, and with
`root_viscous` and `stribeck`. What `robotid export` makes of the results is read again: MJCF by
MuJoCo, whose inverse dynamics have all constraints and have to agree with its forward dynamics;
URDF by Pinocchio, with its <dynamics>; SDFormat by its values. What a file says that it leaves
out is added: offset, springs, rotors, motors that turn several joints.

The figure of a joint is the RMS of the difference over that of the identified torque, on the
samples of the validation motion where the joint moves. At most 2 % where viscous and Coulomb
friction with an offset are the identified friction, else the residual of the refit that the file
states, over the same torque, plus 0.5 %.
"""

import argparse
from collections.abc import Callable, Sequence
import dataclasses
from itertools import product
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree

from common import command_line, configured, ROOT, verdict
import mujoco
import numpy as np
import pinocchio

sys.path.insert(0, str(ROOT / 'test' / 'tools'))
from elastic_case import Case
from sdf_model import model_of

from robotid_ros.core.excitation.design import design
from robotid_ros.core.model import build_robot, Robot
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.robot import ElasticRobot
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.collect_results import save
from robotid_ros.files.configuration import Configuration
from robotid_ros.files.export.identified_model import (
    friction_terms,
    IdentifiedModel,
    read_identified_model,
    urdf,
)
from robotid_ros.files.export.simulators import mjcf, sdf
from robotid_ros.files.identification_input import split
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.simulated_session import simulate
from robotid_ros.simulation_settings import StribeckSettings

PLAIN, BESIDE = 0.02, 0.005
NAMES = tuple(sorted(path.stem for path in (ROOT / 'config').glob('*.yaml')))
# Friction terms that are identified; None: those of the configuration, CHOSEN: those that
# cross-validation chooses.
Terms = tuple[str, ...] | None
CHOSEN: Terms = ()
LAWS: dict[str, Terms] = {
    'configured': None,
    'chosen': CHOSEN,
    'root_viscous': ('viscous', 'coulomb', 'root_viscous', 'offset'),
    'stribeck': ('viscous', 'coulomb', 'stribeck', 'offset'),
}
# The Stribeck effect that is simulated, beside the Coulomb friction, and its velocity [rad/s].
STRIBECK, STRIBECK_VELOCITY = 0.5, 0.1
# Of the search for a motion of a robot that none is shipped of [s].
DESIGN_TIME = 20.0
# Torques that forward dynamics are asked to turn into the accelerations again, and how nearly.
FORWARD_EVERY, FORWARD = 25, 1e-6


class States(NamedTuple):
    """A motion (N, n) of the joints, and the samples that count."""

    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    moving: np.ndarray


Torques = Callable[[States], np.ndarray]


def in_mujoco(model: IdentifiedModel) -> Torques:
    """Return what the actuators of the MJCF have to give, every constraint on."""
    physics = mujoco.MjModel.from_xml_string(mjcf(model)[0])
    physics.opt.tolerance = 0.0
    data, names = mujoco.MjData(physics), links_of(model.robot)
    rows = [physics.joint(name).dofadr[0] for name in names]
    actuators = [physics.actuator(name).id for name in names]
    bias = np.zeros(physics.nv)
    bias[rows] = physics.actuator_biasprm[actuators, 0]

    def torques(states: States) -> np.ndarray:
        found = []
        for k, (q, dq, ddq) in enumerate(zip(*states[:3], strict=True)):
            data.qpos[rows], data.qvel[rows], data.qacc[rows] = q, dq, ddq
            mujoco.mj_inverse(physics, data)
            found.append(data.qfrc_inverse[rows] - bias[rows])
            if k % FORWARD_EVERY == 0:
                check_forward(ddq, found[-1])
        return np.array(found)

    def check_forward(ddq: np.ndarray, torque: np.ndarray) -> None:
        data.ctrl[actuators] = torque
        physics.actuator_ctrllimited[:] = 0
        mujoco.mj_forward(physics, data)
        error = np.abs(data.qacc[rows] - ddq).max() / max(np.abs(ddq).max(), 1.0)
        assert error < FORWARD, f'{model.robot.name}: forward dynamics differ by {error:.1e}'

    return torques


def in_pinocchio(model: IdentifiedModel) -> Torques:
    """Return RNEA of the URDF with its <dynamics>, and what it says that it leaves out."""
    text = urdf(model)[0]
    joints = {j.get('name'): j for j in ElementTree.fromstring(text).findall('joint')}
    values = {
        name: [
            float(joints[name].find('dynamics').get(key, 0.0))
            for key in ('damping', 'friction', 'armature')
        ]
        for name in links_of(model.robot)
    }
    return of_bodies(model, pinocchio.buildModelFromXML(text), values)


def in_sdf(model: IdentifiedModel) -> Torques:
    """Return RNEA of the SDFormat with its <dynamics>, and what it says that it leaves out."""
    bodies, element = model_of(sdf(model)[0])
    joints = {j.get('name'): j.find('axis/dynamics') for j in element.findall('joint')}
    rotors = dict(zip((p.name for p in model.robot.parameters), model.chi, strict=True))
    values = {
        name: [
            float(joints[name].findtext('damping')),
            float(joints[name].findtext('friction')),
            float(rotors.get(f'Ia{number}', 0.0)),  # that it has none is said
        ]
        for number, name in enumerate(links_of(model.robot), start=1)
    }
    return of_bodies(model, bodies, values)


def of_bodies(
    model: IdentifiedModel, bodies: pinocchio.Model, values: dict[str, list[float]]
) -> Torques:
    """
    Return the torques of bodies and drives, and what the file says that it leaves out.

    Parameters
    ----------
    model : for what is left out: offsets, springs, motors that turn several joints
    bodies : of the file
    values : damping, dry friction and rotor inertia of each joint

    """
    robot, names = model.robot, links_of(model.robot)
    bodies.gravity.linear = robot.gravity
    order = [names.index(name) for name in list(bodies.names)[1:]]
    data = bodies.createData()
    chi = {p.name: v for p, v in zip(robot.parameters, model.chi, strict=True)}
    damping, dry, rotor = np.array([values[name] for name in names]).T
    offset = np.array([model.plain_friction[name].offset for name in names])
    spring = np.array([chi.get(f'Kq{k}', 0.0) for k in range(1, len(names) + 1)])

    def torques(states: States) -> np.ndarray:
        q, dq, ddq, _ = states
        found = np.zeros_like(q)
        for k, state in enumerate(zip(q, dq, ddq, strict=True)):
            found[k, order] = pinocchio.rnea(bodies, data, *(x[order] for x in state))
        found += damping * dq + dry * np.sign(dq) + rotor * ddq + offset + spring * q
        for coupling in robot.couplings:
            speed = dq @ coupling.ratios
            torque = chi[f'Ia{coupling.number}'] * (ddq @ coupling.ratios)
            torque += chi[f'Fv{coupling.number}'] * speed
            torque += chi[f'Fc{coupling.number}'] * np.sign(speed)
            found += np.outer(torque, coupling.ratios)
        return found

    return torques


def identified(model: IdentifiedModel, states: States) -> np.ndarray:
    """Return the torques (N, n) of the identified model; springs do not yield."""
    robot, q = model.robot, states.q
    if not isinstance(robot, ElasticRobot):
        return inverse_dynamics(robot, model.chi, *states[:3], successive=True)
    full = [np.hstack([x, x[:, robot.elastic_joints]]) for x in states[:3]]
    tau = inverse_dynamics(robot, model.chi, *full, successive=True)
    return tau[:, robot.motors].reshape(q.shape)


def links_of(robot: Robot) -> tuple[str, ...]:
    """Return the names of the joints, without the motors of elastic ones."""
    return robot.rigid.joints


FORMATS = {'mjcf': in_mujoco, 'urdf': in_pinocchio, 'sdf': in_sdf}


def relative(values: np.ndarray, tau: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """Return the RMS of values over that of torques of each joint, where it moves."""
    squares = [np.where(moving, x, 0.0) ** 2 for x in (values, tau)]
    top, bottom = (np.sqrt(x.sum(axis=0)) for x in squares)
    return np.asarray(top / np.maximum(bottom, 1e-300))


class Session(NamedTuple):
    """What a simulated robot recorded, to identify it by and to validate on."""

    configuration: Configuration
    robot: Robot
    fitted: Recording
    validation: Recording
    states: States

    def identify(self, terms: Terms, folder: Path) -> IdentifiedModel:
        """Identify with friction terms, write the results, and read what `export` reads."""
        given = {} if terms is None else {'friction': {'default': terms} if terms else {}}
        settings = dataclasses.replace(self.configuration.robot, **given)
        robot = build_robot(self.robot.urdf, settings)
        found = identify(self.fitted, robot, self.configuration.identification, self.validation)
        save(found, self.fitted, folder)
        return read_identified_model(folder)


def simulated(name: str, stribeck: bool) -> Session:
    """Let a robot of `config/` run its motion, with a Stribeck effect or as it is shipped."""
    configuration, robot = configured(name)
    path = ROOT / 'config' / 'trajectories' / f'{name}.yaml'
    limited = dataclasses.replace(configuration.excitation, time_limit=DESIGN_TIME)
    motion = read_design(path) if path.is_file() else design(robot, limited)
    coulomb = configuration.simulation.coulomb or tuple(robot.dry_friction.tolist())
    bump = {
        'extra': tuple(STRIBECK * value for value in coulomb),
        'velocity': (STRIBECK_VELOCITY,) * len(coulomb),
    }
    if robot.elastic is not None:
        changes = {'stribeck': StribeckSettings(**bump)} if stribeck else {}
        cases = (Case(name, which, **changes) for which in ('trajectory', 'validation'))
        fitted, validation = (case.noisy(None, 1, seed) for seed, case in enumerate(cases))
    else:
        changes = {'stribeck': {k: [*v] for k, v in bump.items()}} if stribeck else {}
        fitted, validation = split(simulate(ROOT / 'config' / f'{name}.yaml', motion, **changes))
    model = robot.elastic or robot
    samples = prepare(validation, model, configuration.identification.signals)
    # Of elastic joints the motors move the exported robot.
    columns = range(robot.n) if robot.elastic is None else robot.elastic.motors
    states = States(*(x[:, columns] for x in (samples.q, samples.dq, samples.ddq, samples.moving)))
    return Session(configuration, robot, fitted, validation, states)


def measure(model: IdentifiedModel, states: States) -> dict[str, np.ndarray]:
    """Return how far each format is, and at most may be, relative to each joint's torque."""
    tau = identified(model, states)
    found = {
        name: relative(read(model)(states) - tau, tau, states.moving)
        for name, read in FORMATS.items()
    }
    plain = [model.plain_friction[name] for name in links_of(model.robot)]
    stated = relative(np.array([[each.rms for each in plain]]) + 0.0 * tau, tau, states.moving)
    exact = np.array([each.exact for each in plain])
    return {**found, 'bound': np.where(exact, PLAIN, stated + BESIDE)}


def describe(model: IdentifiedModel, found: dict[str, np.ndarray]) -> tuple[str, list[str]]:
    """Return the figures of the joint that is nearest to its bound, and what exceeds one."""
    robot, joints, bound = model.robot, links_of(model.robot), found['bound']
    j = int(np.argmax(np.max([found[name] for name in FORMATS], axis=0) / bound))
    figures = ' '.join(f'{100 * values[j]:7.3f}' for values in found.values())
    refit = 100 * model.plain_friction[joints[j]].relative
    terms = ' '.join(friction_terms(robot, j))
    excess = [
        f'{joint}, {name}: {100 * share:.2f} %, at most {100 * most:.2f} %'
        for name in FORMATS
        for joint, share, most in zip(joints, found[name], bound, strict=True)
        if share > most
    ]
    return f'{refit:7.2f} {figures}  {joints[j]}: {terms}', excess


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument('--robots', nargs='+', choices=NAMES, default=NAMES)
    parser.add_argument('--laws', nargs='+', choices=tuple(LAWS), default=tuple(LAWS))
    return parser.parse_args()


def compare(robots: Sequence[str] = NAMES, laws: Sequence[str] = tuple(LAWS)) -> list[str]:
    """Print a row for each robot, simulated friction and law; return what misses its bound."""
    missed = []
    print('RMS difference over the torque of the joint that is nearest to its bound [%]; refit:')
    print('residual that is stated, over the friction\n')
    head = ' '.join(f'{name:>7s}' for name in (*FORMATS, 'bound'))
    print(f'{"robot":16s} {"simulated":10s} {"identified":13s} {"refit":>7s} {head}  terms')
    for robot, stribeck in product(robots, (False, True)):
        session = simulated(robot, stribeck)
        truth = 'stribeck' if stribeck else 'shipped'
        for law in laws:
            with TemporaryDirectory() as folder:
                try:
                    model = session.identify(LAWS[law], Path(folder))
                except RobotIdError as error:
                    print(f'{robot:16s} {truth:10s} {law:13s} not identified: {error}')
                    continue
            found = measure(model, session.states)
            row, excess = describe(model, found)
            print(f'{robot:16s} {truth:10s} {law:13s} {row}', flush=True)
            missed += [f'{robot}, {truth}, {law}, {text}' for text in excess]
    return missed


if __name__ == '__main__':
    args = options()
    sys.exit(verdict(compare(args.robots, args.laws), args.check))
