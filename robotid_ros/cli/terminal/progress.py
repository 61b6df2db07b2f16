"""How far a long work is: a bar, a clock that ticks, and what is being done."""

from collections.abc import Sequence
import shutil
import sys
import threading
import time
from typing import TextIO

from .text import printable, truncated

# Characters of the bar: room is left for a label on a terminal of 80 columns.
BAR_WIDTH = 24
# How often the clock is drawn [s].
TICK = 0.5
# Of a step whose iterations nobody can count, each leaves so much of what was left.
LEFT_BY_ITERATION = 0.7
_CLEAR = '\r\x1b[K'


class ProgressBar:
    """
    Steps of a long work on one line of a terminal; silent where standard error is no terminal.

    The bar never goes back, and is full only when the work is done.

    Parameters
    ----------
    steps : how many there will be; or their labels, with the share of the time that each takes
    stream : where to; standard error by default, so that output can be piped

    """

    def __init__(self, steps: int | Sequence[tuple[str, float]] = 1, stream: TextIO | None = None):
        self.plan([('', 1.0)] * steps if isinstance(steps, int) else steps)
        self._step, self._within = -1, 0.0
        self.fraction, self.label, self._text = 0.0, '', ''
        self.stream = stream or sys.stderr
        self.shown = self.stream is not None and self.stream.isatty()
        self.began = time.monotonic()
        # A signal handler's text may come while the same thread draws.
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._clock: threading.Thread | None = None

    def plan(self, steps: Sequence[tuple[str, float]]) -> None:
        """Take other steps, of which the one that is being done stands where it stood."""
        self._plan = list(steps)
        self._total = sum(weight for _, weight in self._plan)

    def step(self, label: str) -> None:
        """Begin the next step of this label; any other label says how the present one goes."""
        later = range(self._step + 1, len(self._plan))
        found = next((k for k in later if self._plan[k][0] in ('', label)), None)
        if found is None:
            self._within = 1.0 - LEFT_BY_ITERATION * (1.0 - self._within)
        else:
            self._step, self._within = found, 0.0
        self.label = label
        self.show(self._share_of_steps(self._within), label)

    def share(self, part: float) -> None:
        """Show how much of the present step is done."""
        self._within = min(max(part, 0.0), 1.0)
        text = f'{self.label}, {100 * self._within:.0f} %'
        self.show(self._share_of_steps(self._within), text)

    def _share_of_steps(self, within: float) -> float:
        before = sum(weight for _, weight in self._plan[: max(self._step, 0)])
        present = self._plan[self._step][1] if self._step >= 0 else 0.0
        return (before + present * within) / self._total

    def show(self, fraction: float, label: str) -> None:
        """Draw the bar at a fraction of the whole, not before where it was; '': the old label."""
        with self._lock:
            self.fraction = max(self.fraction, min(max(fraction, 0.0), 1.0))
            self._text = label or self._text
            self._draw()

    def print_line(self, text: str) -> None:
        """Print a line above the bar."""
        with self._lock:
            self.stream.write(f'{_CLEAR if self.shown else ""}{printable(text)}\n')
            self.stream.flush()
            self._draw()

    def _draw(self) -> None:
        if not self.shown or self._ended.is_set():
            return
        full = int(BAR_WIDTH * self.fraction)
        bar = '█' * full + '░' * (BAR_WIDTH - full)
        line = f'{bar} {time.monotonic() - self.began:4.0f} s  {printable(self._text)}'
        width = shutil.get_terminal_size().columns - 1
        self.stream.write(f'{_CLEAR}{truncated(line, width)}')
        self.stream.flush()

    def _tick(self) -> None:
        while not self._ended.wait(TICK):
            with self._lock:
                self._draw()

    def __enter__(self) -> 'ProgressBar':
        if self.shown:
            self._clock = threading.Thread(target=self._tick, name='clock', daemon=True)
            self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended.set()
        if self._clock is not None:
            self._clock.join()
            self.stream.write(_CLEAR)
            self.stream.flush()
