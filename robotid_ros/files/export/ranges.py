"""
Ranges of the parameters of a simulator, for domain randomisation; servos and draws of them.

What a recording leaves open is not independent: a heavier link has its centre of mass elsewhere.
Draws are therefore whole robots, see `core.parameters.posterior`; a range is that of all draws.
"""

from collections.abc import Iterator
import dataclasses
from io import BytesIO
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.model.base_parameters import base_parameters
from ...core.model.robot import ElasticRobot
from ...core.parameters.plain_friction import plain_friction, PlainFriction
from ...core.parameters.posterior import draw
from ...exceptions import ConfigurationError
from ...plant.urdf_reading import principal_inertia
from ..results import base_covariance
from ..yaml import dump_yaml
from .identified_model import identified_urdf, IdentifiedModel
from .servos import possible_servos
from .simulators import quaternion, read_parts

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
    ConfigurationError, SolverError: as of `possible`.
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
    notes = ['each range is of one parameter alone; draws.npz has complete sets']
    if 'obstacle' in model.results.data:
        notes.append('no possible robot explains the recording: all draws predict it worse')
    if servos := model.estimate:
        if unknown := [' '.join(n).strip() for n in servos.names if n not in servos.determined]:
            notes.append(f'the log does not determine {", ".join(unknown)}: these do not vary')
        if limited := [j for j, servo in model.servos.items() if np.isfinite(servo.limit)]:
            notes.append(f'the torque limits of {", ".join(limited)} are not in the draws')
    content = {'robot': model.robot.name, 'draws': DRAWS, 'quantiles': [*QUANTILES]}
    lists = {group: np.array(own, dtype=str) for group, own in names.items()}
    stream = BytesIO()
    np.savez_compressed(stream, **lists, **draws)  # type: ignore[arg-type]
    text = dump_yaml({**content, 'notes': notes, **table})
    return {'ranges.yaml': text.encode(), 'draws.npz': stream.getvalue()}, notes


def possible(model: IdentifiedModel, count: int) -> Iterator[IdentifiedModel]:
    """Yield what was identified, and `count` models that the recording leaves possible."""
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
    parts, servos = read_parts(model), model.servos
    bodies, joints = parts.bodies[1:], [joint.name for joint in parts.joints]
    gains: dict[str, Any] = {}
    if servos:
        joints = [name for name in joints if name in servos]
        gains = {k: [getattr(servos[name], v) for name in joints] for k, v in GAINS.items()}
        gains['delay'] = servos[joints[0]].delay
    else:
        gains['damping'] = [parts.drives[name].damping for name in joints]
    mass, center, moments, axes = zip(
        *(principal_inertia(body.inertial) for body in bodies), strict=True
    )
    values = {
        'mass': mass,
        'center': center,
        'moments': moments,
        'axes': [np.roll(quaternion(each), 1) for each in axes],
        'armature': [parts.drives[name].inertia for name in joints],
        **gains,
        'frictionloss': [parts.drives[name].friction for name in joints],
    }
    names = {'bodies': [body.name for body in bodies], 'joints': joints}
    return {'names': names, **{key: np.array(each) for key, each in values.items()}}


def _range_of(unit: str, identified: Array, drawn: Array) -> dict[str, Any]:
    """Return what is known of a parameter, of which there are draws (N, …)."""
    low, high = np.quantile(drawn, QUANTILES, axis=0)
    columns = {'identified': identified, 'mean': drawn.mean(axis=0), 'sigma': drawn.std(axis=0)}
    columns |= {'low': low, 'high': high}
    return {'unit': unit, **{name: each.tolist() for name, each in columns.items()}}
