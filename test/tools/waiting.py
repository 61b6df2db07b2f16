"""What every test that starts nodes needs: events to wait for, and the logs of nodes."""

from collections.abc import Callable
import os
from pathlib import Path
import time
from typing import TypeVar

T = TypeVar('T')

# A deadline only ends what hangs: on a busy machine everything takes its time [s].
PATIENCE = 120.0


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
    deadline : longest wait [s]
    period : from one question to the next [s]

    Returns
    -------
    What the condition returned.

    """
    end = time.monotonic() + deadline
    while not (found := condition()):
        if time.monotonic() > end:
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
