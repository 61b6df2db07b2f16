"""Servos that report currents or coarse torques: what a reading is worth, and how surely."""

from typing import NamedTuple

import numpy as np

from ...exceptions import ConfigurationError, UnknownNameError
from ..arrays import Array
from .settings import RobotSettings

# Behind a name: efforts are the register itself, not amperes or N·m.
COUNTS = '/counts'


class ServoDrive(NamedTuple):
    """
    Efforts of a servo.

    Attributes
    ----------
    step : of a reading [A, or N·m where the gain is 1]
    gain, spread : torque at the joint per unit [N·m/A or 1], and its relative standard deviation

    """

    step: float
    gain: float
    spread: float


# Gains of Dynamixel are torque over current at stall, 12 V or 5 V, of emanual.robotis.com, which
# differ by 2 to 10 % between voltages. That of STS3215 is of its data sheet, 11 kg·cm/A; its stall
# torque was 17 % more in a test (SO-ARM100, issue 134). Torques of Damiao are 12 bits over both
# signs of TMAX. How true torques are at part load is assumed.
DRIVES = {
    'sts3215': ServoDrive(6.5e-3, 1.079, 0.2),
    'xl330-m077': ServoDrive(1e-3, 0.146, 0.2),
    'xl330-m288': ServoDrive(1e-3, 0.354, 0.2),
    'xm430-w350': ServoDrive(2.69e-3, 1.783, 0.2),
    'xm540-w150': ServoDrive(2.69e-3, 1.659, 0.2),
    'xm540-w270': ServoDrive(2.69e-3, 2.409, 0.2),
    'dm4310': ServoDrive(20.0 / 4095, 1.0, 0.1),
    'dm4340': ServoDrive(56.0 / 4095, 1.0, 0.1),
    'dm8009': ServoDrive(108.0 / 4095, 1.0, 0.1),
}


def gains_of_drives(settings: RobotSettings, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """
    Return torque per unit of effort (n,), and its relative standard deviation (n,).

    What the settings say of either comes before what is known of named drives.

    Raises
    ------
    ConfigurationError : the settings have another number of values, or a gain is 0
    UnknownNameError : there is no such drive

    """
    found = {'drive_gain': np.ones(len(joints)), 'drive_gain_spread': np.zeros(len(joints))}
    for name in ('drives', *found):
        if (count := len(getattr(settings, name))) not in (0, len(joints)):
            text = f"'{name}' has {count} values: give one per joint ({len(joints)})"
            raise ConfigurationError(text)
    for j, text in enumerate(settings.drives):
        name = text.removesuffix(COUNTS)
        if name and name not in DRIVES:
            raise UnknownNameError('drive', text, (*DRIVES, *(f'{d}{COUNTS}' for d in DRIVES)))
        if name:
            drive = DRIVES[name]
            found['drive_gain'][j] = drive.gain * (drive.step if name != text else 1.0)
            found['drive_gain_spread'][j] = 0.0 if settings.drive_gain else drive.spread
    for name, default in found.items():
        found[name] = np.array(getattr(settings, name) or default, dtype=float)
    if not found['drive_gain'].all():
        joint = joints[int(np.argmin(np.abs(found['drive_gain'])))]
        raise ConfigurationError(
            f"'drive_gain' of {joint} is 0, so its efforts are none: give the torque per unit of "
            'effort, or leave the joint out (robot.joints)'
        )
    return found['drive_gain'], found['drive_gain_spread']
