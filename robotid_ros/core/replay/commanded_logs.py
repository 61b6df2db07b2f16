"""Logs of commanded and measured positions: checked, and cut into windows to simulate."""

from collections.abc import Sequence
import dataclasses
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear
from scipy.signal import savgol_filter

from ...exceptions import RecordingError
from ..arrays import Array, rms
from ..finding_codes import finding
from ..findings import Finding
from ..model.dynamics import inverse_dynamics
from ..model.robot import Robot
from ..signals.recording import Recording
from .servo_simulation import BODIES, DELAY, ServoArm, Windows

# Length of a window [s]: far longer than a servo takes to settle, so that it tells gains and
# friction from its initial state, and short, so that many run side by side. Most of them.
WINDOW, MOST_WINDOWS = 1.0, 60
# Fewest samples of a window, fewest windows, usual steps beyond which there is a gap.
FEWEST_SAMPLES, FEWEST_WINDOWS, GAP = 12, 4, 2.5
# From so many commands a position on they are said to be faster.
FASTER = 1.5
# Span of the polynomials of third order that smooth positions [s], and their fewest samples.
SMOOTHING, FEWEST_SMOOTHED = 0.12, 7
# Delays that are tried by least squares, and those around the best that are simulated [s].
DELAYS, AROUND = np.arange(0.0, 0.2001, 0.005), (-8, -4, -2, 0, 2, 4)
# Commands that are the positions themselves, of this or one of so many next samples, relative to
# the travel of a joint; a factor between both that no servo leaves: an XL330 that bears half a
# kilogram at 0.1 m left 1.5.
COPY_TOLERANCE, COPY_SHIFTS, UNIT_FACTOR, UNIT_CORRELATION = 1e-9, 3, 3.0, 0.8
# Slower than this share of its fastest speed a joint's friction has no clear sign.
SLOW_SHARE = 0.02


class Smoothed(NamedTuple):
    """Positions of a log and their derivatives, (N, n) each, and which rows (N,) have them."""

    q: Array
    dq: Array
    ddq: Array
    valid: npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class CommandedLog:
    """What was commanded and measured; joints are in the model's order."""

    source: str  # of messages
    time: Array  # (N,) [s], growing
    q: Array  # (N, n) measured positions
    command_time: Array  # (K,) [s]
    command: Array  # (K, n) positions, held until the next

    @property
    def period(self) -> float:
        """Usual time between two samples [s]."""
        return float(np.median(np.diff(self.time)))

    def runs(self) -> list[npt.NDArray[np.intp]]:
        """Return the rows between gaps."""
        breaks = np.flatnonzero(np.diff(self.time) > GAP * self.period) + 1
        return np.split(np.arange(len(self.time)), breaks)

    def commanded(self, time: Array) -> Array:
        """Return the command that is held at times (N,), (N, n)."""
        row = np.searchsorted(self.command_time, time, side='right') - 1
        return self.command[np.maximum(row, 0)]

    @cached_property
    def smoothed(self) -> Smoothed:
        """Positions by polynomials (Savitzky and Golay 1964)."""
        period, shape = self.period, self.q.shape
        length = max(FEWEST_SMOOTHED, 2 * round(0.5 * SMOOTHING / period) + 1)
        q, dq, ddq = self.q.copy(), np.zeros(shape), np.zeros(shape)
        valid = np.zeros(shape[0], dtype=bool)
        for rows in self.runs():
            time = self.time[rows]
            grid = np.arange(time[0], time[-1] + 0.5 * period, period)
            if min(len(rows), len(grid)) < length or len(rows) < FEWEST_SAMPLES:
                continue
            even = np.column_stack([np.interp(grid, time, column) for column in self.q[rows].T])
            for order, target in enumerate((q, dq, ddq)):
                smoothed = savgol_filter(even, length, 3, deriv=order, delta=period, axis=0)
                target[rows] = np.column_stack([np.interp(time, grid, c) for c in smoothed.T])
            valid[rows] = True
        return Smoothed(q, dq, ddq, valid)


def commanded_log(recording: Recording, robot: Robot) -> CommandedLog:
    """Check a recording; a RecordingError where no commands that servos follow are in it."""
    joints = tuple(robot.joints[j] for j in robot.order)
    chosen, source = recording.select(joints), recording.source or 'the recording'
    reference = chosen.reference
    if reference is None or not np.isfinite(reference.q).any(axis=0).all():
        lacking = joints
        if reference is not None:
            columns = zip(joints, reference.q.T, strict=True)
            lacking = tuple(joint for joint, u in columns if not np.isfinite(u).any())
        raise RecordingError(
            f"'{source}' has no commanded positions of {', '.join(lacking)}: record what the "
            "servos are sent, name its columns with --columns 'command=…', or leave these joints "
            'out by --joints'
        )
    finite = np.isfinite(chosen.position).all(axis=1) & np.isfinite(chosen.time)
    time, rows = np.unique(chosen.time[finite], return_index=True)
    known = np.isfinite(reference.q).all(axis=1) & np.isfinite(reference.time)
    stamps, first = np.unique(reference.time[known], return_index=True)
    if len(time) < 2 * FEWEST_SAMPLES or not len(stamps):
        raise RecordingError(f"'{source}' has too few samples with positions and commands")
    q, command = chosen.position[finite][rows], reference.q[known][first]
    log = CommandedLog(source, time, q, stamps, command)
    for j, joint in enumerate(joints):
        _check_command(log, j, joint)
    return log


def _check_command(log: CommandedLog, j: int, joint: str) -> None:
    """Raise a RecordingError where commands of a joint cannot be what its servo follows."""
    q, u = log.q[:, j], log.commanded(log.time)[:, j]
    travel = float(np.ptp(q))
    copies = [
        k for k in range(COPY_SHIFTS + 1)
        if np.abs(u[: len(u) - k] - q[k:]).max() <= COPY_TOLERANCE * max(travel, 1e-6)
    ]  # fmt: skip
    if copies:
        which = f'{copies[0]} samples later' if copies[0] else 'at the same time'
        raise RecordingError(
            f"the commands of {joint} in '{log.source}' are its measured positions {which}: they "
            'say nothing of its servo; record what is sent to it'
        )
    if travel <= 0.0 or np.ptp(u) <= 0.0:
        return
    slope, correlation = float(np.polyfit(q, u, 1)[0]), float(np.corrcoef(q, u)[0, 1])
    factor = max(abs(slope), 1.0 / max(abs(slope), 1e-12))
    if abs(correlation) > UNIT_CORRELATION and (slope < 0.0 or factor > UNIT_FACTOR):
        raise RecordingError(
            f"the commands of {joint} in '{log.source}' are {slope:.4g} times its positions: give "
            "the unit of each, as in --units 'command=deg position=rad', or the commands that "
            'this joint is sent'
        )


def make_windows(logs: Sequence[CommandedLog]) -> Windows:
    """Cut logs into at most `MOST_WINDOWS` windows; a RecordingError if they are too short."""
    pieces: list[tuple[int, npt.NDArray[np.intp]]] = []
    for number, log in enumerate(logs):
        size = max(round(WINDOW / log.period) + 1, FEWEST_SAMPLES)
        for rows in log.runs():
            if log.smoothed.valid[rows].all():
                starts = range(0, len(rows) - size + 1, size - 1)
                pieces += [(number, rows[start : start + size]) for start in starts]
    if len(pieces) < FEWEST_WINDOWS:
        raise RecordingError(
            f"'{logs[0].source}' has {len(pieces)} stretches of {WINDOW:g} s without a gap: "
            f'record at least {FEWEST_WINDOWS}, better 30'
        )
    travel = np.array([
        np.ptp(np.vstack([logs[k].commanded(logs[k].time[rows]), logs[k].q[rows]]), axis=0)
        for k, rows in pieces
    ])  # fmt: skip
    activity = (travel / np.maximum(travel.max(axis=0), 1e-12)).sum(axis=1)
    chosen = np.sort(np.argsort(-activity, kind='stable')[:MOST_WINDOWS])
    pieces = [pieces[k] for k in chosen]
    longest, n, count = max(len(rows) for _, rows in pieces), logs[0].q.shape[1], len(pieces)
    time, valid = np.zeros((count, longest)), np.zeros((count, longest), dtype=bool)
    q, state = np.zeros((count, longest, n)), np.zeros((count, 2, n))
    for w, (number, rows) in enumerate(pieces):
        log, own = logs[number], slice(len(rows))
        time[w, own], valid[w, own] = log.time[rows] - log.time[rows[0]], True
        q[w, own] = log.q[rows]
        state[w] = log.smoothed.q[rows[0]], log.smoothed.dq[rows[0]]
    start = np.array([logs[k].time[rows[0]] for k, rows in pieces])
    of_log = np.array([k for k, _ in pieces])
    commands = tuple((log.command_time, log.command) for log in logs)
    return Windows(start, of_log, time, valid, q, state, commands)


def log_findings(logs: Sequence[CommandedLog]) -> list[Finding]:
    """Tell of gaps, with what is lost by them, and of commands more frequent than positions."""
    found = list[Finding]()
    runs = [(len(rows) * log.period, len(rows)) for log in logs for rows in log.runs()]
    if len(runs) > len(logs):
        lost = sum(count for seconds, count in runs if seconds < WINDOW)
        share = lost / sum(count for _, count in runs)
        found.append(finding('servo_gaps', count=len(runs) - len(logs), share=share))
    for log in logs:
        step = float(np.median(np.diff(log.command_time))) if len(log.command_time) > 1 else np.inf
        if 1.0 / step > FASTER / log.period:
            rates = {'commands': 1.0 / step, 'positions': 1.0 / log.period}
            return [*found, finding('commands_faster', **rates)]
    return found


def first_parameters(arm: ServoArm, logs: Sequence[CommandedLog]) -> list[Array]:
    """
    Return parameters (m,) to start from, of delays around the likeliest.

    `u(t − d) − q = (τ + Ia q̈ + k_d q̇ + F_c sign q̇)/k_p − b` is linear in the coefficients on its
    right for each delay d, with τ the torque of the bodies along the smoothed motion.
    """
    robot, order = arm.robot, arm.robot.order
    back, links, parts = np.argsort(order), robot.of_links(robot.prior), list[Array]()
    for q, dq, ddq, valid in (log.smoothed for log in logs):
        motion = q[:, back], dq[:, back], ddq[:, back]
        torque = inverse_dynamics(robot, links, *motion)[:, order]
        sign = np.sign(dq) * (np.abs(dq) > SLOW_SHARE * np.abs(dq).max(axis=0))
        parts.append(np.stack([torque, ddq, dq, sign, np.ones_like(dq)])[:, valid])
    columns = np.concatenate(parts, axis=1)
    sizes = np.maximum(np.sqrt((columns**2).mean(axis=1)), 1e-12)
    found, costs = list[dict[tuple[str, int], float]](), list[float]()
    symbols = ('stiffness', 'armature', 'damping', 'Fc', 'bias')
    for delay in DELAYS:
        values, cost = {(DELAY, -1): float(delay)}, 0.0
        left = [(log.commanded(log.time - delay) - log.smoothed.q)[log.smoothed.valid]
                for log in logs]  # fmt: skip
        for j, y in enumerate(np.concatenate(left).T):
            A, size = columns[:, :, j].T, sizes[:, j]
            # Where the bodies weigh next to nothing, they leave the scale of the torques open.
            least = np.array([1e-3 * rms(y) + 1e-12, 0.0, 1e-6, 0.0, -np.inf])
            coefficients = lsq_linear(A / size, y, (least, np.full(5, np.inf))).x / size
            cost += float(np.mean((A @ coefficients - y) ** 2)) / max(float(np.var(y)), 1e-18)
            stiffness = 1.0 / float(coefficients[0])
            terms = [stiffness, *(coefficients[1:4] * stiffness).tolist(), -coefficients[4]]
            values |= {(s, j): float(term) for s, term in zip(symbols, terms, strict=True)}
        found.append(values)
        costs.append(cost)
    near = [int(np.argmin(costs)) + k for k in AROUND]
    return [
        np.array([found[k].get(name, float(name[0] == BODIES)) for name in arm.names])
        for k in near
        if 0 <= k < len(DELAYS)
    ]
