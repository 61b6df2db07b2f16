"""ROS domains that nobody on this machine is in, for simulated robots."""

import random
import socket

from ...exceptions import RobotIdError

# Domains that leave their ports below those that Linux gives to outgoing connections.
DOMAINS = range(1, 101)
# Participants of a domain whose ports are looked at.
PARTICIPANTS = 16
_claims: dict[int, socket.socket] = {}


def claim_domain() -> int:
    """
    Take a ROS domain that is empty, until `release_domain` or this process's end.

    A simulated robot must not meet a real one: its controller has the same name.

    Raises
    ------
    RobotIdError : there is none

    """
    # A fixed choice would let two that begin at once meet.
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            # An abstract address: the system frees it when this process ends, however it ends.
            claim.bind(f'\0robotid_ros/domain/{domain}')
        except OSError:
            claim.close()
            continue
        if _is_empty(domain):
            _claims[domain] = claim
            return domain
        claim.close()
    raise RobotIdError(
        f'every ROS domain from {DOMAINS[0]} to {DOMAINS[-1]} is in use on this machine: end '
        'nodes that are not needed'
    )


def release_domain(domain: int) -> None:
    """Give a domain back."""
    _claims.pop(domain).close()


def _is_empty(domain: int) -> bool:
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
