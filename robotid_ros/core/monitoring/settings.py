"""Settings of what is watched of a robot at work: contacts and drift."""

import dataclasses

from ...settings import setting


@dataclasses.dataclass(frozen=True)
class ContactSettings:
    """External effort, wrench and contact, live from the joint states."""

    gain: tuple[float, ...] = setting(
        (40.0,),
        'of the momentum observer, whose time constant is 1/gain; one for all or per joint',
        unit='1/s',
        minimum=1.0,
        maximum=1000.0,
    )
    cutoff: float = setting(
        20.0, 'corner of the causal filter of positions and efforts', unit='Hz', minimum=1.0
    )
    false_alarms: float = setting(
        0.01,
        'contacts told per hour without any, which the thresholds allow',
        unit='1/h',
        minimum=1e-9,
        maximum=1000.0,
    )
    frame: str = setting(
        '', 'where external_wrench acts; empty: excitation.workspace.frame, or the last body'
    )
    force: float = setting(
        100.0, 'expected size of its force, by which it is regularised', unit='N', minimum=1e-3
    )
    torque: float = setting(2.0, 'expected size of its torque, likewise', unit='N·m', minimum=1e-3)


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
        'a change is told from so many σ on; at 5 chance shows one in 1.7 million looks, and '
        'two of a trial have to agree with it',
        unit='σ',
        minimum=2.0,
        maximum=20.0,
    )
    duration: float = setting(
        6.0, 'how long a change of friction or an offset that shows has to last before motion '
        'confirms it', unit='s', minimum=0.5, maximum=3600.0,
    )  # fmt: skip
    payload_duration: float = setting(
        1.2, 'the same of the payload; longer than the pushes that are not to be told', unit='s',
        minimum=0.5, maximum=3600.0,
    )  # fmt: skip
