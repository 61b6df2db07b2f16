"""
Logs of robots that nobody tuned anything to: the default beside a plain baseline.

    python benchmarks/foreign.py FOLDER [--only NAME …] [--swap] [--short] [--check] [--json FILE]

FOLDER has one folder a robot: `<robot>/*.urdf`, the recording `identify*` (whatever `robotid
identify` reads) and, where there is another motion of the robot, `validate*`; without it the first
60 % of `identify` are identified, the rest validates. A `robot.yaml` there is given with -c. With
--swap the second part is identified too, and the first one validates; with --short parts of each
are identified instead, halves and quarters.

The baseline is what a newcomer writes: positions and torques on an even grid, low-passed by a
4th-order zero-phase Butterworth filter (at ten times the frequency below which 99 % of the power
of the positions lies, at least 5 Hz, at most a fifth of the rate), central differences, ten
parameters a link, rotor inertia, viscous and Coulomb friction, an offset, base columns by
rank-revealing QR, ordinary least squares on all measured rows. The default is `robotid identify`
with nothing configured. Both are judged alike: their parameters on the baseline's signals,
‖τ − Wχ‖/‖τ‖ [%] of all joints together, the ratio on motion that was not fitted.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
import json
import os
from pathlib import Path
import sys
import time
from typing import Any

# Before NumPy is imported: threads that wait for each other count as CPU.
os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')

from common import verdict
import numpy as np
import pinocchio
from scipy.linalg import qr
from scipy.signal import butter, sosfiltfilt

from robotid_ros.core.findings import render
from robotid_ros.core.model.dynamics import regressor
from robotid_ros.core.pipeline.identification import Identification, identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.identification_input import Input, LogPart, open_input, split

# Of the low-pass: least [Hz], times the motion's, this share of the power, largest share of rate.
CUTOFF, TIMES, POWER, SHARE = 5.0, 10.0, 0.99, 0.2
FIRST = 0.6  # of a recording is identified where there is no other one
MOVING = 0.02  # a joint moves that is faster [rad/s]
ROWS = 20_000  # of the baseline, evenly spread
INDEPENDENT = 1e-5  # a column adds this much to those before it, relative to the largest
# Ratios default/baseline on validation, all rows: one in so many may be above NOTICED, none above
# the largest; the largest median and geometric mean.
NOTICED = 1.02
# Of joints whose baseline leaves this share of all torque: nearly all are below, all below.
COUNTED, NEARLY_ALL = 0.02, 0.95


@dataclass(frozen=True)
class Bounds:
    """Largest ratios of a set of fits."""

    one_in: int
    largest: float
    median: float
    mean: float
    joints: tuple[float, float]


LONG = Bounds(14, 1.10, 0.86, 0.80, (1.05, 1.25))
SHORT = Bounds(10, 1.6, np.inf, 0.75, (np.inf, np.inf))
# Residual of the consistent parameters over that of the base parameters, on motion not fitted, and
# of how many robots it may be larger, whose finding names the link.
CONSISTENT, EXCEPTIONS = 1.10, 2
# Shares of a part that are identified instead of all of it.
SHARES = ((0.0, 0.5), (0.5, 1.0), (0.0, 0.25), (0.5, 0.75))


@dataclass(frozen=True)
class Signals:
    """
    A motion as the baseline sees it, (N, n) every `step` [s]; the rows `kept` count.

    Friction may remember its path, so that the rows between are there too.
    """

    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    tau: np.ndarray
    kept: np.ndarray
    step: float

    def squares(self, predicted: np.ndarray, moving: bool = False) -> np.ndarray:
        """Return ‖τ − predicted‖² and ‖τ‖² of each joint (2, n), where it moves if so wanted."""
        kept = self.kept
        rows = np.abs(self.dq[kept]) > (MOVING if moving else -1.0)
        tau, error = self.tau[kept], (self.tau - predicted)[kept]
        return np.array([np.sum(np.where(rows, x, 0.0) ** 2, axis=0) for x in (error, tau)])


@dataclass(frozen=True)
class Log:
    """Files of one robot."""

    name: str
    urdf: Path
    bag: Path
    validation: Path | None
    configuration: str | None

    def open(self) -> tuple[Input, Recording, Recording]:
        """Open the session; read what to identify on and what to validate on."""
        session = open_input([self.bag], self.configuration, Path(self.urdf).read_text())
        first = session.recording
        if self.validation is None:
            return session, *split(first, LogPart(0.0, FIRST, fraction=True))
        joints = session.robot.recorded_joints
        return session, first, open_recording(self.validation, joints, options=session.options)


def logs(folder: Path, only: Sequence[str]) -> Iterator[Log]:
    """Find the robots of a folder."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        names = {'identify': None, 'validate': None}
        for path in sorted(p for p in place.iterdir() if p.suffix not in ('.urdf', '.yaml')):
            for name in names:
                names[name] = path if path.name.startswith(name) else names[name]
        urdfs = sorted(place.glob('*.urdf'))
        given = next(map(str, place.glob('robot.yaml')), None)
        if urdfs and names['identify'] and (not only or place.name in only):
            yield Log(place.name, urdfs[0], names['identify'], names['validate'], given)


class Baseline:
    """The plain model of a robot: Pinocchio's regressor and simple friction."""

    def __init__(self, urdf: Path, recording: Recording, moving: Sequence[str]):
        whole = pinocchio.buildModelFromUrdf(str(urdf))
        place, locked = np.zeros(whole.nv), []
        for joint, name in zip(whole.joints[1:], whole.names[1:], strict=True):
            if name in moving:
                continue
            known = name in recording.joints
            q = recording.position[:, recording.joints.index(name)] if known else np.zeros(1)
            locked.append(joint.id)
            place[joint.idx_v] = np.median(q)
        place = pinocchio.integrate(whole, pinocchio.neutral(whole), place)
        self.model = pinocchio.buildReducedModel(whole, locked, place)
        self.joints = tuple(self.model.names[1:])
        n = len(self.joints)
        self.columns = np.arange(14 * n)
        q, dq, ddq = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, 100 * n + 100, n))
        W = self.matrix(q, dq, ddq).reshape(-1, 14 * n)
        size = np.linalg.norm(W, axis=0)
        size[size < INDEPENDENT * size.max()] = np.inf
        _, R, order = qr(W / size, mode='economic', pivoting=True)
        depth = np.abs(np.diag(R))
        self.columns = np.sort(order[: len(depth)][depth > INDEPENDENT * depth[0]])

    def matrix(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Return the base columns (N, n, b)."""
        n, model = len(self.joints), self.model
        W = np.zeros((len(q), n, 14 * n))
        data, zero = model.createData(), pinocchio.neutral(model)
        for k, (place, *rates) in enumerate(zip(q, dq, ddq, strict=True)):
            here = pinocchio.integrate(model, zero, place)
            W[k, :, : 10 * n] = pinocchio.computeJointTorqueRegressor(model, data, here, *rates)
        for j in range(n):
            terms = (ddq[:, j], dq[:, j], np.sign(dq[:, j]), np.ones(len(q)))
            W[:, j, 10 * n + 4 * j : 10 * n + 4 * j + 4] = np.column_stack(terms)
        return W[:, :, self.columns]

    def signals(self, recording: Recording) -> Signals:
        """Low-pass and differentiate a recording; keep the rows beside a stamp."""
        recording = recording.select(self.joints)
        stamps, rows = np.unique(recording.time, return_index=True)
        step = min(np.ptp(stamps) / (len(stamps) - 1), max(np.median(np.diff(stamps)), 1e-4))
        grid = np.arange(stamps[0], stamps[-1], step)
        position = np.unwrap(recording.position[rows], axis=0)
        even = [
            np.column_stack([np.interp(grid, stamps, column) for column in x.T])
            for x in (position, recording.effort[rows])
        ]
        window = np.hanning(len(grid))[:, None] * (even[0] - even[0].mean(axis=0))
        power = np.cumsum(np.abs(np.fft.rfft(window, axis=0)) ** 2, axis=0)
        motion = np.max(np.sum(power < POWER * power[-1], axis=0)) / (len(grid) * step)
        cutoff = min(max(CUTOFF, TIMES * motion), SHARE / step)
        sections = butter(4, cutoff, fs=1.0 / step, output='sos')
        pad = min(len(grid) - 1, int(3.0 / cutoff / step))
        q, tau = (sosfiltfilt(sections, x, axis=0, padlen=pad) for x in even)
        dq = np.gradient(q, step, axis=0)
        ddq = np.gradient(dq, step, axis=0)
        index = np.rint(np.interp(grid, stamps, np.arange(len(stamps)))).astype(int)
        measured = np.flatnonzero(np.abs(grid - stamps[index]) <= step)
        return Signals(q, dq, ddq, tau, measured[:: max(1, len(grid) // ROWS)], step)

    def fitted(self, signals: Sequence[Signals]) -> list[np.ndarray]:
        """Fit the first signals by ordinary least squares; return the torques (N, n) of all."""
        parts = [(x.q[x.kept], x.dq[x.kept], x.ddq[x.kept]) for x in signals]
        matrices = [self.matrix(*part) for part in parts]
        W, tau = matrices[0].reshape(-1, len(self.columns)), signals[0].tau[signals[0].kept]
        size = np.maximum(np.linalg.norm(W, axis=0), 1e-12)
        chi = np.linalg.lstsq(W / size, tau.ravel(), rcond=None)[0] / size
        result = [np.full_like(x.tau, np.nan) for x in signals]
        for predicted, part, W in zip(result, signals, matrices, strict=True):
            predicted[part.kept] = W @ chi
        return result


def predicted(found: Identification, signals: Signals, joints: Sequence[str]) -> np.ndarray:
    """Return the torques (N, n) of what was identified on the baseline's signals."""
    order = [joints.index(joint) for joint in found.robot.joints]
    motion = (x[:, order] for x in (signals.q, signals.dq, signals.ddq))
    W = regressor(found.robot, *motion, successive=True)
    pairs = (W[:, :, found.base.columns] @ found.estimate.value), W @ found.standard.value
    # What was found of delays is part of the model: efforts at a stamp belong to earlier motion.
    delay = np.zeros(len(order)) if found.quality is None else found.quality.of_joints('delay')
    time = np.arange(W.shape[1]) * signals.step
    late = [[np.interp(time - d, time, y) for d, y in zip(delay, x, strict=True)] for x in pairs]
    return np.swapaxes(late, 1, 2)[:, :, np.argsort(order)]


def fits(
    parts: tuple[Recording, Recording], swap: bool, short: bool
) -> Iterator[tuple[str, Recording, Recording]]:
    """Yield a label, what is identified and what is predicted."""
    pairs = [('', *parts), ('/swap', *parts[::-1])][: 1 + swap]
    for label, first, other in pairs:
        if not short:
            yield label, first, other
            continue
        start, length = float(first.time[0]), float(np.ptp(first.time))
        for share in SHARES:
            bounds = (start + x * length for x in share)
            yield f'{label}/{share[0]:g}-{share[1]:g}', first.between(*bounds), other


def run(log: Log, swap: bool, short: bool) -> list[dict[str, Any]]:
    """Identify a log by both; print and return the figures, or what stopped it."""
    try:
        session, *parts = log.open()
        named = list(fits((parts[0], parts[1]), swap, short))
    except (RobotIdError, ArithmeticError, LookupError, ValueError) as error:
        return [_failed({'log': log.name}, error)]
    rows = []
    for label, first, other in named:
        row: dict[str, Any] = {'log': log.name + label}
        try:
            _compare(log, session, first, other, row)
        except (RobotIdError, ArithmeticError, LookupError, ValueError) as error:
            _failed(row, error)
        rows.append(row)
    return rows


def _failed(row: dict[str, Any], error: Exception) -> dict[str, Any]:
    row['failed'] = f'{type(error).__name__}: {error}'
    print(f'{row["log"]} failed: {row["failed"]}', flush=True)
    return row


def _compare(
    log: Log, session: Input, first: Recording, other: Recording, row: dict[str, Any]
) -> None:
    plain = Baseline(log.urdf, first, session.robot.joints)
    signals = [plain.signals(recording) for recording in (first, other)]
    squares = signals[1].squares(plain.fitted(signals)[1])
    start = time.process_time()
    found = identify(first, session.robot, session.configuration.identification, other)
    row['cpu'] = time.process_time() - start
    base, standard = (
        signals[1].squares(tau)[0] for tau in predicted(found, signals[1], plain.joints)
    )
    torque = squares[1].sum()
    row['baseline'], row['default'], row['standard'] = (
        100.0 * float(np.sqrt(x.sum() / torque)) for x in (squares[0], base, standard)
    )
    row['ratio'] = row['default'] / row['baseline']
    row['consistent'] = row['standard'] / row['default']
    row['joints'] = {
        joint: float(np.sqrt(ours / theirs))
        for joint, ours, theirs in zip(plain.joints, base, squares[0], strict=True)
        if theirs > COUNTED**2 * torque
    }
    obstacle = found.standard.obstacle
    row['obstacle'] = obstacle.joints[0] if obstacle else ''
    row['warnings'] = list(map(render, found.findings))
    joints = max(row['joints'].values(), default=0.0)
    print(
        f'{row["log"]:30s} baseline {row["baseline"]:7.2f} %  default {row["default"]:7.2f} %  '
        f'ratio {row["ratio"]:.3f}  worst joint {joints:.3f}  consistent {row["consistent"]:.3f}  '
        f'CPU {row["cpu"]:.1f} s',
        flush=True,
    )


def missed(rows: list[dict[str, Any]], bounds: Bounds) -> list[str]:
    """Tell which bounds are missed."""
    found = [f'{row["log"]}: {row["failed"]}' for row in rows if 'failed' in row]
    rows = [row for row in rows if 'ratio' in row]
    ratios = np.array([row['ratio'] for row in rows])
    if not len(ratios):
        return [*found, 'nothing was identified']
    joints = np.array([x for row in rows for x in row['joints'].values()] or [0.0])
    mean, share = np.exp(np.log(ratios).mean()), np.mean(joints <= bounds.joints[0])
    noticed, allowed = int(np.sum(ratios > NOTICED)), -(-len(ratios) // bounds.one_in)
    thin = [row['log'] for row in rows if not row['consistent'] <= CONSISTENT]
    print(
        f'{len(ratios)} fits: {noticed} above {NOTICED}, worst {ratios.max():.3f}, median '
        f'{np.median(ratios):.3f}, geometric mean {mean:.3f}, best {ratios.min():.3f}; '
        f'{len(joints)} joints: {100 * share:.0f} % up to {bounds.joints[0]:g}, worst '
        f'{joints.max():.3f}; consistent bodies worse than {CONSISTENT}: {len(thin)}'
    )
    checks = {
        f'{noticed} fits are above {NOTICED}, at most {allowed} may be': noticed <= allowed,
        f'worst {ratios.max():.3f} exceeds {bounds.largest}': ratios.max() <= bounds.largest,
        f'median {np.median(ratios):.3f} exceeds {bounds.median}': (
            np.median(ratios) <= bounds.median
        ),
        f'geometric mean {mean:.3f} exceeds {bounds.mean}': mean <= bounds.mean,
        f'{100 * share:.0f} % of joints are up to {bounds.joints[0]}': share >= NEARLY_ALL,
        f'worst joint {joints.max():.3f} exceeds {bounds.joints[1]}': (
            joints.max() <= bounds.joints[1]
        ),
    }
    if bounds is LONG:
        unexplained = [r['log'] for r in rows if r['log'] in thin and not r['obstacle']]
        robots = {name.split('/')[0] for name in thin}
        checks[f'consistent bodies predict worse on {", ".join(thin)}'] = (
            not unexplained and len(robots) <= EXCEPTIONS
        )
    return [*found, *(text for text, kept in checks.items() if not kept)]


def main() -> int:
    """Run every log, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('folder', type=Path)
    parser.add_argument('--only', nargs='+', default=(), help='these robots')
    parser.add_argument('--swap', action='store_true', help='identify the other part too')
    parser.add_argument('--short', action='store_true', help='identify halves and quarters')
    parser.add_argument('--check', action='store_true', help='fail where a bound is missed')
    parser.add_argument('--json', type=Path, help='write the figures to this file')
    given = parser.parse_args()
    rows = [r for x in logs(given.folder, given.only) for r in run(x, given.swap, given.short)]
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return verdict(missed(rows, SHORT if given.short else LONG), given.check)


if __name__ == '__main__':
    sys.exit(main())
