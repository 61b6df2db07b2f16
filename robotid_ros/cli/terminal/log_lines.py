"""Lines that other code logs while a progress bar stands: above it, not glued to it."""

from collections.abc import Iterator
import contextlib
import os
import select
import sys
import threading

from .progress import ProgressBar

# Of a line that never ends, so many bytes are shown at once.
MAX_BYTES = 4096


@contextlib.contextmanager
def lines_above(bar: ProgressBar) -> Iterator[None]:
    """
    Show above the bar what this process and those that it starts write to standard error.

    ROS logs by C functions, and so do nodes of other processes: what is redirected is the file
    descriptor. Nothing is done where no bar is shown.
    """
    if not bar.shown or bar.stream is not sys.stderr:
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    source, sink = os.pipe()
    stream, ended = bar.stream, threading.Event()
    with open(terminal, 'w', encoding=sys.stderr.encoding, errors='backslashreplace') as direct:
        bar.stream = direct
        reader = threading.Thread(target=_copy, args=(source, bar, ended), name='log', daemon=True)
        os.dup2(sink, 2)
        os.close(sink)
        reader.start()
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            ended.set()
            reader.join()
            os.close(source)
            bar.stream = stream


def _copy(source: int, bar: ProgressBar, ended: threading.Event) -> None:
    """Print lines until the end, then those that are there: processes may keep the pipe open."""
    rest = b''
    while True:
        last = ended.is_set()
        if not select.select([source], [], [], 0.0 if last else 0.1)[0]:
            if last:
                break
            continue
        data = os.read(source, MAX_BYTES)
        if not data:
            break
        *lines, rest = (rest + data).split(b'\n')
        if len(rest) >= MAX_BYTES:
            lines, rest = [*lines, rest], b''
        for line in lines:
            bar.print_line(line.decode(errors='backslashreplace'))
    if rest:
        bar.print_line(rest.decode(errors='backslashreplace'))
