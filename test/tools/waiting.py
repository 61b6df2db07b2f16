"""What every test that starts nodes needs: events to wait for, and a ROS domain of its own."""

from collections.abc import Callable
import os
from pathlib import Path
import random
import socket
import time
from typing import TypeVar

T = TypeVar('T')

# A deadline only ends what hangs: on a busy machine everything takes its time [s].
PATIENCE = 120.0
# Domains that leave their ports below those that Linux hands out.
DOMAINS = range(1, 101)
# Of a domain, more than any test starts.
PARTICIPANTS = 16
_claims: dict[int, socket.socket] = {}


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


def claim_domain() -> int:
    """Take a ROS domain that no other test on this machine has, until `release_domain`."""
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            # An abstract address: the system frees it when this process ends, however it ends.
            claim.bind(f'\0robotid_ros/domain/{domain}')
        except OSError:
            claim.close()
            continue
        if _empty(domain):
            _claims[domain] = claim
            return domain
        claim.close()
    raise AssertionError('every ROS domain is taken')


def release_domain(domain: int) -> None:
    """Give a domain back."""
    _claims.pop(domain).close()


def _empty(domain: int) -> bool:
    """
    Whether nobody has a port at which participants of a domain are discovered.

    A guardian outlives the node that it guards: it need not be the first participant.
    """
    for participant in range(PARTICIPANTS):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', 7410 + 250 * domain + 2 * participant))
            except OSError:
                return False
    return True


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
