"""Stationarity: parts of a recording against each other, joint by joint."""

from collections.abc import Iterator, Sequence
import dataclasses
from itertools import product

import numpy as np

from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.effort_parts import OFFSET
from .block_regression import block_products, Change, explained_without, regress_change
from .torque_parts import JointTorques, rms

# Contiguous blocks whose errors are taken as independent; least rows of a block, and blocks.
BLOCKS, MIN_ROWS, MIN_BLOCKS = 48, 8, 16
# A change is looked for at each of so many places, away from the ends.
PLACES, AWAY = 16, 3
# Least time before and after a change [s]: in less, a motion shows too little of a joint.
MIN_SECONDS = 5.0
# A change is told from so many standard deviations on, when it is so large a share of the torque
# that changed, and of all of the joint's effort, and when it explains so much of the squared
# residual. Calibrated with benchmarks/assumptions.py: 200 clean logs, and each disturbance.
SIGNIFICANT, MIN_CHANGE, MIN_SHARE, MIN_EXPLAINED = 6.0, 0.1, 0.004, 0.1
# A zero that moves, over the joint's effort.
MIN_OFFSET = 0.1
# What it has to explain of an error that is large, or may come from standstill, as a zero does.
LARGE, MIN_OF_LARGE = 0.1, 0.3
# What a change of the payload has to explain over what the joints' own changes do.
PAYLOAD_GAIN = 1.05
# Load that a payload adds, over a joint's effort, and moments of it that no joint feels.
MIN_LOAD, NOTHING = 0.03, 1e-6
LEAST_BEFORE = 0.1  # of what a torque is on average: less would make any change look endless

EFFORT, FRICTION, LOAD = 'effort', 'friction', 'load'
# Names of findings: what changed.
CHANGED = {
    EFFORT: 'effort_changed',
    FRICTION: 'friction_changed',
    LOAD: 'load_changed',
    OFFSET: 'offset_changed',
}


@dataclasses.dataclass(frozen=True)
class _Course:
    """How a change goes on in time: (B,) by block, and the time [s] of a step, None of a drift."""

    values: Array
    since: float | None


@dataclasses.dataclass(frozen=True)
class _JointChange:
    """What changed at a joint, by which share of what it was before, and how."""

    joint: int
    kind: str
    share: float
    course: _Course
    explained: float


def stationarity_warnings(
    robot: Robot, base: BaseParameters, torques: Sequence[JointTorques]
) -> list[Finding]:
    """Name the joints whose friction, efforts or loads changed."""
    usable = [t for t in torques if len(t.time) >= MIN_ROWS * MIN_BLOCKS and t.size > 0.0]
    findings = [found for t in usable if (found := _largest_change(t)) is not None]
    payload = _payload(robot, base, usable, findings)
    if payload is not None:
        return [payload]
    result = []
    for kind, gradual in product(CHANGED, (False, True)):
        some = [f for f in findings if f.kind == kind and (f.course.since is None) == gradual]
        if some:
            some.sort(key=lambda change: -abs(change.share))
            joints = [robot.joints[found.joint] for found in some]
            shares = [change.share for change in some]
            values = (
                {'drifts': shares}
                if gradual
                else {'shares': shares, 'since': [change.course.since for change in some]}
            )
            result.append(finding(CHANGED[kind], joints, **values))
    return result


def _courses(time: Array, blocks: int) -> Iterator[_Course]:
    """Yield steps and a drift, each with a mean of zero."""
    place = np.arange(blocks)
    for k in range(AWAY, PLACES - AWAY + 1):
        first = round(k * blocks / PLACES)
        step, since = (place >= first).astype(float), float(time[first * len(time) // blocks])
        if min(since - time[0], time[-1] - since) >= MIN_SECONDS:
            yield _Course(step - step.mean(), since)
    if time[-1] - time[0] < 2.0 * MIN_SECONDS:
        return
    yield _Course((place - place.mean()) / max(blocks - 1, 1), None)


def _blocks(torques: JointTorques) -> int:
    return min(BLOCKS, len(torques.time) // MIN_ROWS)


def _largest_change(torques: JointTorques) -> _JointChange | None:
    """Return the change of a joint that explains most of its error, where it is to be told."""
    names = [*torques.friction, LOAD]
    parts = np.column_stack([*torques.friction.values(), torques.rigid])
    blocks = _blocks(torques)
    products = block_products(np.column_stack([parts, torques.error]), blocks)
    without, best = explained_without(products), None
    for kind, chosen in _combinations(names):
        torque = parts @ chosen[:, 0]
        for course in _courses(torques.time, blocks):
            change = regress_change(products, course.values, chosen, without)
            if best is None or change.explained > best.explained:
                found = _told(torques, kind, torque, course, change)
                best = found or best
    return best


def _combinations(names: list[str]) -> Iterator[tuple[str, Array]]:
    """Yield what may change, with its share of each part, (m, 1)."""
    friction = [name not in (LOAD, OFFSET) for name in names]
    rows = {
        EFFORT: [True] * len(names),
        FRICTION: friction,
        LOAD: [name == LOAD for name in names],
        OFFSET: [name == OFFSET for name in names],
    }
    for kind, row in rows.items():
        if any(row):
            yield kind, np.array(row, dtype=float)[:, None]
    if sum(friction) > 1:
        for k in np.flatnonzero(friction):
            yield FRICTION, np.eye(len(names))[:, [k]]


def _told(
    torques: JointTorques, kind: str, torque: Array, course: _Course, change: Change
) -> _JointChange | None:
    """Return a change that is significant and large."""
    power = float(torques.error @ torques.error)
    share = MIN_OF_LARGE if kind == OFFSET or torques.residual > LARGE else MIN_EXPLAINED
    if change.significance < SIGNIFICANT or change.explained < share * power:
        return None
    value = float(change.value[0])
    size = abs(value) * rms(torque)
    total = sum(part for name, part in torques.friction.items() if name != OFFSET)
    whole = {EFFORT: rms(torque), LOAD: rms(torque), OFFSET: torques.size}.get(
        kind, rms(np.asarray(total))
    )
    least = MIN_OFFSET if kind == OFFSET else MIN_CHANGE
    if size < least * whole or size * rms(course.values) < MIN_SHARE * torques.size:
        return None
    sign = float(np.sign(value)) if kind != OFFSET else float(np.sign(value * torque.mean()))
    # Of a part of the friction, what it was before is not known apart.
    alone = kind == OFFSET or rms(torque) < whole
    before = 1.0 if alone else max(1.0 + value * float(course.values[0]), LEAST_BEFORE)
    return _JointChange(
        torques.joint, kind, sign * size / (whole * before), course, change.explained
    )


def _payload(
    robot: Robot, base: BaseParameters, torques: list[JointTorques], findings: list[_JointChange]
) -> Finding | None:
    """Tell of a body that came to or left the last link, where that explains more."""
    if not findings or not torques:
        return None
    last = int(robot.first_columns[-1])
    directions = base.matrix[:, [last + 9, last + 6, last + 7, last + 8]]
    blocks = min(_blocks(t) for t in torques)
    own = {found.joint: found.explained for found in findings}
    products, by_joints = np.zeros((blocks, 5, 5)), 0.0
    for t in torques:
        weight = 1.0 / max(float(t.error @ t.error), 1e-300)
        by_joints += weight * own.get(t.joint, 0.0)
        columns = np.column_stack([t.W @ directions, t.error])
        products += weight * block_products(columns, blocks)
    size = np.diag(products.sum(axis=0))[:4]
    used = np.flatnonzero(size > NOTHING * size.max())
    if not size.any():
        return None
    products = products[:, [*used, 4]][:, :, [*used, 4]]
    steps = [course for course in _courses(torques[0].time, blocks) if course.since is not None]
    if not steps:
        return None
    every, without = np.eye(len(used)), explained_without(products)
    changes = [regress_change(products, course.values, every, without) for course in steps]
    change, course = max(zip(changes, steps, strict=True), key=lambda pair: pair[0].explained)
    alone = change.explained < PAYLOAD_GAIN * by_joints and not _is_shared(findings, torques[0])
    if change.significance < SIGNIFICANT or alone:
        return None
    loads = [(t, t.W @ directions[:, used] @ change.value) for t in torques]
    if max(rms(load) / t.size for t, load in loads) < MIN_LOAD:
        return None
    sure = change.explained > by_joints and used[0] == 0
    sure = sure and abs(change.value[0]) > SIGNIFICANT * change.sigma[0]
    mass = change.value[0] if sure else None
    return finding('payload_changed', robot.joints, since=course.since, mass=mass)


def _is_shared(findings: list[_JointChange], torques: JointTorques) -> bool:
    """Tell whether the load of several joints, and nothing else, changed at the same time."""
    since = [found.course.since for found in findings]
    if len(findings) < 2 or any(found.kind != LOAD for found in findings) or None in since:
        return False
    times = np.array(since, dtype=float)
    return bool(np.ptp(times) <= 2.0 * np.ptp(torques.time) / PLACES)
