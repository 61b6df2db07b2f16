"""The default model of a recording: plain friction, and columns that are shrunk towards it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses

import numpy as np

from ..arrays import Array, Mask
from ..model.dynamics import inverse_dynamics
from ..model.friction import FRICTION_TERMS, FrictionTerm, make_terms, PLAIN_SYMBOLS, SHRUNK
from ..model.robot import BaseParameters, INERTIAL, Robot
from ..model.robot_builder import with_friction
from ..parameters.standard import basic_solution
from ..regression.least_squares import Penalty, scaled_least_squares
from ..regression.observation_system import (
    decimate,
    folds,
    joined,
    Observed,
    read_only,
    Rows,
    System,
)
from ..signals.recording import SignalSettings
from .variances import (
    Choice,
    ERRORS,
    Fits,
    gains_clearly,
    Grams,
    GRID,
    KIND,
    KIND_ERRORS,
    KINDS,
    products,
    Shrinkage,
    squared_errors,
    total,
)

# Residual of a joint over the largest of all, at least: a joint without any has no scale.
LEAST_RESIDUAL = 1e-6
# A column of W over the longest, at least: that of a joint that stands still has no unit else.
LEAST_LENGTH = 1e-6
# By what share of its size a body of a description may be off, where the data do not tell it. With
# 0.3, the expected error after 6 s of a UR10 was 17 %, the true one 28 %.
DOUBT = 1.0
# Friction before the data, over a joint's efforts, which are a share of the largest at least; at
# the speed of the motion, or a share of the joint's limit at least. As large as they are: with 3,
# Coulomb friction and offset of short motions cancel; without, kinds of a joint that its motion
# does not explain do, at 20 times its efforts.
FRICTION, LEAST_EFFORT, LEAST_SPEED = 1.0, 0.1, 0.1
ROUNDING = 1e-12  # an eigenvalue over the largest that is none
# Radius of gyration of a body [m] between which that of the description counts, and its mass over
# the mean one at least: what is known of a body is some share of its mass, as far as it reaches.
GYRATION, LEAST_MASS = (0.05, 1.0), 0.05

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

# What rows at instants leave of folds, weighted, over what filtered rows leave, less noise, with
# all kinds of columns open. With 0.5, 52 fits predict other motion 2 % worse; with 8, no better.
SHARE = 2.0
# From so many times what filtered rows leave, filters leave what is left at instants, of simulated
# robots: such rows count for less. Without, a SCARA with Stribeck friction and no noise got
# presliding: 10.7 instead of 1.2 % were left. Recordings of seven arms have 2 to 15, of gen3 75.
OF_FILTERS = 25.0
# How many times as much they may count, each if plain friction predicts those of folds so much
# better, as the log of the squared error, than with fewer. Without, a WAM's other motion is
# predicted 1.63 times worse than by plain least squares instead of 0.95 times. Simulated robots
# gain up to 0.12; where any clear gain counts, errors of one are three times as large.
TIMES, WORTH = (1.0, 4.0, 16.0, 64.0, 256.0), 0.15

Scales = Sequence[tuple[FrictionTerm, ...]]
Part = Observed[Rows]  # of one motion


@dataclasses.dataclass(frozen=True)
class MixedModel:
    """What was chosen for a robot."""

    robot: Robot  # with the terms of the kinds that are open
    plain: Robot  # without them
    base: BaseParameters  # of that
    shrinkage: Shrinkage  # how much each kind may explain
    # Of one row, of all parameters that there may be: the base's, and each kind's at each joint.
    penalty: Penalty
    repeats: float  # how many rows each counts for, with those at instants
    names: tuple[str, ...]
    rest_misleads: bool = False  # whether rows at rest bias it, see `_rest_misleads`
    signals: SignalSettings | None = None  # the filters and rows that were chosen with it, or None

    def describe(self) -> str:
        """Say in a line what is open, and what that gains."""
        found = self.shrinkage
        opened = [KINDS[k] for k, p in zip(KINDS, found.penalty, strict=True) if np.isfinite(p)]
        what = ', '.join(('viscous', 'Coulomb', 'offset', *opened))
        both = found.residual, found.plain_residual
        left, plain = (f'{float(f"{100 * share:.2g}"):g} %' for share in both)  # no exponent
        text = f'{what}; residual on parts that were not fitted {left}'
        return f'{text}, with plain friction {plain}' if opened else text

    def attach(self, system: System) -> System:
        """Return a system of the robot with the penalties for its number of rows."""
        place = [self.names.index(name) for name in system.names]
        penalty = self.penalty.of(place, self.repeats * float(system.equations.sum()))
        return dataclasses.replace(system, penalty=penalty)


def plain_errors_on(judged: Sequence[Part]) -> Callable[[Sequence[Part]], Array]:
    """
    Return what gives the squared errors (F,) of plain friction, fitted to parts, on these folds.

    Empty where a short log has other folds in the one than in the other.
    """
    length, weights, _ = _scales(judged)
    size = np.append(length, 1.0)
    test = _grams(judged, _folds(judged)).over(size)

    def errors(parts: Sequence[Part]) -> Array:
        train = test if parts is judged else _grams(parts, _folds(parts)).over(size)
        if len(train.folds) != len(test.folds):
            return np.zeros(0)
        return total(_plain_errors(train, test, weights, len(length)))

    return errors


def _plain_errors(train: Grams, test: Grams, weights: Array, b: int) -> Array:
    """Return the squared errors (F, n) of plain friction, fitted to what each fold leaves."""
    share = weights[:, None, None] / train.count
    size = np.maximum(np.einsum('jkk->k', (train.total * share)[:, :b, :b]), 1e-12)
    return squared_errors(test.folds, Fits((train.total - train.folds) * share, size).plain)


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


def _scales(parts: Sequence[Part]) -> tuple[Array, Array, Array]:
    """Return the size (b,) of the columns, 1/σ (n,) and the plain parameters (b,)."""
    n = len(parts[0].system.joints)
    rows = [part.system.rows(j) for part in parts for j in range(n)]
    W, Y = (np.concatenate([pair[k] for pair in rows]) for k in (0, 1))
    plain = scaled_least_squares(W, Y)
    squares = np.array([float(np.sum((y - w @ plain) ** 2)) for w, y in rows]).reshape(-1, n)
    counts = np.array([len(y) for _, y in rows]).reshape(-1, n).sum(axis=0)
    sigma = np.sqrt(squares.sum(axis=0) / np.maximum(counts, 1))
    weights = 1.0 / np.maximum(sigma, max(LEAST_RESIDUAL * sigma.max(), 1e-300))
    length = np.sqrt(np.mean(W**2, axis=0))
    return np.maximum(length, LEAST_LENGTH * length.max()), weights, plain


def choose(
    parts: Sequence[Part],
    instants: Sequence[Part],
    robot: Robot,
    base: BaseParameters,
    moving: Sequence[Mask] | None = None,
) -> MixedModel:
    """
    Choose how much each kind of column explains, and how far the description's bodies count.

    Of motions of a robot with plain friction where friction is open, the same at instants, as a
    model is evaluated, and the rows (n, N) that are not at rest, if those at rest may be left out.
    """
    length, weights, plain = _scales(parts)
    b, divided = base.rank, _folds(parts)
    links = np.array([robot.parameters[k].symbol in (*INERTIAL, 'Ia') for k in base.columns])
    rigid = basic_solution(base, np.where(links, plain, 0.0))
    bodies, samples = robot.of_links(rigid), [part.samples for part in parts]
    loads = [inverse_dynamics(robot, bodies, s.q, s.dq, s.ddq) for s in samples]
    scales = scaled_terms(parts, loads, robot)
    moved = joints_with_friction(parts, robot)
    parts = with_kinds(parts, loads, scales, moved)
    others = [part.system.predict(base.of(bodies)).T for part in instants]
    nearest = _folds_of_instants(parts, instants, divided)
    instants = with_kinds(instants, others, scales, moved)
    size = column_scale(parts, scales)
    sizes = np.array([[*length, *own, 1.0] for own in size])  # (n, c)
    grams = _grams(parts, divided).over(sizes)
    at_instants = _grams(instants, nearest).over(sizes)
    differences = _differences(parts, divided) / (sizes[:, :, None] * sizes[:, None])
    at_instants = _weighted(grams, differences, at_instants, weights, b)
    described = bool(robot.prior[robot.first_columns + 9].any())
    mean = base.of(robot.prior) if described else np.zeros(b)
    metric = _body_metric(robot, base, links) / np.outer(length, length)
    tau = np.concatenate([each.tau for each in samples])
    effort = np.sqrt(np.mean(tau**2, axis=0))
    effort = FRICTION * np.maximum(effort, LEAST_EFFORT * effort.max())
    spread, ridge = _friction(parts, robot, base, effort, weights)
    count = grams.count + at_instants.count
    ridge /= count
    least = 1.0 / np.maximum((weights * effort) ** 2, TINY) / count
    prior = (mean * length if described else None), metric, ridge / length**2, least
    choice = Choice(grams, at_instants, b, weights, *prior)
    found, misled = choice.run(), False
    if moving is not None:
        rows = _grams(parts, divided, moving).over(sizes)
        nothing = Grams(0.0 * rows.total, 0.0 * rows.folds, 0)
        misled = _rest_misleads(choice, found, grams, Choice(rows, nothing, b, weights, *prior))
    # All of the penalties for one row, of the columns as they are.
    values, vectors = np.linalg.eigh(found.pull * choice.metric * np.outer(length, length))
    used = values > ROUNDING * max(values[-1], 0.0)
    pull = (vectors[:, used] * np.sqrt(values[used])).T
    doubt = 0.0
    if described:
        doubt = DOUBT**2 * found.pull * float(np.trace(choice.metric) / np.trace(metric))
    of_kinds = (weights[:, None] * (found.penalty[KIND] + least[:, None]) * size**2).ravel()
    none = np.zeros(of_kinds.size)
    added = [symbol for name in KINDS for symbol in FRICTION_TERMS[name].symbols]
    symbols = [*(robot.parameters[k].symbol for k in base.columns), *added * robot.n]
    kind = dict(zip(added, KIND.tolist(), strict=True))
    factor = _factor(at_instants.total * (weights / count)[:, None, None], b)
    penalty = Penalty(
        np.sqrt(weights),
        np.append(ridge, of_kinds),
        np.append(spread, none),
        np.append(choice.size * length**2, none),
        np.array([symbol in SHRUNK for symbol in symbols]),
        np.array([kind.get(symbol, -1) for symbol in symbols]),
        np.pad(pull, ((0, 0), (0, none.size))),
        pull @ mean,
        doubt,
        factor * np.concatenate([length, size.ravel(), [1.0]]),
    )
    opened = found.used & moved[:, None]
    friction = [
        (*own, *(terms[k] for k in np.flatnonzero(opens)))
        for own, terms, opens in zip(robot.friction, scales, opened, strict=True)
    ]
    wider = with_friction(robot, tuple(friction))
    load = np.zeros(wider.p)
    load[[wider.column(p.name) for p in robot.parameters]] = rigid
    wider = dataclasses.replace(wider, load_parameters=load)
    names = (*base.names, *(f'{s}{j + 1}' for j in range(robot.n) for s in added))
    return MixedModel(wider, robot, base, found, penalty, count / grams.count, names, misled)


def _friction(
    parts: Sequence[Part], robot: Robot, base: BaseParameters, effort: Array, weights: Array
) -> tuple[Array, Array]:
    """
    Return the variance (b,) of friction before the data, and its ridge (b,); zero of others.

    It is as large as an effort (n,), at a speed that the joint may have. Without, a joint that
    hardly moved is given friction that no other motion knows. An error weighted by 1/σ has σ.
    """
    dq = np.concatenate([part.samples.dq for part in parts])
    limit = robot.limits.velocity  # some programs write zero for none
    fastest = np.where((limit > 0.0) & np.isfinite(limit), limit, 1.0)
    speed = np.maximum(np.quantile(np.abs(dq), FAST, axis=0), LEAST_SPEED * fastest)
    spread, ridge = np.zeros(base.rank), np.zeros(base.rank)
    for k, column in enumerate(base.columns):
        parameter = robot.parameters[column]
        if parameter.symbol in PLAIN_SYMBOLS and parameter.joint in robot.joints:
            j = robot.joints.index(parameter.joint)
            spread[k] = (effort[j] / (speed[j] if parameter.symbol == 'Fv' else 1.0)) ** 2
            ridge[k] = 1.0 / max(weights[j] * spread[k], TINY)
    return spread, ridge


def _body_metric(robot: Robot, base: BaseParameters, links: Mask) -> Array:
    """
    Return (A Σ Aᵀ)⁻¹ (b, b) of base parameters A χ of links and rotors, zero of others.

    Σ is diagonal: the mass of a body, its first moments and its inertias are as uncertain as its
    mass m, m r and m r² are large, r its radius of gyration about its joint.
    """
    prior, variance = robot.prior, np.zeros(robot.p)
    masses = prior[robot.first_columns + 9]
    for start, mass in zip(robot.first_columns, masses, strict=True):
        mass = max(float(mass), LEAST_MASS * float(masses.mean()), 1e-9)
        radius = np.sqrt(max(float(prior[start + np.array([0, 3, 5])].sum()), 0.0) / (2.0 * mass))
        radius = float(np.clip(radius, *GYRATION))
        sizes = np.repeat([mass * radius**2, mass * radius, mass], (6, 3, 1))
        variance[start : start + 10] = sizes**2
        for column in range(start + 10, min(start + 11, robot.p)):
            if robot.parameters[column].symbol == 'Ia':
                variance[column] = (mass * radius**2) ** 2
    A = base.matrix[links]
    metric = np.zeros((base.rank, base.rank))
    metric[np.ix_(links, links)] = np.linalg.pinv(
        A * variance @ A.T, rcond=ROUNDING, hermitian=True
    )
    return metric


def _folds(parts: Sequence[Part]) -> list[Mask]:
    """Return the folds (F, N) of each part, which is one itself where there are several."""
    found = []
    for part in parts:
        keep = part.samples.decimation
        motion = part.samples.q[::keep], part.samples.dq[::keep]
        each = folds(*motion, np.asarray(part.system.valid.any(axis=0)))
        found.append(np.vstack([each, np.ones_like(each[:1])]) if len(parts) > 1 else each)
    return found


def _folds_of_instants(
    parts: Sequence[Part], instants: Sequence[Part], divided: Sequence[Mask]
) -> list[Mask]:
    """Return the folds of rows at instants, those of the rows that are next in time."""
    found = []
    for part, own, each in zip(parts, instants, divided, strict=True):
        used = np.flatnonzero(part.system.valid.any(axis=0))
        time = part.system.time[used]
        near = np.rint(np.interp(own.system.time, time, np.arange(len(time)))).astype(int)
        found.append(each[:, used[near]])
    return found


def _rest_misleads(choice: Choice, found: Shrinkage, every: Grams, without: Choice) -> bool:
    """
    Tell whether rows at rest bias a model of every row.

    Friction that jumps has any value at rest. But rest tells of gravity, and presliding describes
    it: rows at rest mislead only if plain friction without them predicts every row clearly better,
    and a model that is chosen without them, too. Errors are compared in total, and in units of
    each joint's σ: the total may be that of one joint that rests with much force.
    """

    def gains(errors: Array, others: Array, chances: float) -> bool:
        units = np.ones_like(found.weights), found.weights**2
        return any(gains_clearly(errors @ unit, others @ unit, chances) for unit in units)

    judged = every.folds
    if not gains(without.plain_on(judged), choice.plain_on(judged), KIND_ERRORS):
        return False
    other = without.run()
    errors = without.errors_on(judged, other.penalty, other.pull)
    return gains(errors, choice.errors_on(judged, found.penalty, found.pull), ERRORS)


def _grams(
    parts: Sequence[Part], divided: Sequence[Mask], rows: Sequence[Mask] | None = None
) -> Grams:
    """Return the products of all parts, in these folds, of some rows (n, N) or all."""
    used = rows or [part.system.valid for part in parts]
    systems = [part.system for part in parts]
    found = [
        products(s.W, np.zeros((*s.Y.shape, 0)) if s.D is None else s.D, s.Y, mask, each)
        for s, mask, each in zip(systems, used, divided, strict=True)
    ]
    return sum(found[1:], start=found[0])


def _differences(parts: Sequence[Part], divided: Sequence[Mask]) -> Array:
    """Return products (n, c, c) of rows [W D y] less the next, of as many as all folds hold."""
    often = sum(each.sum() for each in divided) / sum(each.shape[1] for each in divided)
    total: Array = np.zeros(())
    for system in (part.system for part in parts):
        rows, both = np.diff(joined(system), axis=1), system.valid[:, 1:] & system.valid[:, :-1]
        split = rows[:, :, :-1], rows[:, :, :0], rows[:, :, -1]
        total = total + products(*split, both, both[:0]).total
    return total * often


def _weighted(grams: Grams, differences: Array, instants: Grams, weights: Array, b: int) -> Grams:
    """
    Return rows at instants by their shares (n,), or by as many times these as folds ask for.

    Of an exact model, unfiltered rows leave only what filters do, and filtered rows only noise;
    `differences` have twice its square. What is left is that of folds: few rows leave nothing of
    themselves. Where filtered rows hide much of what is left at instants, as of accelerations that
    are noise, their fit predicts other instants badly.
    """
    train = (grams.total - grams.folds) * (weights / grams.count)[:, None, None]
    size = np.maximum(np.einsum('fjkk->k', train[..., :b, :b]) / len(train), 1e-12)
    fitted = Fits(train, size).solve(GRID[-1] * np.repeat(weights, len(KIND)))
    differences = np.broadcast_to(differences / len(train), grams.folds.shape)
    judged = grams.folds, instants.folds, differences
    left, at_instants, twice = (squared_errors(x, *fitted).sum(axis=0) for x in judged)
    without = np.maximum(left - 0.5 * twice, 0.0)
    ratio = float(np.median(at_instants / np.maximum(left, 1e-300)))
    most = SHARE * min(1.0, OF_FILTERS / max(ratio, 1e-300))
    # A joint without rows at instants has no share of them.
    shares = most * np.where(at_instants > 0.0, without / np.maximum(at_instants, 1e-300), 0.0)
    count = most * float(np.mean(without / np.maximum(left, 1e-300))) * grams.count
    best, least = None, np.zeros(0)
    for times in TIMES:
        share = times * shares[:, None, None]
        own = Grams(instants.total * share, instants.folds * share, int(times * count))
        both = Grams(grams.total + own.total, grams.folds + own.folds, grams.count)
        errors = total(_plain_errors(both, instants, weights, b))
        if best is None or gains_clearly(errors, least, KIND_ERRORS, WORTH):
            best, least = own, errors
    assert best is not None
    return best


def _factor(grams: Array, b: int) -> Array:
    """Return R (k, b + n d + 1) of joints' products (n, b + d + 1, b + d + 1), RᵀR their sum."""
    n, d = len(grams), grams.shape[1] - b - 1
    whole = np.zeros((b + n * d + 1, b + n * d + 1))
    for j, own in enumerate(grams):
        place = np.r_[:b, b + j * d : b + (j + 1) * d, len(whole) - 1]
        whole[np.ix_(place, place)] += own
    values, vectors = np.linalg.eigh(whole)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)
