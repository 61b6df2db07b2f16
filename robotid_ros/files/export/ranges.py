"""
Ranges of the parameters of a simulator, for domain randomisation; servos and draws of them.

What a recording leaves open is not independent: a heavier link has its centre of mass elsewhere.
Draws are therefore whole robots, see `core.parameters.posterior`; a range is that of all draws.
"""

from collections.abc import Iterator, Mapping
import dataclasses
from io import BytesIO
from typing import Any

import numpy as np

from ...core.model.base_parameters import base_parameters
from ...core.model.robot import ElasticRobot, Robot
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...core.parameters.posterior import draw
from ...exceptions import ConfigurationError
from ...plant.urdf_reading import principal_inertia
from ..results import base_covariance, Results
from ..yaml import dump_yaml
from .bodies import Array, quaternion, read_parts
from .identified_model import IdentifiedModel, Servo, ServoEstimate
from .identified_urdf import identified_urdf

DRAWS = 500
# Quantiles between which a range is.
QUANTILES = (0.05, 0.95)
# Parameters of bodies; all others are of joints.
BODIES = ('mass', 'center', 'moments')
# Of servos, by the names of their fields.
GAINS = {'kp': 'stiffness', 'kv': 'damping', 'bias': 'bias'}
# Of bodies and of joints; of the joints, those that are rotary and those that are not.
UNITS = {
    'mass': ('kg', 'kg'),
    'center': ('m', 'm'),
    'moments': ('kg·m²', 'kg·m²'),
    'armature': ('kg·m²', 'kg'),
    'damping': ('N·m·s/rad', 'N·s/m'),
    'frictionloss': ('N·m', 'N'),
    'kp': ('N·m/rad', 'N/m'),
    'kv': ('N·m·s/rad', 'N·s/m'),
    'bias': ('rad', 'm'),
}


def ranges(model: IdentifiedModel) -> tuple[dict[str, bytes], list[str]]:
    """
    Write `ranges.yaml`, `draws.npz` and sentences on them.

    Arrays of the draws, (N, bodies) or (N, joints) and as MuJoCo's model has them: `mass`,
    `center` (…, 3) in the body's frame, `moments` (…, 3) about it, `axes` (…, 4) of these as
    quaternions w x y z; `armature`, `damping`, `frictionloss`; of servos `kp`, `kv`, `bias` and
    `delay` (N,). `bodies` and `joints` are names. What does not vary has no range.

    Raises
    ------
    ConfigurationError : the results do not hold the covariance, or joints are elastic
    SolverError : there are no physically consistent parameters to start from

    """
    robots = [_values(each) for each in possible(model.for_simulation, DRAWS)]
    names, shown = robots[0].pop('names'), robots[0]
    draws = {key: np.array([each[key] for each in robots[1:]]) for key in shown}
    kinds = model.robot.prismatic
    linear = {name for name, slides in zip(model.robot.joints, kinds, strict=True) if slides}

    def rows(group: str, k: int, name: str) -> dict[str, Any]:
        return {
            key: _range_of(UNITS[key][name in linear], shown[key][k], draws[key][:, k])
            for key in UNITS
            if key in shown and (key in BODIES) == (group == 'bodies')
            if np.ptp(draws[key][:, k], axis=0).any() or not np.any(shown[key][k])
        }

    table = {
        group: {name: found for k, name in enumerate(own) if (found := rows(group, k, name))}
        for group, own in names.items()
    }
    if not table['bodies']:
        draws = {key: values for key, values in draws.items() if key not in (*BODIES, 'axes')}
        del table['bodies'], names['bodies']
    if 'delay' in shown:
        table['delay'] = _range_of('s', shown['delay'], draws['delay'])
    notes = ['a range is of one parameter alone; draws.npz has whole robots']
    if 'obstacle' in model.results.data:
        notes.append('no possible robot explains the recording: all draws predict it worse')
    if model.estimate is not None:
        unknown = [name for name in model.estimate.names if name not in model.estimate.determined]
        if unknown:
            text = ', '.join(' '.join(name).strip() for name in unknown)
            notes.append(f'the log does not determine {text}: these do not vary')
        if limited := [j for j, servo in model.servos.items() if np.isfinite(servo.limit)]:
            notes.append(f'the torque limits of {", ".join(limited)} are not in the draws')
    content = {'robot': model.robot.name, 'draws': DRAWS, 'quantiles': [*QUANTILES]}
    content |= {'notes': notes, **table}
    lists = {group: np.array(own, dtype=str) for group, own in names.items()}
    stream = BytesIO()
    np.savez_compressed(stream, **lists, **draws)  # type: ignore[arg-type]
    return {'ranges.yaml': dump_yaml(content).encode(), 'draws.npz': stream.getvalue()}, notes


def possible(model: IdentifiedModel, count: int) -> Iterator[IdentifiedModel]:
    """
    Yield what was identified, and `count` models that the recording leaves possible.

    Raises
    ------
    ConfigurationError : the results do not hold the covariance, or joints are elastic
    SolverError : there are no physically consistent parameters to start from

    """
    if model.estimate is not None:
        yield from possible_servos(model, count)
        return
    yield model
    if not count:
        return
    robot, results = model.robot, model.results
    if isinstance(robot, ElasticRobot):
        raise ConfigurationError('ranges are of rigid joints: export mjcf, urdf or a table')
    base = base_parameters(robot)
    value, covariance = np.array([e.value for e in results.base]), base_covariance(results)
    same = tuple(entry.name for entry in results.base) == base.names
    if not same or 'prior_spread' not in results.data:
        raise ConfigurationError('the results are of another version: identify again')
    spread = float(results.data['prior_spread'])
    known = dataclasses.replace(robot, prior=_prior(model))
    plain = model.for_simulation.plain_friction
    middle = plain_friction(robot, model.chi)
    for chi in draw(known, base, value, covariance, spread, count):
        # The recorded speeds are not known here: by how much it differs at all of them.
        friction = {
            name: PlainFriction(
                max(plain[name].viscous + each.viscous - middle[name].viscous, 0.0),
                max(plain[name].coulomb + each.coulomb - middle[name].coulomb, 0.0),
                plain[name].offset + each.offset - middle[name].offset,
            )
            for name, each in plain_friction(robot, chi).items()
        }
        yield _with_parameters(model, chi, friction)


def as_described(model: IdentifiedModel) -> IdentifiedModel | None:
    """Return the robot before its identification; None where its description has no bodies."""
    chi = _prior(model)
    if not chi[model.robot.first_columns + 9].any():
        return None
    return _with_parameters(model, chi, plain_friction(model.robot, chi))


def _prior(model: IdentifiedModel) -> Array:
    """Return the standard parameters of the description, (p,); 0 where it has none."""
    prior = {entry.name: entry.prior or 0.0 for entry in model.results.standard}
    return np.array([prior[parameter.name] for parameter in model.robot.parameters])


def _with_parameters(
    model: IdentifiedModel, chi: Array, friction: dict[str, PlainFriction]
) -> IdentifiedModel:
    """Return a model with other parameters (p,), and its description with them."""
    text = identified_urdf(model.robot, chi, friction)
    results = dataclasses.replace(model.results, plain_friction=friction)
    return IdentifiedModel(results, dataclasses.replace(model.robot, urdf=text), chi)


def _values(model: IdentifiedModel) -> dict[str, Any]:
    """Return the values of each array of a draw."""
    parts = read_parts(model)
    bodies, joints = parts.bodies[1:], [joint.name for joint in parts.joints]
    if model.servos:
        joints = [name for name in joints if name in model.servos]
    found = [principal_inertia(body.inertial) for body in bodies]
    driven = [parts.drives[name] for name in joints]
    gains = {
        key: np.array([getattr(model.servos[name], field) for name in joints])
        for key, field in GAINS.items()
        if model.servos
    }
    if model.servos:
        gains['delay'] = np.array(model.servos[joints[0]].delay)
    else:
        gains['damping'] = np.array([drive.damping for drive in driven])
    return {
        'names': {'bodies': [body.name for body in bodies], 'joints': joints},
        'mass': np.array([mass for mass, *_ in found]),
        'center': np.array([center for _, center, *_ in found]),
        'moments': np.array([moments for _, _, moments, _ in found]),
        'axes': np.array([np.roll(quaternion(axes), 1) for *_, axes in found]),
        'armature': np.array([drive.inertia for drive in driven]),
        **gains,
        'frictionloss': np.array([drive.friction for drive in driven]),
    }


def _range_of(unit: str, identified: Array, drawn: Array) -> dict[str, Any]:
    """Return what is known of a parameter, of which there are draws (N, …)."""
    low, high = np.quantile(drawn, QUANTILES, axis=0)
    columns = {'identified': identified, 'mean': drawn.mean(axis=0), 'sigma': drawn.std(axis=0)}
    columns |= {'low': low, 'high': high}
    return {'unit': unit, **{name: each.tolist() for name, each in columns.items()}}


# Standard parameters that stand for those of a servo.
STANDARD = {'armature': 'Ia', 'Fc': 'Fc', 'Fst': 'Fst', 'Fl': 'Fl'}
# Least stiffness, limit and scale of bodies in a draw, over the identified one.
LEAST = {'stiffness': 0.05, 'limit': 0.05, 'bodies': 0.05}


def servo_model(
    robot: Robot, known: Mapping[tuple[str, str], float], estimate: ServoEstimate | None = None
) -> IdentifiedModel:
    """Return a robot with servos, rotors, friction and bodies of known symbols and joints."""
    of_all = known.get(('bodies', ''), 1.0)
    scales = np.array([known.get(('bodies', joint), of_all) for joint in robot.joints])
    chi = np.zeros(robot.p)
    chi[robot.body_columns] = robot.prior[robot.body_columns] * scales[:, None]
    columns = {(p.joint, p.symbol): k for k, p in enumerate(robot.parameters)}
    for (symbol, joint), value in known.items():
        column = columns.get((joint, STANDARD.get(symbol, '')))
        if column is not None:
            chi[column] = value
    servos = {
        joint: Servo(
            known['stiffness', joint],
            known['damping', joint],
            known.get(('bias', joint), 0.0),
            known.get(('limit', joint), np.inf),
            known.get(('delay', ''), 0.0),
        )
        for joint in robot.joints
        if {('stiffness', joint), ('damping', joint)} <= known.keys()
    }
    friction = plain_friction(robot, chi)
    if any(symbol == 'bodies' for symbol, _ in known):
        robot = dataclasses.replace(robot, urdf=identified_urdf(robot, chi, friction))
    results = Results(
        robot.name, 'commands', '', robot.joints, (), (), (), plain_friction=friction
    )  # fmt: skip
    notes = tuple(_notes(robot, known, servos))
    return IdentifiedModel(results, robot, chi, servos, notes, estimate)


def _notes(
    robot: Robot, known: Mapping[tuple[str, str], float], servos: Mapping[str, Servo]
) -> Iterator[str]:
    yield 'identified from commands and positions: torques are in proportion to the bodies'
    if ('delay', '') in known:
        yield (
            f'commands act {known["delay", ""]:.4g} s late, which is not in this file: hold them '
            'back'
        )
    if open_joints := [joint for joint in robot.joints if joint not in servos]:
        names = ', '.join(open_joints)
        yield f'stiffness or damping of {names} is not determined: these are motors'
    if any(symbol in ('Fst', 'Fl') and value for (symbol, _), value in known.items()):
        yield 'plain friction stands for stribeck and load_coulomb, see parameters.yaml'


def possible_servos(
    model: IdentifiedModel, count: int, seed: int = 0
) -> Iterator[IdentifiedModel]:
    """
    Yield the identified servos, and draws of them: normal by the covariance, none below zero.

    What is not determined keeps its fitted value in all: its ratios may be known well.
    """
    found, rng = model.estimate, np.random.default_rng(seed)
    assert found is not None
    kept = np.array([name in found.determined for name in found.names], dtype=bool)
    covariance = found.covariance * np.outer(kept, kept)
    changes = rng.multivariate_normal(0.0 * found.value, covariance, count, method='eigh')
    floor = [
        -np.inf if symbol == 'bias' else LEAST.get(symbol, 0.0) * value
        for (symbol, _), value in zip(found.names, found.value, strict=True)
    ]
    for change in (0.0 * found.value, *changes):
        values = np.maximum(found.value + change, floor).tolist()
        yield servo_model(model.robot, dict(zip(found.names, values, strict=True)))
