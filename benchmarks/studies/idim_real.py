"""
The TX-40 and the UR10 from their published logs, beside what is known of them.

    python benchmarks/studies/idim_real.py [FOLDER] [--check]

Printed: residuals of both parts (all rows, and rows where joints move), a split of 80 to 20,
friction and rotor inertia of the literature, essential parameters, and tables II and III of
Gautier and Venture for the TX-40, as configured and as they identified it.
"""

from dataclasses import dataclass, replace
from pathlib import Path
import sys
import tempfile

import _benchmarks  # noqa: F401
from common import command_line, configured, verdict
from datasets import Case, CASES
import numpy as np
from tx40_literature import drive_parameters, essential_parameters, tables

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.pipeline.identification import Identification, identify
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.files.bags import open_recording

MOVING = 0.02  # a joint moves that is faster [rad/s]
# Largest residual [%] of both parts: all rows, moving rows; and of figaroh, held out.
BOUNDS = {'tx40': ((5.9, 8.8), (5.4, 8.2)), 'ur10': ((5.8, 6.9), (4.9, 6.3))}
FIGAROH = 24.8
SPLIT = 0.8
RANK = 61  # of the TX-40: 58 of Gautier and Venture, and Ia56, Fv56, Fc56 of the wrist


@dataclass(frozen=True)
class Log:
    """A recording, its robot, and how its signals are prepared."""

    case: Case
    robot: Robot
    recording: Recording
    settings: IdentificationSettings

    def parts(self, share: float | None = None) -> tuple[Recording, Recording]:
        """Split the motion where the case says, or after a share of it."""
        start, middle, end = self.case.split
        end = min(end, float(self.recording.time[-1]))
        middle = middle if share is None else start + share * (end - start)
        return self.recording.between(start, middle), self.recording.between(middle, end)


def open_log(case: Case, folder: Path, output: Path) -> Log:
    """Read a log, with the robot's own configuration."""
    configuration, robot = configured(case.name)
    recording = open_recording(case.bag(folder, output), robot.joints)
    return Log(case, robot, recording, configuration.identification)


def speed(log: Log, part: Recording, time: np.ndarray) -> np.ndarray:
    """Return the joints' speeds (N, n) at some stamps."""
    samples = prepare(part, log.robot, log.settings.signals)
    return np.column_stack([np.interp(time, samples.time, column) for column in samples.dq.T])


def residuals(log: Log, label: str) -> tuple[Identification, list[str]]:
    """Identify on the first part; print residuals of both; return what is too large."""
    parts = log.parts()
    found = identify(parts[0], log.robot, log.settings, parts[1])
    name, short = log.case.name, []
    assert found.validation is not None
    print(f'{name}, {label}: {found.base.rank} base parameters, rows {found.estimate.rows.sum()}')
    sides = ('identified', found.fitted, parts[0]), ('validated', found.validation, parts[1])
    for k, (side, shown, part) in enumerate(sides):
        moving = np.abs(speed(log, part, shown.time)) > MOVING
        moves = replace(shown, valid=moving).total_residual(moving=True)
        print(
            f'  {side:10s} by joint',
            *(f'{100 * r:5.1f}' for r in shown.relative_residual),
            '%;',
            end='',
        )
        for rows, value, bounds in zip(
            ('all rows', 'moving rows'), (shown.total_residual(), moves), BOUNDS[name], strict=True
        ):
            print(f' {rows} {100 * value:.2f} % (at most {bounds[k]})', end='')
            if not 100 * value <= bounds[k]:
                short.append(f'{name}, {label}: {side}, {rows}: {100 * value:.2f} %')
        print()
    return found, short


def most(log: Log) -> list[str]:
    """Identify on 80 % of the motion, validate on the rest."""
    first, rest = log.parts(SPLIT)
    found = identify(first, log.robot, log.settings, rest)
    assert found.validation is not None
    held = 100.0 * found.validation.total_residual()
    peer = f', figaroh {FIGAROH} %' if log.case.name == 'tx40' else ''
    print(f'  80/20 split: identified {100 * found.fitted.total_residual():.2f} %', end='')
    print(f', held out {held:.2f} %{peer}')
    return ['the 80/20 split is no better than figaroh'] if peer and held >= FIGAROH else []


def as_published(log: Log, recording: Recording) -> Identification:
    """
    Identify as the literature did: WLS, nothing chosen, and no row beside standstill left out.

    Without those rows sign(dq6) hardly differs from sign(dq5 + dq6).
    """
    signals = replace(log.settings.signals, guard=0.0)
    settings = replace(
        log.settings, method='wls', model='plain', covariance='residuals', signals=signals
    )
    return identify(recording, log.robot, settings)


def main() -> int:
    """Identify both, compare."""
    parser = command_line(__doc__, datasets=True)
    arguments = parser.parse_args()
    short: list[str] = []
    with tempfile.TemporaryDirectory() as output:
        for case in CASES:
            if case.name not in BOUNDS:
                continue
            log = open_log(case, arguments.folder, Path(output))
            found, missed = residuals(log, 'as configured')
            short += missed + most(log)
            plain = replace(log.settings, signals=SignalSettings(guard=log.settings.signals.guard))
            residuals(replace(log, settings=plain), 'signals by themselves')
            if case.name == 'tx40':
                short += [] if found.base.rank == RANK else [f'rank {found.base.rank}']
                start, _, end = case.split
                whole = log.recording.between(start, end)
                both = identify(whole, log.robot, log.settings), as_published(log, whole)
                short += drive_parameters(*both) + essential_parameters(found) + tables(*both)
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
