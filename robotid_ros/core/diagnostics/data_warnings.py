"""What a fit took for granted of its data, and the likeliest reason of what it leaves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
from itertools import chain
from typing import Any

import numpy as np

from ..arrays import Array, rms
from ..findings import Finding, finding
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.least_squares import project_out, scaled_least_squares
from ..regression.observation_system import decimate, Rows
from ..regression.validation import Validation
from ..signals.filters import power_edge
from ..signals.recording import Samples
from .data_quality import HARDLY_MOVED
from .plausibility import (
    FittedModel,
    limit_warnings,
    magnitude_warnings,
    saturation_warnings,
    scale_warnings,
)
from .remedies import (
    BACKWARDS,
    COMPENSATED,
    EFFORT_UNIT,
    find_causes,
    GEOMETRY,
    GRAVITY,
    SWAPPED,
    TIME,
)
from .stationarity import (
    friction_jump,
    joint_torques,
    LARGE_RESIDUAL,
    standstill_warnings,
    stationarity_warnings,
)
from .trials import of_one_joint, trial_rows

# With a wrong gravity or sense, or efforts of other joints, every joint is off, whatever else is.
EVERYTHING = (BACKWARDS, COMPENSATED, GRAVITY, SWAPPED, TIME, *GEOMETRY)
# Relative residual of a joint from which it is looked into, from which it is told without a
# reason where it follows the motion, and from which it is told anyway.
NOTEWORTHY, WITHOUT_REASON, LARGE = 0.1, 0.15, 0.3
# Share of the squared residual that a reason explains on parts that were not fitted, and these.
MIN_EXPLAINED, PARTS = 0.35, 10
# The same columns at other times explain nothing but by chance: what they do is taken off.
SHIFTS = (0.23, 0.37, 0.61)
MIN_MOVING = 0.5  # share of the rows in which a joint moves; at rest, dry friction takes any value
# A joint that leaves less than this alone has no reason of its own, and one that leaves so small a
# share of its squared error contradicts others.
MIN_OWN, MAX_OWN_SHARE = 0.04, 0.5
# Share of the residual's power in the motion's band, over what white noise has there.
MIN_STRUCTURE, MOTION_SHARE = 1.5, 0.95
# Speed over what steps of the position hide from which its sign is known; error there, over that
# at all speeds, below which it is not the shape of friction that is wrong.
KNOWN, AT_KNOWN = 2.0, 0.5
# A residual comes from a short time that holds the last of these shares of its square where the
# other rows are fitted, each share in turn, which leaves so much less of them, at half the speed.
OF_SPAN, SHORT_SPAN, LEAST_OF_SPAN, SLOW = (0.5, 0.8, 0.95), 0.25, 2.0, 0.5
MIN_ROWS = 8  # over the number of columns
ROUNDING = 1e-10  # below which columns depend on others
# Ratios of a joint and another one at which a motor may turn that has friction at both.
RATIOS = ((0.0, 1.0), (1.0, 1.0), (1.0, -1.0), (1.0, 2.0), (1.0, -2.0), (2.0, 1.0), (2.0, -1.0))
MEANS = (3, 5, 9, 17)  # rows whose mean shows what filters without a delay take off
STRIBECK_SPEED = 0.1  # speed at which friction is no longer that of standstill [rad/s or m/s]


def data_warnings(
    robot: Robot, base: BaseParameters, samples: Samples, systems: Sequence[Rows],
    estimate: Estimate, whole: FittedModel | None = None,
) -> list[Finding]:  # fmt: skip
    """
    Check what the fit took for granted: limits, signs, columns and units of efforts, gravity.

    Then whether scale, limits and dynamics stayed the same, and what the residuals look like.
    Samples are those of the first system, the first part of the recording that is in memory;
    `whole` is the model with what is shrunk, whose friction may change as well.
    """
    beyond, count = limit_warnings(robot, samples.q), len(base.columns)
    fits = all(system.W.shape[2] == count for system in systems) and len(estimate.value) == count
    if not fits or isinstance(robot, ElasticRobot):
        return beyond
    rows = trial_rows(systems)
    if unsigned := magnitude_warnings(robot, base, samples, rows):  # no gain puts them right
        return [*beyond, *unsigned]
    if estimate.residual.max() > LARGE_RESIDUAL:
        # What is recorded of the motion is wrong: nothing else can be told.
        if unlike := standstill_warnings(robot, base, samples, systems[0]):
            return [*beyond, *unlike]
    causes = [] if rows is None else find_causes(robot, base, samples, rows)
    measured = None if whole is None else trial_rows(whole.systems)
    if rows and measured and np.sqrt(np.mean(estimate.residual**2)) > LARGE:
        # Of efforts that no model explains, what is shrunk may take what a remedy would explain.
        others = find_causes(robot, base, samples, dataclasses.replace(rows, Y=measured.Y))
        causes = max(causes, others, key=lambda c: max((x.gain for x in c), default=0.0))
    found = [*beyond, *(cause.finding for cause in causes)]
    if any(cause.name in EVERYTHING for cause in causes):
        return found
    known = _joints(found)
    # Of efforts that are no torques, no size is plausible.
    torques = all(cause.name != EFFORT_UNIT for cause in causes)
    sizes = scale_warnings(robot, base, samples, estimate) if torques else []
    sizes += saturation_warnings(robot, samples, systems[0])
    sizes = [each for each in sizes if not known.issuperset(each.joints)]
    scaled = _joints(sizes)
    whole = whole or FittedModel(robot, base, systems, estimate.value)
    steady = [t for t in joint_torques(whole) if robot.joints[t.joint] not in scaled]
    changes = stationarity_warnings(whole.robot, steady)
    known |= scaled | _joints(changes)
    jumps = dict[int, Finding]()
    for j in np.flatnonzero(estimate.residual > LARGE_RESIDUAL).tolist():
        if rows and robot.joints[j] not in known and (jump := friction_jump(robot, base, rows, j)):
            jumps[j] = jump
    residual = estimate.residual
    left = residual_warnings(robot, samples, systems[0], estimate.value, residual, known, jumps)
    return [*found, *sizes, *changes, *left]


def _joints(findings: Iterable[Finding]) -> set[str]:
    return {*chain.from_iterable(each.joints for each in findings)}


def residual_warnings(
    robot: Robot, samples: Samples, system: Rows, value: Array, residual: Array, known: set[str],
    jumps: Mapping[int, Finding],
) -> list[Finding]:  # fmt: skip
    """
    Name joints that are not `known`, of base (b,) and residuals (n,), with likely reasons.

    A jump of a joint's friction is told unless another reason leaves less.
    """
    keep = max(1, samples.decimation)
    fits = len(samples.time[::keep]) == system.Y.shape[1]
    if fits:  # residuals of a joint that mostly stands are those of the rows in motion
        moving = samples.moving[::keep].T & system.valid
        stands = moving.sum(axis=1) < MIN_MOVING * system.valid.sum(axis=1)
        both = np.where(moving, np.stack([system.Y - system.predict(value), system.Y]), 0.0)
        error, size = np.linalg.norm(both, axis=2)
        residual = np.where(stands, error / np.maximum(size, 1e-300), residual)
    joints = enumerate(robot.joints)
    some = [j for j, name in joints if residual[j] > MIN_OWN and name not in known]
    told, alone = dict(jumps), dict[int, _Remainder]()
    for j in some if fits else ():
        alone[j] = rest = _Remainder(robot, samples, system, value, j, residual[j])
        reason = (None if j in jumps else rest.span()) or rest.reason()
        if reason is not None and (j not in jumps or _left(reason) <= _left(jumps[j])):
            told[j] = reason
    # What is wrong with one joint spoils the fit of others, which share parameters. That it hardly
    # moves is told: at rest dry friction takes any value.
    hardly, found = samples.moving.mean(axis=0) < HARDLY_MOVED, list[Finding]()
    for j in sorted({*told, *some}, key=lambda j: (residual[j] > NOTEWORTHY, j)):
        spoilt = j in alone and alone[j].is_spoilt
        if j in told:
            found.append(told[j])
        elif residual[j] > (NOTEWORTHY if spoilt else LARGE):
            if not hardly[j] and not (spoilt and (told or known)):
                values = {'residual': residual[j], 'alone': alone[j].size if spoilt else None}
                found.append(finding('unexplained_effort', [robot.joints[j]], **values))
    return found


def _left(reason: Finding) -> float:
    """Return the share of the residual that a reason leaves on rows that were not fitted."""
    values = reason.values
    return float(values['after'] / values['before']) if 'after' in values else 1.0


class _Remainder:
    """
    The part of a joint's residual that its own columns W (N, c) cannot explain, `own` (N,).

    Its relative residual is what the fit of all joints leaves.
    """

    def __init__(
        self, robot: Robot, samples: Samples, system: Rows, value: Array, joint: int,
        residual: float,
    ):  # fmt: skip
        self._robot, self._samples, self._system, self._joint = robot, samples, system, joint
        W, self._y = system.rows(joint)
        self._used, self._predicted = system.valid[joint], system.W[joint] @ value
        self._error, self._residual = self._y - self._predicted[self._used], residual
        self._W = W[:, np.abs(W).max(axis=0, initial=0.0) > 0.0]
        enough = len(self._y) >= MIN_ROWS * self._W.shape[1]
        self._project = project_out(self._W, ROUNDING)
        self._own = self._project(self._error) if enough else self._error
        self.size = rms(self._own) / max(rms(self._y), 1e-300)  # residual of the joint alone
        # Whether that is far less than what the fit of all joints leaves.
        self.is_spoilt = rms(self._own) ** 2 < MAX_OWN_SHARE * rms(self._error) ** 2

    def _finding(self, name: str, **values: Any) -> Finding:
        return finding(name, [self._robot.joints[self._joint]], residual=self._residual, **values)

    def reason(self) -> Finding | None:
        """Return what would explain most of what is left, None where it looks like noise."""
        samples, used, j = self._samples, self._used, self._joint
        stands = samples.moving[samples.valid[:, j], j].mean() < MIN_MOVING
        if stands or self._residual <= NOTEWORTHY or self.size < MIN_OWN:
            return None
        shares = [
            (self._explained(columns[used]), name, columns[used], other)
            for name, columns, other in self._reasons()
        ]
        share, name, columns, other = max(shares, key=lambda each: each[0])
        shifted = (np.roll(columns, round(x * len(columns)), axis=0) for x in SHIFTS)
        if share - max(0.0, *map(self._explained, shifted)) >= MIN_EXPLAINED:
            hidden = 0.0 if samples.hidden is None else float(samples.hidden[j])
            if name == 'unexplained_friction' and hidden:
                dq = decimate(samples.dq[:, j][None], samples.decimation)[0]
                known = np.abs(dq[used]) > KNOWN * hidden
                own = project_out(self._W[known], ROUNDING)(self._own[known])
                few = known.sum() < MIN_ROWS * self._W.shape[1]
                if few or rms(own) < AT_KNOWN * rms(self._own):
                    return self._finding('unexplained_steps', speed=hidden)
            figures = {'before': self.size, 'after': self.size * np.sqrt(1.0 - share)}
            return self._finding(name, share=share, **figures, other=other)
        error = np.zeros(len(used))
        error[used] = self._own
        if self.size < WITHOUT_REASON or not _is_structured(error, self._predicted, self._system):
            return None
        return self._finding('unexplained_motion')

    def span(self) -> Finding | None:
        """Return the short time that the residual comes from, None where there is none."""
        W, y, error, dq = self._W, self._y, self._error, self._system.dq
        if dq is None:
            return None
        time, start, stop = self._system.time[self._used], 0.0, 0.0
        for part in OF_SPAN:
            start, stop = _densest(time, error, part)
            rest = (time < start) | (time > stop)
            short = stop - start < SHORT_SPAN * (time[-1] - time[0])
            if not short or rest.sum() < MIN_ROWS * W.shape[1]:
                return None
            error = y - W @ scaled_least_squares(W[rest], y[rest], ROUNDING)
        speed, after = dq[self._used, self._joint], rms(error[rest]) / rms(y[rest])
        slow = rms(speed[rest]) < SLOW * rms(speed[~rest])
        if slow or self.size < max(MIN_OWN, LEAST_OF_SPAN * after):
            return None
        values = {'part': OF_SPAN[-1], 'start': start, 'stop': stop}
        return self._finding('unexplained_span', **values, before=self.size, after=after)

    def _explained(self, columns: Array) -> float:
        """Return the share that columns explain on parts that they were not fitted to."""
        size = np.linalg.norm(columns, axis=0)
        columns = columns[:, size > 0.0] / size[size > 0.0]
        rest = self._project(np.column_stack([columns, self._own]))
        F, e = rest[:, :-1], rest[:, -1]
        part = np.arange(len(e)) * PARTS // len(e) % 2
        left = 0.0
        for judged in (part == 1, part == 0):
            gains = np.linalg.lstsq(F[~judged], e[~judged], rcond=1e-6)[0]
            left += float(np.sum((e[judged] - F[judged] @ gains) ** 2))
        return 1.0 - left / max(float(self._own @ self._own), 1e-300) if columns.size else 0.0

    def _reasons(self) -> Iterator[tuple[str, Array, str | None]]:
        """Yield what may be missing: its finding's name, columns (N, c), another joint's name."""

        def rows(*columns: Array) -> Array:
            return decimate(np.stack(columns), self._samples.decimation).T

        robot, predicted, j = self._robot, self._predicted, self._joint
        q, dq, ddq = self._samples.q, self._samples.dq, self._samples.ddq
        away, speed, own = q[:, j] - q[:, j].mean(), dq[:, j], np.sign(dq[:, j])
        for i, other in enumerate(robot.joints):
            if i != j:
                signs = np.sign(dq[:, [j, i]] @ np.transpose(RATIOS))
                yield 'unexplained_coupling', rows(dq[:, i], ddq[:, i], *signs.T), other
        if not any(term.name == 'spring' for term in robot.friction[j]):
            yield 'unexplained_spring', rows(away, away**2), None
        shapes = [np.tanh(k * speed) for k in (150.0, 50.0, 15.0)]
        bump = own * np.exp(-((speed / STRIBECK_SPEED) ** 2))
        more = np.cbrt(speed), speed * np.abs(speed), np.abs(speed), np.abs(own)
        yield 'unexplained_friction', rows(*shapes, bump, *more), None
        step = float(np.median(np.diff(self._system.time)))
        yield 'unexplained_load_friction', np.abs(predicted)[:, None] * rows(own), None
        yield 'unexplained_lag', np.gradient(predicted, step)[:, None], None
        means = [np.convolve(predicted, np.full(w, 1.0 / w), 'same') for w in MEANS]
        yield 'unexplained_smoothing', np.stack(means, axis=1) - predicted[:, None], None


def _densest(time: Array, error: Array, part: float) -> tuple[float, float]:
    """Return start and end of the shortest time that holds a part of a squared error (N,)."""
    before = np.concatenate([[0.0], np.cumsum(error**2)]) / max(float(error @ error), 1e-300)
    last = np.searchsorted(before, before[:-1] + part) - 1
    length = time[np.minimum(last, len(time) - 1)] - time
    first = int(np.argmin(np.where(last < len(time), length, np.inf)))
    return float(time[first]), float(time[min(last[first], len(time) - 1)])


def _is_structured(error: Array, predicted: Array, system: Rows) -> bool:
    """Tell whether an error (N,) lies in the motion's band more than white noise would."""
    power = [np.abs(np.fft.rfft(x - x.mean())) ** 2 for x in (error, predicted)]
    motion = 1 + int(power_edge(power[1], MOTION_SHARE))
    band = max(1, int(system.band * len(power[0])))
    share = float(power[0][:motion].sum() / max(power[0].sum(), 1e-300))
    return share > min(MIN_STRUCTURE * motion / band, 0.5 * (1.0 + motion / band))


# A factor or an offset is the reason when without it the squared error falls to a quarter, on
# blocks of time that it was not fitted to; factors nearer to 1 than this are none.
LEAST, BLOCKS, MIN_DEVIATION = 4.0, 8, 0.05


def prediction_warnings(validation: Validation) -> list[Finding]:
    """
    Name the joints whose efforts are predicted badly in motion, with what explains it.

    That is a factor on the prediction and an offset, fitted to all blocks but one, in turn.
    """
    warnings = []
    for j, joint in enumerate(validation.joints):
        rows = validation.valid[:, j]
        rows = rows if rows.any() else np.ones_like(rows)
        measured, predicted = validation.measured[rows, j], validation.predicted[rows, j]
        signal = max(float(np.linalg.norm(measured)), 1e-300)
        residual = float(np.linalg.norm(measured - predicted) / signal)
        if residual <= NOTEWORTHY:
            continue
        both = np.column_stack([predicted, np.ones(predicted.size)])
        blocks = np.arange(BLOCKS)[:, None] == np.arange(len(measured)) * BLOCKS // len(measured)
        trials = of_one_joint(both, measured, blocks)
        trial = trials.compare(blocks @ (measured - predicted)[:, None] ** 2, trials.recorded)
        name, values = 'effort_not_predicted', dict[str, Any]()
        if trial.is_better(LEAST):
            factor, offset = np.linalg.lstsq(both, measured, rcond=None)[0].tolist()
            name = 'effort_scaled' if abs(factor - 1.0) > MIN_DEVIATION else 'effort_shifted'
            values = {'factor': factor, 'offset': offset}
            values |= trial.values(joint, 'factor and offset')
        warnings.append(finding(name, [joint], residual=residual, **values))
    return warnings
