"""When a change of friction, offset or payload is told."""

import dataclasses

from ....settings import setting


@dataclasses.dataclass(frozen=True)
class DriftSettings:
    """How parameters are followed while the robot works, and when a change of them is told."""

    active: bool = setting(True, 'follow friction, offsets and payload after an identification')
    memory: float = setting(
        30.0, 'time constant of the forgetting', unit='s of motion', minimum=1.0, maximum=3600.0
    )
    tolerance: float = setting(
        0.01, 'change of a parameter that is none, over its value', minimum=0.0, maximum=1.0
    )
    significance: float = setting(
        5.0,
        'a change is told from so many σ on; at 5 chance shows one in 1.7 million looks, of which '
        'three in a row have to agree',
        unit='σ',
        minimum=2.0,
        maximum=20.0,
    )
    duration: float = setting(
        12.0, 'how long friction or an offset has to be changed', unit='s',
        minimum=0.5, maximum=3600.0,
    )  # fmt: skip
    payload_duration: float = setting(
        2.0, 'how long the payload has to be changed', unit='s', minimum=0.5, maximum=3600.0
    )
