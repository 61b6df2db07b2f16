"""
How fast recordings are written and read.

Prints processor time per message of the writer, and seconds and memory for reading a recording
back, beside reading its raw messages by the library `mcap` and nothing else; reading in chunks
goes over the file twice. Usage: `python benchmarks/bags.py [messages] [--check]`.
"""

from pathlib import Path
import resource
import sys
import tempfile
import time

from common import command_line, verdict
from mcap.reader import make_reader
from messages import header, JOINT_STATE, store
import numpy as np

from robotid_ros.files.bags import BagWriter, open_recording

JOINTS = 6
EPOCH = 1_700_000_000_000_000_000
STEP = 2_000_000
# Most time that reading takes, over that of the raw messages.
MOST = {'chunks': 0.9, 'read': 0.5}


def payloads(count: int) -> list[bytes]:
    """Serialize joint states, a thousand different ones over and over with their own stamps."""
    rng = np.random.default_rng(0)
    joints = [f'joint_{k}' for k in range(JOINTS)]
    messages = []
    for _ in range(1000):
        message = store().types[JOINT_STATE](header(0), joints, *rng.normal(size=(3, JOINTS)))
        messages.append(bytes(store().serialize_cdr(message, JOINT_STATE)))
    stamps = EPOCH + STEP * np.arange(count)
    parts = zip((stamps // 10**9).astype('<i4'), (stamps % 10**9).astype('<u4'), strict=True)
    return [
        messages[k % 1000][:4] + sec.tobytes() + nanosec.tobytes() + messages[k % 1000][12:]
        for k, (sec, nanosec) in enumerate(parts)
    ]


def raw(folder: Path) -> int:
    """Count the messages that the library reads."""
    with next(folder.glob('*.mcap')).open('rb') as stream:
        return sum(1 for _ in make_reader(stream).iter_messages(log_time_order=False))


def main() -> int:
    """Write, then read in chunks and whole."""
    parser = command_line(__doc__)
    parser.add_argument('messages', nargs='?', type=int, default=1_000_000)
    arguments = parser.parse_args()
    count, missed, unit = arguments.messages, [], 0.0
    messages = payloads(count)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        with BagWriter(folder, 'bag') as writer:
            writer.add_topic('/joint_states', JOINT_STATE)
            for k, data in enumerate(messages):
                writer.write('/joint_states', data, EPOCH + STEP * k)
        used = time.process_time() - began
        size = sum(f.stat().st_size for f in Path(writer.path).iterdir()) / count
        print(f'write  {1e6 * used / count:6.2f} µs of processor per message, {size:.0f} bytes')
        del messages
        for name, work in (
            ('mcap', lambda: raw(Path(writer.path))),
            ('chunks', lambda: sum(c.size for c in open_recording(writer.path, max_samples=0))),
            ('read', lambda: open_recording(writer.path, max_samples=count).size),
        ):
            began = time.process_time()
            found = work()
            used = time.process_time() - began
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            unit = unit or used
            ratio = used / unit
            print(f'{name:6} {used:6.2f} s for {found} messages, {ratio:.2f} × mcap', end='')
            print(f', at most {memory:.0f} MB')
            if ratio > MOST.get(name, ratio):
                missed.append(f'{name}: {ratio:.2f} × mcap, at most {MOST[name]:g}')
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
