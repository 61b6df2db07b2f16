"""True parameters of the simulated robot, to which identified ones are compared."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .drives import Drives
from .moving_bodies import Body
from .pseudo_inertia import inertial_at_origin


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
    bodies: Sequence[Body], drives: Drives, order: Sequence[int]
) -> tuple[TrueParameters, ...]:
    """List true parameters joint by joint in this order of bodies, then of coupled motors."""
    joints = [TrueParameters(bodies[i].joint.name, _joint(bodies[i], drives, i)) for i in order]
    motors = [
        TrueParameters(
            f'motor_{number}',
            {'Ia': inertia, 'Fv': viscous, 'Fc': coulomb},
            tuple(ratios[i] for i in order),
        )
        for number, (ratios, inertia, viscous, coulomb) in enumerate(drives.motors)
    ]
    return (*joints, *motors)


def _joint(body: Body, drives: Drives, index: int) -> dict[str, float]:
    mass, first, inertia = inertial_at_origin(body.inertial)
    names = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'MX', 'MY', 'MZ')
    moments = (*inertia[np.triu_indices(3)].tolist(), *first.tolist())
    values = dict(zip(names, moments, strict=True))
    values |= {
        'M': mass,
        'Ia': drives.rotor_inertia[index],
        'Fv': drives.viscous[index],
        'Fc': drives.coulomb[index],
        'off': drives.offset[index],
    }
    extra = drives.static[index]
    if extra > 0.0:
        # In the terms of STICTION eq. 7-9: all of it at rest, and what sliding takes away again.
        values |= {'Fs': drives.coulomb[index] + extra, 'Fsc': -extra, 'Fst': extra}
        values['vs'] = drives.stribeck_velocity[index]
    if drives.stiffness[index] > 0.0:
        values['K'] = drives.stiffness[index]
    return values
