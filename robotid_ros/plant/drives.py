"""True drives: inertia, friction, springs, coupled motors; the true parameters of a robot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..exceptions import ConfigurationError, UnknownNameError
from ..simulation_settings import per_joint, SimulationSettings
from .moving_bodies import MovingBody
from .urdf_reading import inertial_at_origin

Values = tuple[float, ...]


@dataclass(frozen=True)
class Drives:
    """
    One value per moving body, in the bodies' order.

    A motor of `motors` is (ratios, Ia, Fv, Fc): it turns with `ratios · dq` and adds
    `Nᵀ (Ia N ddq + Fv N dq + Fc sign(N dq))`. Where `stiffness` is not 0, a spring stands between
    rotor and link: inertia, friction and offset are the rotor's.
    """

    rotor_inertia: Values
    viscous: Values
    coulomb: Values
    static: Values
    stribeck_velocity: Values
    offset: Values
    stiffness: Values
    motors: tuple[tuple[Values, float, float, float], ...]


def build_drives(
    settings: SimulationSettings, bodies: Sequence[MovingBody], joints: Sequence[str]
) -> Drives:
    """
    Assign the settings, which are in the order of `joints`, to the bodies.

    An array of the wrong length is a ConfigurationError, like springs without rotor inertia, or
    together with coupled motors or mimic joints.
    """
    count = len(joints)
    names = [body.joint.name for body in bodies]
    for name in joints:
        if name not in names:
            raise UnknownNameError('joint', name, tuple(names))

    def by_body(values: Values, name: str, default: Values | None = None) -> Values:
        if not values and default is not None:
            return default
        by_name = dict(zip(joints, per_joint(values, count, name), strict=True))
        return tuple(by_name.get(body, 0.0) for body in names)

    drives = Drives(
        by_body(settings.rotor_inertia, 'rotor_inertia'),
        by_body(settings.viscous, 'viscous', tuple(b.joint.damping for b in bodies)),
        by_body(settings.coulomb, 'coulomb', tuple(b.joint.friction for b in bodies)),
        by_body(settings.stribeck.extra, 'stribeck.extra'),
        tuple(
            value or 1.0
            for value in by_body(settings.stribeck.velocity or (0.05,), 'stribeck.velocity')
        ),
        by_body(settings.offset, 'offset'),
        by_body(settings.elastic.stiffness, 'elastic.stiffness'),
        _motors(settings, joints, names),
    )
    if not any(drives.stiffness):
        return drives
    if drives.motors or any(body.joint.mimic is not None for body in bodies):
        raise ConfigurationError(
            "'simulation.elastic' does not go with couplings or mimic joints: take one out"
        )
    for name, stiffness, inertia in zip(
        names, drives.stiffness, drives.rotor_inertia, strict=True
    ):
        if stiffness and inertia <= 0.0:
            raise ConfigurationError(
                f'{name} is elastic: give its motor a simulation.rotor_inertia'
            )
    return drives


def _motors(
    settings: SimulationSettings, joints: Sequence[str], names: Sequence[str]
) -> tuple[tuple[Values, float, float, float], ...]:
    coupling, count = settings.coupling, len(joints)
    if len(coupling.matrix) % count:
        raise ConfigurationError(
            f"'simulation.coupling.matrix' has {len(coupling.matrix)} values: give rows of {count}"
        )
    rows = [coupling.matrix[k : k + count] for k in range(0, len(coupling.matrix), count)]
    by_joint = [dict(zip(joints, row, strict=True)) for row in rows]
    ratios = [tuple(row.get(name, 0.0) for name in names) for row in by_joint]
    columns = [
        per_joint(getattr(coupling, name), len(rows), f'coupling.{name}')
        for name in ('Ia', 'Fv', 'Fc')
    ]
    return tuple(zip(ratios, *columns, strict=True))


@dataclass(frozen=True)
class TrueParameters:
    """
    True parameters of one joint, or of a motor that drives several.

    `values` holds `XX XY XZ YY YZ ZZ MX MY MZ M` at the joint's frame, links that are fixed to the
    joint's link included, and `Ia Fv Fc off`, with `Fs Fsc Fst vs` where there is static friction
    and `K` where there is a spring; a motor has `Ia Fv Fc` and its `ratios`.
    """

    name: str
    values: dict[str, float]
    ratios: tuple[float, ...] = ()


def true_parameters(
    bodies: Sequence[MovingBody], drives: Drives, order: Sequence[int]
) -> tuple[TrueParameters, ...]:
    """List true parameters joint by joint in this order of bodies, then of coupled motors."""
    found = []
    for k in order:
        mass, first, inertia = inertial_at_origin(bodies[k].inertial)
        names = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'MX', 'MY', 'MZ')
        moments = (*inertia[np.triu_indices(3)].tolist(), *first.tolist())
        values = dict(zip(names, moments, strict=True)) | {
            'M': mass,
            'Ia': drives.rotor_inertia[k],
            'Fv': drives.viscous[k],
            'Fc': drives.coulomb[k],
            'off': drives.offset[k],
        }
        if (extra := drives.static[k]) > 0.0:
            # In the terms of STICTION eq. 7-9: all of it at rest, and what sliding takes away.
            values |= {'Fs': drives.coulomb[k] + extra, 'Fsc': -extra, 'Fst': extra}
            values['vs'] = drives.stribeck_velocity[k]
        if drives.stiffness[k] > 0.0:
            values['K'] = drives.stiffness[k]
        found.append(TrueParameters(bodies[k].joint.name, values))
    for number, (ratios, *own) in enumerate(drives.motors):
        values = dict(zip(('Ia', 'Fv', 'Fc'), own, strict=True))
        turned = tuple(ratios[k] for k in order)
        found.append(TrueParameters(f'motor_{number}', values, turned))
    return tuple(found)
