"""
How fast logs of each format are read.

Prints processor time and memory for a log of six joints with velocities. Usage:
`python benchmarks/formats.py [rows]`.
"""

from pathlib import Path
import resource
import tempfile
import time

from common import command_line
import numpy as np

from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions

JOINTS = 6
RATE = 1000.0


def write(folder: Path, rows: int) -> list[Path]:
    """Write one motion as CSV, npz and Parquet."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    columns = {'t': np.arange(rows) / RATE}
    for name in ('q', 'dq', 'tau'):
        columns |= {f'{name}{k + 1}': rng.normal(size=rows) for k in range(JOINTS)}
    table = pyarrow.table(columns)
    paths = [folder / f'log.{suffix}' for suffix in ('csv', 'npz', 'parquet')]
    pyarrow.csv.write_csv(table, paths[0])
    np.savez(paths[1], **columns)
    pyarrow.parquet.write_table(table, paths[2])
    return paths


def main() -> None:
    """Read each format."""
    parser = command_line(__doc__, check=False)
    parser.add_argument('rows', nargs='?', type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in write(folder, rows):
            began = time.process_time()
            found = len(open_table(path, ReadOptions()).stamp)
            print(f'{path.suffix:9} {time.process_time() - began:6.2f} s for {found} rows')
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f'at most {memory:.0f} MB')


if __name__ == '__main__':
    main()
