"""The columns D_j of what plain friction may leave out of a joint's torque, kind by kind."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..model.friction import FrictionTerm, TERMS
from ..model.robot import Robot
from ..regression.observation_system import decimate, System
from ..signals.samples import Samples

# What a default opens: each predicts other motion better on the logs of benchmarks/foreign.py.
KINDS = ('low_speed', 'rounded_sign', 'load', 'slip', 'position')
# Quantile of a joint's speeds that stands for all of it, and those that its load and its position
# are clamped to: beyond what was seen, a column says nothing.
FAST, SEEN = 0.95, (0.01, 0.99)
# Least size of a column over its natural amplitude. A column that was hardly excited would be blown
# up else: on short recordings to 279 times what plain friction leaves.
LEAST_SIZE = 0.2
TINY = 1e-9  # a speed, range or load that is as good as none


@dataclasses.dataclass(frozen=True)
class Kinds:
    """
    Columns of the kinds of what is left out.

    Attributes
    ----------
    terms : of each joint, as its data scale them
    columns : (n, N, d), as the rows of the system
    amplitude : (n, d) natural amplitudes
    kind : (d,) which of `KINDS` a column is of

    """

    terms: tuple[tuple[FrictionTerm, ...], ...]
    columns: Array
    amplitude: Array
    kind: Array


def observe_kinds(samples: Samples, system: System, robot: Robot, load: Array) -> Kinds:
    """
    Return the columns of all kinds, through the filters of W and the torques.

    Parameters
    ----------
    samples, system : of one motion
    robot : the model
    load : (n, N) torque of links and rotors by the plain fit, at the system's rows

    """
    terms, columns, amplitude = [], [], []
    for j in range(robot.n):
        torque = np.interp(samples.time, system.time, load[j])
        own = scaled_terms(samples.q[:, j], samples.dq[:, j], np.abs(torque))
        motion = samples.q[:, j], samples.dq[:, j], torque, True
        values = np.array([column for term in own for column in term.columns(*motion)])
        terms.append(own)
        columns.append(decimate(values, samples.decimation).T)
        amplitude.append([_amplitude(term) for term in own for _ in term.kind.symbols])
    kind = np.repeat(np.arange(len(KINDS)), [len(TERMS[name].symbols) for name in KINDS])
    return Kinds(tuple(terms), np.stack(columns), np.array(amplitude), kind)


def scaled_terms(q: Array, dq: Array, load: Array) -> tuple[FrictionTerm, ...]:
    """Return the terms of a joint, scaled and clamped by its motion (N,) and size of its load."""
    low, high = np.quantile(q, SEEN)
    least, most = np.quantile(load, SEEN)
    values = {
        'speed_scale': max(float(np.quantile(np.abs(dq), FAST)), TINY),
        'load_scale': max(float(load.mean()), TINY),
        'load_low': float(least),
        'load_high': max(float(most), TINY),
        'position_low': float(low),
        'position_high': float(high),
        'position_mean': float(q.mean()),
    }
    return tuple(
        FrictionTerm(name, {constant: values[constant] for constant in TERMS[name].constants})
        for name in KINDS
    )


def _amplitude(term: FrictionTerm) -> float:
    if not term.kind.of_position:
        return term.kind.amplitude
    return max(0.5 * (term.constants['position_high'] - term.constants['position_low']), TINY)


def column_scale(kinds: Kinds, system: System) -> Array:
    """Return the size (n, d) of a column of variance one: of its rows, or a share of its nature."""
    used = system.valid[:, :, None] * kinds.columns
    rms = np.sqrt(np.sum(used**2, axis=1) / np.maximum(system.valid.sum(axis=1), 1)[:, None])
    return np.maximum(rms, LEAST_SIZE * kinds.amplitude)
