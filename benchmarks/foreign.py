"""
Logs of robots that nobody tuned anything to: the default beside a plain baseline.

    python benchmarks/foreign.py FOLDER [--only NAME …] [--check] [--json FILE]

FOLDER has one folder a robot: `<robot>/*.urdf`, the recording `identify` (a rosbag2 folder, .mcap
or .db3 file) and, where there is another one of the robot, `validate`; without it the first 60 %
of `identify` are identified, the rest validates. A `robot.yaml` there is given with -c.

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
from pathlib import Path
from statistics import median
import sys
import time
from typing import Any

import numpy as np
import pinocchio
from scipy.linalg import qr
from scipy.signal import butter, sosfiltfilt

from robotid_ros.core.model.dynamics import regressor
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.results import Identification
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.files.identification_input import open_input, Part, split

# Of the low-pass: least [Hz], times the motion's, this share of the power, largest share of rate.
CUTOFF, TIMES, POWER, SHARE = 5.0, 10.0, 0.99, 0.2
FIRST = 0.6  # of a recording is identified where there is no other one
MOVING = 0.02  # a joint moves that is faster [rad/s]
TRAVEL = 1e-3  # a joint that travels less is locked where it stood [rad or m]
ROWS = 20_000  # of the baseline, evenly spread
INDEPENDENT = 1e-5  # a column adds this much to those before it, relative to the largest
# Largest ratio default/baseline on validation, all rows: of any log, in the median, of the best.
WORST, MEDIAN, BEST = 1.02, 0.93, 0.75


@dataclass(frozen=True)
class Signals:
    """Measured rows as the baseline sees them, (N, n)."""

    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray
    tau: np.ndarray

    def residual(self, predicted: np.ndarray, moving: bool = False) -> float:
        """Return ‖τ − predicted‖/‖τ‖ [%], of rows where the joint moves if so wanted."""
        rows = np.abs(self.dq) > (MOVING if moving else -1.0)
        error = np.linalg.norm((self.tau - predicted)[rows])
        return float(100.0 * error / np.linalg.norm(self.tau[rows]))


@dataclass(frozen=True)
class Log:
    """Files of one robot."""

    name: str
    urdf: Path
    bag: Path
    validation: Path | None
    configuration: str | None

    def parts(self) -> tuple[Any, Any]:
        """Read what to identify on and what to validate on."""
        first = open_recording(self.bag)
        if self.validation is None:
            return split(first, Part(0.0, FIRST, fraction=True))
        return first, open_recording(self.validation)


def logs(folder: Path, only: Sequence[str]) -> Iterator[Log]:
    """Find the robots of a folder."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = {p.stem: p for p in place.iterdir() if p.suffix not in ('.urdf', '.yaml')}
        urdfs = sorted(place.glob('*.urdf'))
        given = next(map(str, place.glob('robot.yaml')), None)
        if urdfs and 'identify' in files and (not only or place.name in only):
            yield Log(place.name, urdfs[0], files['identify'], files.get('validate'), given)


class Baseline:
    """The plain model of a robot: Pinocchio's regressor and simple friction."""

    def __init__(self, urdf: Path, recording: Recording):
        whole = pinocchio.buildModelFromUrdf(str(urdf))
        place, locked = np.zeros(whole.nv), []
        for joint, name in zip(whole.joints[1:], whole.names[1:], strict=True):
            known = name in recording.joints
            q = recording.position[:, recording.joints.index(name)] if known else np.zeros(1)
            if np.ptp(q) < TRAVEL:
                locked.append(joint.id)
                place[joint.idx_v] = np.median(q)
        place = pinocchio.integrate(whole, pinocchio.neutral(whole), place)
        self.model = pinocchio.buildReducedModel(whole, locked, place)
        self.joints = tuple(self.model.names[1:])
        n = len(self.joints)
        self.columns = np.arange(14 * n)
        q, dq, ddq = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, 100 * n + 100, n))
        W = self.matrix(Signals(q, dq, ddq, q)).reshape(-1, 14 * n)
        size = np.linalg.norm(W, axis=0)
        size[size < INDEPENDENT * size.max()] = np.inf
        _, R, order = qr(W / size, mode='economic', pivoting=True)
        depth = np.abs(np.diag(R))
        self.columns = np.sort(order[: len(depth)][depth > INDEPENDENT * depth[0]])

    def matrix(self, signals: Signals) -> np.ndarray:
        """Return the base columns (N, n, b)."""
        q, dq, ddq = signals.q, signals.dq, signals.ddq
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
        kept = measured[:: max(1, len(grid) // ROWS)]
        return Signals(q[kept], dq[kept], ddq[kept], tau[kept])

    def fitted(self, signals: list[Signals]) -> list[np.ndarray]:
        """Fit the first signals by ordinary least squares; return the torques (N, n) of all."""
        matrices = [self.matrix(part) for part in signals]
        W = matrices[0].reshape(-1, len(self.columns))
        size = np.maximum(np.linalg.norm(W, axis=0), 1e-12)
        chi = np.linalg.lstsq(W / size, signals[0].tau.ravel(), rcond=None)[0] / size
        return [W @ chi for W in matrices]


def predicted(found: Identification, signals: Signals, joints: Sequence[str]) -> np.ndarray:
    """Return the torques (N, n) of identified base parameters on the baseline's signals."""
    order = [joints.index(joint) for joint in found.robot.joints]
    motion = (x[:, order] for x in (signals.q, signals.dq, signals.ddq))
    W = regressor(found.robot, *motion, successive=True)[:, :, found.base.columns]
    return np.asarray((W @ found.estimate.value).T[:, np.argsort(order)])


def run(log: Log) -> dict[str, Any]:
    """Identify a log by both; print and return the figures, or what stopped it."""
    row: dict[str, Any] = {'log': log.name}
    print(log.name)
    try:
        _compare(log, row)
    except (RobotIdError, ArithmeticError, LookupError, ValueError) as error:
        row['failed'] = f'{type(error).__name__}: {error}'
        print(f'  failed: {row["failed"]}', flush=True)
    return row


def _compare(log: Log, row: dict[str, Any]) -> None:
    parts = log.parts()
    plain = Baseline(log.urdf, parts[0])
    signals = [plain.signals(recording) for recording in parts]
    row['baseline'] = _judged('baseline', signals, plain.fitted(signals))
    start = time.process_time()
    session = open_input([str(log.bag)], log.configuration, Path(log.urdf).read_text())
    found = identify(parts[0], session.robot, session.configuration.identification, parts[1])
    row['cpu'] = time.process_time() - start
    tau = [predicted(found, part, plain.joints) for part in signals]
    row['default'] = _judged('default', signals, tau)
    row['ratio'] = row['default']['validation'][0] / row['baseline']['validation'][0]
    row['own'] = [100.0 * v.total_residual() for v in (found.fitted, found.validation) if v]
    row['selection'] = found.selection.candidate.describe() if found.selection else 'nothing'
    row['warnings'] = list(found.warnings)
    print(f'  ratio {row["ratio"]:.3f}; own figures', *(f'{x:.2f}' for x in row['own']), end='')
    print(f'; CPU {row["cpu"]:.1f} s; chosen: {row["selection"]}')
    print(f'  {len(found.warnings)} warnings', *found.warnings[:3], sep='\n    ', flush=True)


def _judged(who: str, signals: list[Signals], tau: list[np.ndarray]) -> dict[str, list[float]]:
    found = {
        side: [part.residual(torque, moving) for moving in (False, True)]
        for side, part, torque in zip(('identification', 'validation'), signals, tau, strict=True)
    }
    cells = (f'{side} {x[0]:7.2f} (moving {x[1]:7.2f})' for side, x in found.items())
    print(f'  {who:9s}', *cells, sep='  ')
    return found


def short(rows: list[dict[str, Any]]) -> list[str]:
    """Tell which bounds are missed."""
    missed = [f'{row["log"]}: {row["failed"]}' for row in rows if 'failed' in row]
    ratios = {row['log']: row['ratio'] for row in rows if 'ratio' in row}
    missed += [f'{k}: {x:.3f} of the baseline' for k, x in ratios.items() if not x <= WORST]
    for name, of, bound in ('median', median, MEDIAN), ('best', min, BEST):
        found = of(ratios.values() or [np.inf])
        if not found <= bound:
            missed.append(f'{name}: {found:.3f} of the baseline, at most {bound}')
    return missed


def main() -> int:
    """Run every log, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('folder', type=Path)
    parser.add_argument('--only', nargs='+', default=(), help='these robots')
    parser.add_argument('--check', action='store_true', help='fail where a figure falls short')
    parser.add_argument('--json', type=Path, help='write the figures to this file')
    arguments = parser.parse_args()
    rows = [run(log) for log in logs(arguments.folder, arguments.only)]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    ratios = [row['ratio'] for row in rows if 'ratio' in row]
    if ratios:
        figures = f'worst {max(ratios):.3f}, median {median(ratios):.3f}, best {min(ratios):.3f}'
        print(f'{len(ratios)} logs, default over baseline: {figures}')
    missed = short(rows)
    print(*(missed or ['every figure is reached']), sep='\n')
    return 1 if arguments.check and (missed or not rows) else 0


if __name__ == '__main__':
    sys.exit(main())
