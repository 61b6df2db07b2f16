"""How many steps of the integrator a control period needs."""

import math

import numpy as np

from ...exceptions import ModelError
from .pseudo_inertia import Array

# Radians of the fastest vibration in one step: RK4 takes 1e-4 of its amplitude there.
MAX_PHASE = 0.5
# Bounds the cost of a period: at 1 kHz and with more steps a robot would not keep real time.
MAX_SUBSTEPS = 50


def count_substeps(mass: Array, damping: Array, stiffness: Array, period: float) -> int:
    """
    Count the steps per period that keep the integrator stable and its vibrations undamped.

    Parameters
    ----------
    mass, damping, stiffness : (m, m) of all bodies, rotors included
    period : of the controller [s]

    Raises
    ------
    ModelError : friction or a spring is too fast to simulate

    """
    frequency = math.sqrt(_fastest(mass, stiffness))
    decay = _fastest(mass, damping)
    steps = max(1, math.ceil(period * max(frequency / MAX_PHASE, decay)))
    if steps <= MAX_SUBSTEPS:
        return steps
    if decay > frequency / MAX_PHASE:
        raise ModelError(
            f'viscous friction stops a joint within {1.0 / decay:.1e} s: lower `viscous` or raise '
            '`rotor_inertia`'
        )
    raise ModelError(
        f'a joint vibrates with {frequency / (2.0 * math.pi):.0f} Hz, too fast to simulate: lower '
        'simulation.elastic.stiffness or raise update_rate'
    )


def _fastest(mass: Array, other: Array) -> float:
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(mass, other))).max())
