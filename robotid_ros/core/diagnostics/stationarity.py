"""Stationarity: what changed in the course of a recording, joint by joint."""

from collections.abc import Iterator, Sequence
import dataclasses
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from ...exceptions import RankDeficientError
from ..arrays import Array, column_sizes, rms
from ..findings import Finding, finding
from ..model.friction import SHRUNK
from ..model.robot import BaseParameters, Robot
from ..regression.estimators import weighted_values
from ..regression.goodness_of_fit import OFFSET, rigid_and_offset
from ..regression.observation_system import Rows
from ..signals.recording import Samples, STANDSTILL
from .plausibility import FittedModel
from .trials import of_one_joint, RIDGE, scaled

# Effort over rounding: what is smaller than this share of a joint's effort is no part of it.
NO_PART = 1e-3
BEYOND_PLAIN = 'beyond plain friction'


class JointTorques(NamedTuple):
    """Torques (N,) of one joint on the rows that were fitted [N·m or N]."""

    joint: int
    time: Array  # [s]
    measured: Array
    error: Array  # what the fit leaves of it
    rigid: Array  # of links, rotor and spring, as fitted
    # By symbol, as fitted: the offset is `OFFSET`, what a mixed model shrinks `BEYOND_PLAIN`.
    friction: dict[str, Array]

    @property
    def size(self) -> float:
        """Root mean square of the measured torque."""
        return rms(self.measured)

    @property
    def residual(self) -> float:
        """‖error‖/‖measured‖."""
        return rms(self.error) / max(self.size, 1e-300)

    @property
    def blocks(self) -> int:
        """How many blocks of time tell a change."""
        return min(BLOCKS, len(self.time) // MIN_ROWS)


def joint_torques(fitted: FittedModel) -> list[JointTorques]:
    """Take the torques apart that were fitted."""
    (robot, base, systems, value), result = fitted, list[JointTorques]()
    shrunk = np.array([robot.parameters[k].symbol in SHRUNK for k in base.columns])
    rigid, offset = rigid_and_offset(robot, base.columns)
    for j in range(robot.n):
        parts = []
        for system in systems:
            rows = _in_motion(robot, base, system, j)
            parts.append((system.W[j][rows], system.Y[j][rows], system.time[rows]))
        W, Y, time = (np.concatenate(each) for each in zip(*parts, strict=True))
        named = [(BEYOND_PLAIN, W[:, shrunk & ~rigid] @ value[shrunk & ~rigid])]
        for column in np.flatnonzero(~rigid & ~shrunk):
            name = OFFSET if offset[column] else base.names[column]
            named.append((name, W[:, column] * value[column]))
        friction = {name: torque for name, torque in named if rms(torque) > NO_PART * rms(Y)}
        own = W[:, rigid] @ value[rigid]
        result.append(JointTorques(j, time, Y, Y - W @ value, own, friction))
    return result


def _in_motion(robot: Robot, base: BaseParameters, system: Rows, joint: int) -> Any:
    """Return which rows (N,) of a joint count; where `Fv` tells the speed, without standstill."""
    rows, viscous = system.valid[joint], _column(robot, base, joint, 'Fv')
    return rows if viscous is None else rows & (np.abs(system.W[joint][:, viscous]) >= STANDSTILL)


def _column(robot: Robot, base: BaseParameters, joint: int, symbol: str) -> int | None:
    """Return the base column of a joint's own parameter, None where there is none."""
    own = (symbol, robot.joints[joint])
    parameters = [robot.parameters[k] for k in base.columns]
    return next((c for c, p in enumerate(parameters) if (p.symbol, p.joint) == own), None)


def _explained(products: Array) -> float:
    """Return the squared error that torques X which are constant explain; as of `_regress`."""
    total, m = products.sum(axis=0), products.shape[1] - 1
    return float(np.linalg.lstsq(total[:m, :m], total[:m, m], rcond=RIDGE)[0] @ total[:m, m])


def _regress(products: Array, courses: Array, chosen: Array) -> tuple[Array, Array, Array]:
    """
    Regress an error on torques X that are constant and on a sum of them along courses of time.

    Of products (B, m + 1, m + 1) of [X e] in blocks, courses (C, B), and the sum (m,) of X that
    changes. The blocks' scores are taken as they are, so that errors may correlate within a block
    (Liang and Zeger 1986). Returns factors, their σ, the squared errors explained by all, (C,).
    """
    B, m = len(products), products.shape[1] - 1
    constant = np.broadcast_to(np.eye(m), (*courses.shape, m, m))
    expand = np.concatenate([constant, (courses[..., None] * chosen)[..., None]], axis=3)
    transposed = expand.swapaxes(2, 3)
    normals = transposed @ products[:, :m, :m] @ expand
    targets = (transposed @ products[:, :m, m:])[..., 0]
    (left, scale), total = scaled(normals.sum(axis=1)), targets.sum(axis=1)
    inverse = np.linalg.inv(left) / (scale[:, :, None] * scale[:, None])
    value = (inverse @ total[..., None])[..., 0]
    spread = (targets - (normals @ value[:, None, :, None])[..., 0]) @ inverse
    sigma = np.sqrt(B / max(B - m - 1, 1) * np.sum(spread[..., m] ** 2, axis=1))
    return value[:, m], np.maximum(sigma, 1e-300), np.sum(value * total, axis=1)


# Contiguous blocks whose errors are taken as independent; least rows of a block, and blocks.
BLOCKS, MIN_ROWS, MIN_BLOCKS = 48, 8, 16
PLACES, AWAY = 16, 3  # a change is looked for at each of so many places, away from the ends
# Least time before and after a change [s]: in less, a motion shows too little of a joint.
MIN_SECONDS = 5.0
# A change is told from so many standard deviations on, when it is so large a share of the torque
# that changed, and of all of the joint's effort, and when it explains so much of the squared
# residual. Calibrated with benchmarks/assumptions.py: 200 clean logs, and each disturbance.
SIGNIFICANT, MIN_CHANGE, MIN_SHARE, MIN_EXPLAINED = 6.0, 0.1, 0.004, 0.1
MIN_OFFSET = 0.1  # a zero that moves, over the joint's effort
# What it has to explain of an error that is large, or may come from standstill, as a zero does.
LARGE, MIN_OF_LARGE = 0.1, 0.3
LEAST_BEFORE = 0.1  # of what a torque is on average: less would make any change look endless

# Names of findings: what changed.
EFFORT, FRICTION = 'effort_changed', 'friction_changed'
LOAD, ZERO = 'load_changed', 'offset_changed'


class _JointChange(NamedTuple):
    """What changed at a joint, by which share of what it was, from when on, and what explains."""

    joint: int
    kind: str
    share: float
    since: float | None
    explained: float


def stationarity_warnings(robot: Robot, torques: Sequence[JointTorques]) -> list[Finding]:
    """Name the joints whose friction, efforts or loads changed."""
    usable = [t for t in torques if len(t.time) >= MIN_ROWS * MIN_BLOCKS and t.size > 0.0]
    findings = [found for t in usable if (found := _largest_change(t)) is not None]
    result = []
    findings.sort(key=lambda change: -abs(change.share))
    for kind, gradual in product((EFFORT, FRICTION, LOAD, ZERO), (False, True)):
        some = [f for f in findings if f.kind == kind and (f.since is None) == gradual]
        if some:
            shares, since = [f.share for f in some], [f.since for f in some]
            values = {'drifts': shares} if gradual else {'shares': shares, 'since': since}
            joints = [robot.joints[f.joint] for f in some]
            result.append(finding(kind, joints, **values))
    return result


def _courses(time: Array, blocks: int) -> Iterator[tuple[float | None, Array]]:
    """Yield steps at a time [s], and a drift, by block (B,) with a mean of zero."""
    place = np.arange(blocks)
    for k in range(AWAY, PLACES - AWAY + 1):
        first = round(k * blocks / PLACES)
        step, since = (place >= first).astype(float), float(time[first * len(time) // blocks])
        if min(since - time[0], time[-1] - since) >= MIN_SECONDS:
            yield since, step - step.mean()
    if time[-1] - time[0] >= 2.0 * MIN_SECONDS:
        yield None, (place - place.mean()) / max(blocks - 1, 1)


def _largest_change(torques: JointTorques) -> _JointChange | None:
    """Return the change of a joint that explains most of its error, where it is to be told."""
    parts = np.column_stack([*torques.friction.values(), torques.rigid])
    columns = np.column_stack([parts, torques.error])
    edges = np.linspace(0, len(columns), torques.blocks + 1).astype(int)
    blocks = (columns[a:b] for a, b in pairwise(edges))
    products = np.stack([block.T @ block for block in blocks])
    kinds = np.array([ZERO if k == OFFSET else FRICTION for k in torques.friction] + [LOAD])
    # What may change: its share of each part.
    choices = [(EFFORT, np.ones(len(kinds)))]
    choices += [(kind, 1.0 * (kinds == kind)) for kind in (FRICTION, LOAD, ZERO)]
    if (own := np.flatnonzero(kinds == FRICTION)).size > 1:
        choices += [(FRICTION, each) for each in np.eye(len(kinds))[own]]
    best, friction, constant = None, rms(parts @ choices[1][1]), _explained(products)
    if not (known := [*_courses(torques.time, torques.blocks)]):
        return None
    times, courses = zip(*known, strict=True)
    for kind, chosen in choices:
        if not chosen.any():
            continue
        torque = parts @ chosen
        whole = {FRICTION: friction, ZERO: torques.size}.get(kind, rms(torque))
        found = np.transpose(_regress(products, np.array(courses), chosen)).tolist()
        for since, course, (value, sigma, total) in zip(times, courses, found, strict=True):
            explained = total - constant
            more = best is None or explained > best.explained
            if not more or abs(value) < SIGNIFICANT * sigma:
                continue
            share = _share(torques, kind, torque, whole, course, value, explained)
            if share is not None:
                best = _JointChange(torques.joint, kind, share, since, explained)
    return best


def _share(
    torques: JointTorques, kind: str, torque: Array, whole: float, course: Array, value: float,
    explained: float,
) -> float | None:  # fmt: skip
    """Return by which share of the whole a torque changed, None if that is not to be told."""
    offset, size = kind == ZERO, abs(value) * rms(torque)
    share = MIN_OF_LARGE if offset or torques.residual > LARGE else MIN_EXPLAINED
    least = (MIN_OFFSET if offset else MIN_CHANGE) * whole
    if explained < share * float(torques.error @ torques.error):
        return None
    if size < least or size * rms(course) < MIN_SHARE * torques.size:
        return None
    sign = float(np.sign(value * torque.mean() if offset else value))
    # Of a part of the friction, what it was before is not known apart.
    alone = offset or rms(torque) < whole
    before = 1.0 if alone else max(1.0 + value * float(course[0]), LEAST_BEFORE)
    return sign * size / (whole * before)


# A standstill is contradicted where efforts are predicted so many times worse than elsewhere, by
# so large a share of them; of joints at rest only what exceeds dry friction by a factor counts.
WORSE, MUCH, STICTION = 4.0, 0.1, 2.0


def standstill_warnings(
    robot: Robot, base: BaseParameters, samples: Samples, system: Rows
) -> list[Finding]:
    """Name joints that stand still where efforts say that they moved, or were held."""
    moving = np.abs(samples.dq[:: samples.decimation].T) >= STANDSTILL
    time, result = system.time, list[Finding]()
    rigid, _ = rigid_and_offset(robot, base.columns)
    for j, joint in enumerate(robot.joints if moving.shape == system.Y.shape else ()):
        ends = np.flatnonzero(np.diff(np.concatenate([[0], ~moving[j], [0]]))).reshape(-1, 2)
        first, stop = max(ends.tolist(), key=lambda each: each[1] - each[0], default=(0, 1))
        there = np.zeros(len(time), dtype=bool)
        there[first:stop] = True
        since, until = (float(time[k]) for k in (first, stop - 1))
        if until - since < MIN_SECONDS or moving[j].sum() < MIN_ROWS * MIN_BLOCKS:
            continue
        rest = dataclasses.replace(system, valid=system.valid & ~there)
        try:
            value = weighted_values(rest)
        except RankDeficientError:
            continue
        error = np.abs(system.Y - system.predict(value))
        friction = system.W[:, :, ~rigid] @ value[~rigid]
        before, after = np.zeros((2, robot.n))
        for k, elsewhere in enumerate(rest.valid & moving):
            slack = np.where(moving[k], 0.0, STICTION * rms(friction[k][elsewhere]))
            size = rms(system.Y[k][elsewhere]) or np.inf
            before[k] = rms(error[k][elsewhere]) / size
            after[k] = rms(np.maximum(error[k] - slack, 0.0)[there]) / size
        other = int(np.argmax(np.where(after > WORSE * before, after, 0.0)))
        if after[other] > max(MUCH, WORSE * before[other]) and np.median(before) < MUCH:
            values: dict[str, Any] = {'before': before[other], 'after': after[other]}
            values |= {'start': since, 'stop': until, 'other': robot.joints[other]}
            values['until'] = since if since - time[0] > MIN_SECONDS else None
            values['since'] = until if time[-1] - until > MIN_SECONDS else None
            result.append(finding('standstill_contradicted', [joint], **values))
    return result


LARGE_RESIDUAL = 0.02  # relative residual of a joint from which its friction is looked into
# Least rows on either side of a jump, and pieces of either side that are left out in turn.
JUMP_ROWS, PIECES = 6, 6
# Least share of the joint's squared error that a jump explains, and least size over its effort.
MIN_JUMP_EXPLAINED, MIN_JUMP = 0.3, 0.05
# By how much it has to lower the squared error. On public logs, what gained less was another error
# of the model: after the advice other motion was predicted worse in 6 of 9.
LEAST_GAIN = 4.0
ROUNDING = 1e-10  # below which columns depend on others


def friction_jump(robot: Robot, base: BaseParameters, rows: Rows, joint: int) -> Finding | None:
    """
    Return the jump of Coulomb friction that explains most of what a joint's own columns leave.

    For each time t_0 the column sign(q̇) [t ≥ t_0] is tried at once: its product with the error,
    and its square without what W explains, are sums from t_0 on. What then explains most is tried
    on pieces of both sides that are left out in turn.
    """
    used, dry = _in_motion(robot, base, rows, joint), _column(robot, base, joint, 'Fc')
    every, y, time = rows.W[joint][used], rows.Y[joint][used], rows.time[used]
    # Filtered as the effort is, where there is such a column.
    sign = np.sign(np.asarray(rows.dq)[used, joint]) if dry is None else every[:, dry]
    sizes, count = column_sizes(every), len(y)
    if count < 2 * JUMP_ROWS + 2 * np.isfinite(sizes).sum():
        return None
    U, s, _ = np.linalg.svd(every / sizes, full_matrices=False)
    U = U[:, s > ROUNDING * s[0]]
    error = y - U @ (U.T @ y)

    def from_here_on(values: Array) -> Array:
        return np.asarray(np.cumsum(values[::-1], axis=0)[::-1])

    product = from_here_on(sign * error)
    square = from_here_on(sign**2) - np.sum(from_here_on(sign[:, None] * U) ** 2, axis=1)
    explained = (product**2 / np.maximum(square, 1.0))[JUMP_ROWS : count - JUMP_ROWS]
    place = JUMP_ROWS + int(np.argmax(explained))
    size = float(product[place] / max(square[place], 1.0))
    share = float(explained.max()) / max(float(error @ error), 1e-300)
    if share < MIN_JUMP_EXPLAINED or abs(size) < MIN_JUMP * rms(y):
        return None
    early, late = np.arange(place), np.arange(count - place)
    piece = np.concatenate([x * PIECES // len(x) for x in (early, late)])
    folds = piece == np.arange(PIECES)[:, None]
    longer = np.column_stack([every, sign * (np.arange(count) >= place)])
    before, after = (of_one_joint(W, y, folds) for W in (every, longer))
    trial = before.compare(before.recorded, after.recorded)
    if not trial.is_better(LEAST_GAIN):
        return None
    since = float(time[place])
    start, stop = (float(time[0]), since) if 2 * place < count else (since, float(time[-1]))
    name, jump = robot.joints[joint], {'jump': size, 'since': since, 'start': start, 'stop': stop}
    values = {**jump, **trial.values(name, 'any masses'), 'unit': robot.units[name][1]}
    return finding('friction_jump', [name], **values)
