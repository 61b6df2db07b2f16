"""Units of columns: as the user says, as their names say, or as the values prove."""

from collections.abc import Mapping
import math

import numpy as np

from ...exceptions import ConfigurationError

DEGREE, RPM = math.pi / 180.0, math.pi / 30.0
# SI value of each unit, by quantity; written in lower case without signs between their parts.
FACTORS: Mapping[str, Mapping[str, float]] = {
    'time': {'s': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9},
    'position': {
        **{'rad': 1.0, 'deg': DEGREE, 'rev': 2.0 * math.pi},
        **{'m': 1.0, 'cm': 1e-2, 'mm': 1e-3},
    },
    'velocity': {
        **{'rad/s': 1.0, 'deg/s': DEGREE, 'rpm': RPM, 'rev/s': 2.0 * math.pi},
        **{'m/s': 1.0, 'mm/s': 1e-3},
    },
    'effort': {
        **{'nm': 1.0, 'mnm': 1e-3, 'ncm': 1e-2, 'knm': 1e3, 'n': 1.0, 'kn': 1e3},
        **{'a': 1.0, 'ma': 1e-3},
    },
}
CURRENTS = ('a', 'ma')
ANGLES = ('deg', 'rev', 'rad', 'deg/s', 'rpm', 'rev/s', 'rad/s')
_ALIASES = {
    **{'sec': 's', 'secs': 's', 'second': 's', 'seconds': 's', 'µs': 'us', 'μs': 'us'},
    **{'msec': 'ms', 'usec': 'us', 'nsec': 'ns', 'nsecs': 'ns', 'nanosec': 'ns'},
    **{'nanosecs': 'ns', 'nanoseconds': 'ns'},
    **{'radian': 'rad', 'radians': 'rad', 'degree': 'deg', 'degrees': 'deg', '°': 'deg'},
    **{'turn': 'rev', 'turns': 'rev', '°/s': 'deg/s', 'degps': 'deg/s', 'radps': 'rad/s'},
    **{'r/min': 'rpm', 'rev/min': 'rpm', 'amp': 'a', 'amps': 'a', 'ampere': 'a'},
}
# Letters that are units only between brackets: in names they are something else.
_BRACKETS_ONLY = ('s', 'm', 'n', 'a')
# A position beyond so many times its limit, and inside it in degrees, is one in degrees.
BEYOND_LIMIT, INSIDE_LIMIT = 2.0, 1.1
# A velocity that is a multiple of the position's derivative: correlation, tolerance of the
# factor, share of the slopes that count.
MIN_CORRELATION, FACTOR_TOLERANCE, WITHOUT_JUMPS = 0.9, 0.1, 0.99
# Samples over which both are compared where neighbours are too noisy, or polled and repeated.
SPAN = 5
# Steps of stamps up to which they count as s, ms, µs: robots are logged at 5 Hz to 5 kHz.
STEPS = (('s', 0.5), ('ms', 200.0), ('us', 2e5), ('ns', math.inf))


def canonical(unit: str) -> str:
    """Return the spelling of a unit in `FACTORS`; unknown ones in lower case."""
    text = unit.strip().lower()
    for sign in ('·', '.', '*', '-', ' '):
        text = text.replace(sign, '')
    return _ALIASES.get(text, text)


def is_unit(text: str) -> bool:
    """Return whether a text is a unit of anything."""
    return any(canonical(text) in factors for factors in FACTORS.values()) or text in ('1', '%')


def unit_in_name(words: tuple[str, ...], bracketed: str, quantity: str) -> str:
    """Return the unit that a column's name ends with, '' for none; `rad_s`, `rad_per_s`: rad/s."""
    known = FACTORS[quantity]
    words = tuple(word for word in words if word != 'per')
    if canonical(bracketed) in known:
        return canonical(bracketed)
    for text in ('/'.join(words[-2:]), ''.join(words[-2:]), *words[-1:]):
        if canonical(text) in known and canonical(text) not in _BRACKETS_ONLY:
            return canonical(text)
    return ''


def factors(quantity: str, text: str, count: int, prismatic: np.ndarray) -> np.ndarray:
    """
    SI value of the columns of a quantity, (n,).

    Parameters
    ----------
    quantity : 'position', 'velocity' or 'effort'
    text : `UNIT` or `UNIT*GAIN` for all joints, or one for each between commas
    count : joints
    prismatic : (n,) whose unit is no angle where one is given for all

    Raises
    ------
    ConfigurationError : an unknown unit, or not one per joint

    """
    parts = text.split(',')
    if len(parts) not in (1, count):
        raise ConfigurationError(
            f"the units '{text}' of {quantity} are {len(parts)} for {count} joints: give one for "
            'all, or one for each'
        )
    values = np.array([_factor(quantity, part) for part in parts])
    if len(parts) == 1:
        values = np.repeat(values, count)
        if canonical(text.split('*')[0]) in ANGLES:
            values[prismatic] = 1.0
    return values


def _factor(quantity: str, text: str) -> float:
    text = 'nm' if quantity == 'effort' and text.lower() == 'n*m' else text
    unit, star, gain = text.partition('*')
    try:
        return FACTORS[quantity][canonical(unit)] * (float(gain) if star else 1.0)
    except (KeyError, ValueError):
        known = ', '.join(FACTORS[quantity])
        raise ConfigurationError(
            f"'{text}' is no unit of {quantity}: use one of {known}, with a gain as in A*0.12"
        ) from None


def time_unit(step: float) -> str:
    """Return the unit of stamps that are so far apart."""
    return next(unit for unit, longest in STEPS if step <= longest)


def proven_time_unit(time: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> str:
    """
    Return the unit of times in which velocities are the derivatives of positions, '' for none.

    Positions may be in rad or degrees, velocities in rad/s, degrees/s or rpm.

    Parameters
    ----------
    time : (N,) as logged
    position, velocity : (N, n) as logged

    """
    ratio = _usual_ratio(time, position, velocity)
    for unit, scale in FACTORS['time'].items():
        for factor in (1.0, DEGREE, RPM, 1.0 / DEGREE, RPM / DEGREE):
            if abs(ratio * scale * factor - 1.0) < FACTOR_TOLERANCE:
                return unit
    return ''


def looks_like_degrees(position: np.ndarray, limits: np.ndarray) -> bool:
    """
    Return whether positions (N, n) prove to be degrees.

    Parameters
    ----------
    position : as logged
    limits : (n,) largest position of each joint [rad], inf where there is none

    """
    reached = np.nanmax(np.abs(position), axis=0, initial=0.0)
    known = np.isfinite(limits) & (limits > 0.0)
    if not known.any():
        return False
    share = reached[known] / limits[known]
    return bool((share > BEYOND_LIMIT).any() and (share * DEGREE < INSIDE_LIMIT).all())


def derivative_ratios(time: np.ndarray, position: np.ndarray, other: np.ndarray) -> np.ndarray:
    """
    Return by which factor values are the derivatives of positions, (n,), NaN where they are not.

    Parameters
    ----------
    time : (N,), of which repeated ones are passed over
    position, other : (N, n)

    """
    ratios, smoother = (_ratios(time, position, other, span) for span in (1, SPAN))
    return np.where(np.isnan(ratios), smoother, ratios)


def _ratios(time: np.ndarray, position: np.ndarray, other: np.ndarray, span: int) -> np.ndarray:
    """Return the same from differences over so many samples."""
    ratios = np.full(position.shape[1], np.nan)
    steps = (time[span:] - time[:-span])[:, None]
    with np.errstate(all='ignore'):
        slope = (position[span:] - position[:-span]) / steps
        areas = 0.5 * (other[1:] + other[:-1]) * np.diff(time)[:, None]
        middle = sum(areas[k : k + len(steps)] for k in range(span)) / steps
        for k, (a, b) in enumerate(zip(slope.T, middle.T, strict=True)):
            good = np.isfinite(a) & np.isfinite(b) & (steps[:, 0] > 0.0)
            if good.sum() < 10:
                continue
            # Jumps of the position have no part in its velocity.
            good &= np.abs(a) <= np.quantile(np.abs(a[good]), WITHOUT_JUMPS)
            if np.corrcoef(a[good], b[good])[0, 1] > MIN_CORRELATION:
                ratios[k] = np.std(b[good]) / np.std(a[good])
    return ratios


def _usual_ratio(time: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> float:
    """Return the median of `derivative_ratios`, NaN where there is none."""
    ratios = derivative_ratios(time, position, velocity)
    return math.nan if np.isnan(ratios).all() else float(np.nanmedian(ratios))


def velocity_unit(time: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> str:
    """Return 'deg/s' or 'rpm' where velocities are the positions' derivatives so, else ''."""
    ratio = _usual_ratio(time, position, velocity)
    for unit, factor in (('deg/s', DEGREE), ('rpm', RPM)):
        if abs(ratio * factor - 1.0) < FACTOR_TOLERANCE:
            return unit
    return ''
