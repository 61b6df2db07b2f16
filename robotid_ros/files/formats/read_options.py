"""What a user says of a log that it does not say itself, and which files hold logs."""

from dataclasses import dataclass
from pathlib import Path
import re
import shlex
from typing import Any

from ...exceptions import ConfigurationError

QUANTITIES = ('time', 'position', 'velocity', 'effort', 'command')
# Without these a log is of no use: by `ReadOptions.commands`.
NEEDED = {False: ('position', 'effort'), True: ('position', 'command')}
Assignments = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log; tables need more of it than bags."""

    urdf: str = ''  # text of the robot description: names, order, kinds and limits of the joints
    # To read and to identify; names of the columns where no description says them.
    joints: tuple[str, ...] = ()
    columns: Assignments = ()  # (quantity, pattern), see `column_selection.select`
    units: Assignments = ()  # (quantity, unit) such as ('position', 'deg'), ('effort', 'A*0.12')
    rate: float = 0.0  # of tables without stamps [Hz]; 0: they have stamps
    effort_topic: str = ''  # 'TOPIC' or 'TOPIC:FIELD' of a bag, to be taken for the efforts
    effort_kind: str | None = None  # instead of the configuration's `robot.effort_kind`
    commands: bool = False  # commanded positions are read in place of efforts
    # Motor, rad per normalised unit and unit at position 0, see `read_calibration`.
    calibration: tuple[tuple[str, float, float], ...] = ()


DEFAULTS = ReadOptions()


def parse_assignments(text: str, example: str) -> Assignments:
    """Read `position=… effort=…`, quotes around blanks; a ConfigurationError on other texts."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(
            f"'{text}' cannot be read ({str(error).lower()}): write '{example}'"
        ) from error
    pairs = [(key, value) for key, _, value in (word.partition('=') for word in words)]
    known = all(value and key in QUANTITIES for key, value in pairs)
    if not known or len(dict(pairs)) < len(pairs):
        raise ConfigurationError(
            f"'{text}' must name each of {', '.join(QUANTITIES)} at most once: write '{example}'"
        )
    return tuple(pairs)


TEXT_SUFFIXES = ('.csv', '.tsv', '.txt', '.dat', '.asc', '.gz')
# Files beside which tables are no log of their own: a folder of these is a bag.
BAG_SUFFIXES = ('.mcap', '.db3', '.bag', '.zstd')
SUFFIXES = (*TEXT_SUFFIXES, '.lvm', '.npz', '.npy', '.mat', '.h5', '.hdf5', '.parquet')


def natural_order(path: Path) -> list[Any]:
    """Sort key that puts part 2 before part 10."""
    return [int(x) if x.isdigit() else x for x in re.split(r'(\d+)', str(path))]
