"""What every test that starts nodes needs: events to wait for, and the logs of nodes."""

from collections.abc import Callable
import os
from pathlib import Path
import time
from typing import TypeVar

T = TypeVar('T')

# A deadline only ends what hangs [s]. It is time in which a process had a processor, had it asked
# for one: among others that want it too, everything takes its time.
PATIENCE = 120.0


def share() -> float:
    """Share of a processor that this machine has for one more process now."""
    running = int(Path('/proc/loadavg').read_text().split()[3].partition('/')[0])
    return min(1.0, (os.cpu_count() or 1) / max(running, 1))


class Patience:
    """Counts down a deadline by the shares of a processor that a process could have had."""

    def __init__(self, deadline: float):
        self._left, self._last = deadline, time.monotonic()

    def is_over(self) -> bool:
        """Whether the time is up."""
        now = time.monotonic()
        self._left -= (now - self._last) * share()
        self._last = now
        return self._left < 0.0


def wait_until(
    condition: Callable[[], T],
    what: str,
    state: Callable[[], object] = lambda: '',
    deadline: float = PATIENCE,
    period: float = 0.01,
) -> T:
    """
    Wait for an event.

    Parameters
    ----------
    condition : asked again and again until it returns something true
    what : does not happen when this fails
    state : what is to be known then
    deadline : longest wait, see `Patience` [s]
    period : from one question to the next [s]

    Returns
    -------
    What the condition returned.

    """
    patience = Patience(deadline)
    while not (found := condition()):
        if patience.is_over():
            raise AssertionError(f'not within {deadline:g} s: {what}\n{state()}')
        time.sleep(period)
    return found


def tails(folder: Path, lines: int = 15) -> str:
    """Last lines of every log in a folder."""
    found = []
    for path in sorted(folder.glob('*.log')):
        text = path.read_text(errors='replace').splitlines()[-lines:]
        if text:
            found.append('\n'.join([f'{path.name}:', *(f'  {line}' for line in text)]))
    return '\n'.join(found)


def log_to(folder: Path) -> None:
    """Let the nodes that are started from now on log to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ['ROS_LOG_DIR'] = str(folder)
