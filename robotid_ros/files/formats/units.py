"""Units of columns: as the user says, as their names say, or as the values prove."""

from collections.abc import Mapping
import math

import numpy as np

from ...core.signals.invalid_samples import velocity_ratios
from ...core.signals.recording import EFFORT_UNITS, KILOGRAM
from ...exceptions import ConfigurationError

DEGREE, RPM = math.pi / 180.0, math.pi / 30.0
# SI value of each unit, by quantity; written in lower case without signs between their parts.
FACTORS: Mapping[str, Mapping[str, float]] = {
    'time': {
        's': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9,
        '100ns': 1e-7, 'min': 60.0, 'h': 3600.0, 'd': 86400.0,
    },
    'position': {
        'rad': 1.0, 'deg': DEGREE, 'rev': 2.0 * math.pi, 'm': 1.0, 'cm': 1e-2, 'mm': 1e-3,
        'mrad': 1e-3, 'mdeg': 1e-3 * DEGREE,
    },
    'velocity': {
        'rad/s': 1.0, 'deg/s': DEGREE, 'rpm': RPM, 'rev/s': 2.0 * math.pi,
        'm/s': 1.0, 'mm/s': 1e-3,
    },
    'effort': {
        'nm': 1.0, 'n': 1.0, 'kn': 1e3, 'a': 1.0, 'ma': 1e-3, 'gfcm': 1e-5 * KILOGRAM,
        **{name.replace('·', '').lower(): factor for name, factor in EFFORT_UNITS.items()},
    },
}  # fmt: skip
# Units that mean nothing without a gain, which the user gives: SI value of one of them.
_COUNTS = ('inc', 'counts', '%', '0.1%', 'v', 'mv')
WITHOUT_VALUE: Mapping[str, frozenset[str]] = {
    'time': frozenset(),
    'position': frozenset(_COUNTS),
    'velocity': frozenset([*_COUNTS, 'inc/s', 'counts/s']),
    'effort': frozenset(_COUNTS),
}
CURRENTS = ('a', 'ma')
ANGLES = ('deg', 'rev', 'rad', 'deg/s', 'rpm', 'rev/s', 'rad/s')
_SPELLINGS = {
    's': 'sec secs second seconds',
    'ms': 'msec',
    'us': 'µs μs usec',
    'ns': 'nsec nsecs nanosec nanosecs nanoseconds',
    'min': 'minute minutes',
    'h': 'hours',
    'd': 'day days',
    'rad': 'radian radians',
    'deg': 'degree degrees ° grad degré degrés grados',
    'rev': 'turn turns',
    'rad/s': 'radps',
    'deg/s': '°/s degps grad/s',
    'rpm': '1/min min⁻¹ u/min tr/min r/min rev/min',
    'inc': 'incs incr increments inkremente',
    'counts': 'count cnt cnts pulse pulses ticks',
    '%': 'percent',
    '0.1%': '‰ permille 1/1000 01%',
    'v': 'volt volts',
    'a': 'amp amps ampere',
    'mnm': 'nmm',
    'kgfm': 'kgm kpm',
    'kgfcm': 'kgcm kpcm',
    'gfcm': 'gcm',
    'lbfft': 'lbft ftlb ftlbf',
    'lbfin': 'lbin inlb inlbf',
    'ozfin': 'ozin inoz inozf',
}
ALIASES = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
# Letters that are units only between brackets: in names they are something else.
BRACKETS_ONLY = ('s', 'm', 'n', 'a', 'min', 'h', 'd', 'v')
# Of a factor between velocities and derivatives of positions.
FACTOR_TOLERANCE = 0.1
_COMMON = ('s', 'ms', 'us', 'ns')


def canonical(unit: str) -> str:
    """Return the spelling of a unit in `FACTORS`; unknown ones in lower case."""
    text = unit.strip().lower()
    for sign in ('·', '.', '*', '-', ' '):
        text = text.replace(sign, '')
    return ALIASES.get(text, text)


def is_unit(text: str) -> bool:
    """Return whether a text is a unit of anything."""
    unit = canonical(text)
    return text == '1' or any(unit in FACTORS[q] or unit in WITHOUT_VALUE[q] for q in FACTORS)


def quantity_of(unit: str) -> str:
    """Return which quantity of a joint a unit is of, '' where it is of none or of several."""
    found = [quantity for quantity, known in FACTORS.items() if canonical(unit) in known]
    return found[0] if len(found) == 1 and found != ['time'] else ''


def factors(quantity: str, text: str, prismatic: np.ndarray) -> np.ndarray:
    """
    SI value of the columns of a quantity, (n,).

    `text` is `UNIT` or `UNIT*GAIN` for all joints, or one for each between commas, '' for SI; one
    angle for all is none of the joints that are `prismatic` (n,). Raises ConfigurationError at an
    unknown unit, or at another number of them.
    """
    count, parts, values = len(prismatic), text.split(','), list[float]()
    if not text:
        return np.ones(count)
    if len(parts) not in (1, count):
        raise ConfigurationError(
            f"the units '{text}' of {quantity} are {len(parts)} for {count} joints: give one for "
            'all, or one for each'
        )
    for part in parts:
        unit, star, gain = part.partition('*')
        if quantity == 'effort' and part.lower() == 'n*m':
            unit, star, gain = 'nm', '', ''
        gained = dict.fromkeys(WITHOUT_VALUE[quantity] if star else (), 1.0)
        sizes = {**FACTORS[quantity], **gained}
        try:
            values.append(sizes[canonical(unit)] * (float(gain) if star else 1.0))
        except (KeyError, ValueError):
            known = ', '.join((*FACTORS[quantity], *sorted(WITHOUT_VALUE[quantity])))
            raise ConfigurationError(
                f"'{part}' is no unit of {quantity}: use one of {known}, with a gain as in A*0.12"
            ) from None
    result = np.resize(values, count)
    if len(parts) == 1 and canonical(text.split('*')[0]) in ANGLES:
        result[prismatic] = 1.0
    return result


def proven_time_unit(time: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> str:
    """Return the unit of times in which velocities derive from positions (N, n), '' for none."""
    ratio, errors = usual_ratio(time, position, velocity), dict[str, float]()
    for unit, scale in FACTORS['time'].items():
        # Rare units count only where nothing else has to be assumed.
        others = (DEGREE, RPM, 1.0 / DEGREE, RPM / DEGREE) if unit in _COMMON else ()
        errors[unit] = min(abs(ratio * scale * factor - 1.0) for factor in (1.0, *others))
    best = min(errors, key=lambda unit: errors[unit])
    return best if errors[best] < FACTOR_TOLERANCE else ''


def usual_ratio(time: np.ndarray, position: np.ndarray, other: np.ndarray) -> float:
    """Return the median of `velocity_ratios`, NaN where nothing is a derivative."""
    ratios = velocity_ratios(time, position, other)
    return math.nan if np.isnan(ratios).all() else float(np.nanmedian(ratios))
