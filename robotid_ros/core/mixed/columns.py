"""The columns D_j of what plain friction may leave out of a joint's torque, kind by kind."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from ..arrays import Array, Mask
from ..model.friction import FRICTION_TERMS, FrictionTerm, make_terms
from ..model.robot import BaseParameters, Robot
from ..regression.model_error import EFFECTS
from ..regression.observation_system import decimate, observe, Observed, read_only, Rows, with_rows
from ..signals.filters import lowpass, power_edge
from ..signals.preparation import CUTOFF_FACTOR, MIN_CUTOFF, prepare
from ..signals.recording import Recording, SignalSettings

# What the default opens, by name and in words: each predicts other motion better on the logs of
# benchmarks/foreign.py.
KINDS = {name: text for effect in EFFECTS.values() for name, text in effect.terms.items()}
# Which of them a column is of, (d,).
KIND = np.repeat(np.arange(len(KINDS)), [len(FRICTION_TERMS[name].symbols) for name in KINDS])
# Quantile of a joint's speeds that stands for all of it, and those that its load and its position
# are clamped to: beyond what was seen, a column says nothing.
FAST, SEEN = 0.95, (0.01, 0.99)
# Least size of a column over its natural amplitude. One that was hardly excited would be blown up
# else: on short recordings to 279 times what plain friction leaves.
LEAST_SIZE = 0.2
# Least share of the time that a joint moves each way: of less, friction is one with the offset,
# and columns would explain what is none.
BOTH_WAYS = 0.05
TINY = 1e-9  # a speed, range or load that is as good as none

Scales = Sequence[tuple[FrictionTerm, ...]]
Part = Observed[Rows]  # of one motion


def scaled_terms(parts: Sequence[Part], loads: Sequence[Array], robot: Robot) -> Scales:
    """Return the terms of each joint, scaled and clamped by its motion and its load (N, n)."""
    q, dq = (np.concatenate([getattr(p.samples, k) for p in parts]) for k in ('q', 'dq'))
    load = np.abs(np.concatenate(loads))
    low, high = np.quantile(q, SEEN, axis=0)
    least, most = np.quantile(load, SEEN, axis=0)
    values = {
        'speed_scale': np.quantile(np.abs(dq), FAST, axis=0),
        'load_scale': load.mean(axis=0),
        'load_low': least,
        'load_high': most,
        'position_low': low,
        'position_high': high,
        'position_mean': q.mean(axis=0),
    }
    # A constant of a term is never zero.
    each = [{k: float(v[j]) or TINY for k, v in values.items()} for j in range(robot.n)]
    return [make_terms(tuple(KINDS), constants) for constants in each]


def joints_with_friction(parts: Sequence[Part], robot: Robot) -> Mask:
    """Return which joints (n,) have open friction and moved both ways enough."""
    dq = np.concatenate([np.where(p.samples.moving, p.samples.dq, 0.0) for p in parts])
    fewer = np.minimum(np.mean(dq > 0.0, axis=0), np.mean(dq < 0.0, axis=0))
    return np.array(robot.open_friction) & (fewer >= BOTH_WAYS)


def with_kinds(
    parts: Sequence[Part], loads: Sequence[Array], scales: Scales, has_friction: Mask
) -> list[Part]:
    """Return parts with the columns of all kinds, through W's filter; zero without friction."""
    result = []
    for part, load in zip(parts, loads, strict=True):
        samples, D = part.samples, []
        for j, terms in enumerate(scales):
            motion = samples.q[:, j], samples.dq[:, j], load[:, j], True
            values = np.array([column for term in terms for column in term.columns(*motion)])
            D.append(decimate(values, samples.decimation).T * has_friction[j])
        system = dataclasses.replace(part.system, D=read_only(np.stack(D)))
        result.append(dataclasses.replace(part, system=system))
    return result


def column_scale(parts: Sequence[Part], scales: Scales) -> Array:
    """Return the size (n, d) of columns of variance one: their rms, or a share of their nature."""
    squares, count = 0.0, 0
    for system in (part.system for part in parts):
        assert system.D is not None
        squares = squares + np.sum((system.valid[:, :, None] * system.D) ** 2, axis=1)
        count = count + system.valid.sum(axis=1)[:, None]

    def amplitude(term: FrictionTerm) -> float:
        if not term.kind.of_position:
            return term.kind.amplitude
        constants = term.constants
        return max(0.5 * (constants['position_high'] - constants['position_low']), TINY)

    natural = [[amplitude(t) for t in terms for _ in t.kind.symbols] for terms in scales]
    return np.maximum(np.sqrt(squares / np.maximum(count, 1)), LEAST_SIZE * np.array(natural))


# Rows of a recording at least, where it has so many: a few hundred alias the torques' noise.
ROWS = 10_000
# What they leave, weighted, over what filtered rows leave, less noise, with all kinds of columns
# open. With 0.7, EMPS is validated at 4.14 instead of 4.09 %; without, other motion is predicted
# 3 % worse (benchmarks/foreign.py).
SHARE = 0.5
# How many times as much they may count, each if plain friction predicts those of folds so much
# better, as the log of the squared error, than with fewer. Without, a WAM's other motion is
# predicted 1.63 times worse than by plain least squares instead of 0.95 times. Simulated robots
# gain up to 0.12; where any clear gain counts, errors of one are three times as large.
TIMES, WORTH = (1.0, 4.0, 16.0, 64.0, 256.0), 0.15
POWER = 0.99  # of the positions, below their bandwidth


def at_instants(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    signals: SignalSettings,
    known: Part | None = None,
) -> Part:
    """
    Return the rows of a recording at instants: W is not filtered, as where a model is evaluated.

    Rows of W and torques that pass one filter together are without bias where the model is exact
    (DIDIM section II), but smooth what a model is off where a joint turns round or rests. The
    filter follows the positions' spectrum, whatever is set: that of the speeds is wider, and of
    positions that repeat it is mostly noise. Rows near an end or a gap count where those at rest
    do: of a short motion they are a fifth. Efforts are not behind positions, friction is plain;
    what is `known` are the same rows, of which others count.
    """
    bandwidth = position_bandwidth(recording.select(robot.joints).position, recording.rate)
    cutoff = max(MIN_CUTOFF, CUTOFF_FACTOR * bandwidth)
    follow = dataclasses.replace(signals, cutoff=cutoff, band=cutoff, decimation=1)
    samples = prepare(recording, robot, follow, ends=signals.rows == 'every')
    keep = max(1, len(samples.time) // ROWS)
    tau = lowpass(samples.tau, samples.cutoff, samples.rate, signals.order)
    thinned = samples.thinned(keep, tau[::keep])
    if known is not None:
        return with_rows(known, thinned)
    system = observe(thinned, robot, base)
    return Observed(system, thinned, (system,))


def position_bandwidth(q: Array, rate: float) -> float:
    """Return the frequency below which 99 % of the power of every position (N, n) lies [Hz]."""
    windowed = np.hanning(len(q))[:, None] * (q - q.mean(axis=0))
    power = np.abs(np.fft.rfft(windowed, axis=0)) ** 2
    return float(power_edge(power, POWER).max()) * rate / len(q)
