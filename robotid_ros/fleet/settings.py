"""Settings of a fleet's identification: the `fleet` group of a configuration."""

from dataclasses import dataclass

from ..settings import setting


@dataclass(frozen=True)
class FleetSettings:
    """How many bags are worked on at once, and with what."""

    RETIRED = ('piece',)

    workers: int = setting(
        0, 'processes on this machine, one thread each; 0: one a core', minimum=0, maximum=1000
    )
    memory: float = setting(
        2.0, 'that a process may take before it is restarted', unit='GB', minimum=0.25
    )
    waiting: int = setting(
        3, 'bags handed out per worker at a time, those it works on included', minimum=1
    )
