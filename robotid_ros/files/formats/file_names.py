"""Which files hold a log, by their names: bags and tables; who reads bags needs no tables."""

from pathlib import Path
import re
from typing import Any

TEXT_SUFFIXES = ('.csv', '.tsv', '.txt', '.dat', '.asc', '.gz')
# Files beside which tables are no log of their own: a folder of these is a bag.
BAG_SUFFIXES = ('.mcap', '.db3', '.bag', '.zstd')
SUFFIXES = (
    *(*TEXT_SUFFIXES, '.lvm', '.json', '.jsonl', '.xlsx'),
    *('.npz', '.npy', '.mat', '.h5', '.hdf5', '.parquet', '.feather'),
)


def natural_order(path: Path) -> list[Any]:
    """Sort key that puts part 2 before part 10."""
    return [int(x) if x.isdigit() else x for x in re.split(r'(\d+)', str(path))]
