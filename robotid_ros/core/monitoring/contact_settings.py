"""Settings of external efforts and contacts."""

from dataclasses import dataclass

from ...settings import setting


@dataclass(frozen=True)
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
