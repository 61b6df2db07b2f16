"""Units of a log: what the user and the names say, else what limits and derivatives prove."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
import math

import numpy as np

from ...core.diagnostics.remark import EFFORT_UNIT, Remark, SERIOUS
from ...exceptions import RecordingError
from .column_joints import Described
from .column_names import Meaning
from .column_words import words_of
from .units import (
    canonical,
    CURRENTS,
    DEGREE,
    FACTOR_TOLERANCE,
    FACTORS,
    factors,
    usual_ratio,
    WITHOUT_JUMPS,
    WITHOUT_VALUE,
)

QUANTITIES = ('position', 'velocity', 'effort')
# A position beyond so many times its limit, and inside it in degrees, is one in degrees.
BEYOND_LIMIT, INSIDE_LIMIT = 2.0, 1.1


@dataclass(frozen=True)
class LogUnits:
    """
    What is known of the units of a log.

    Attributes
    ----------
    joints : names of the columns
    said : unit of each quantity that the user or its name says, '' for none
    patterns : what the columns of each quantity are called
    robot : whose limits tell more
    given : quantities whose unit is from the user, and not to be doubted

    """

    joints: tuple[str, ...]
    said: dict[str, str]
    patterns: Mapping[str, str]
    robot: Described
    given: Collection[str] = ()

    def factors(self, quantity: str, unit: str | None) -> np.ndarray:
        """SI value of each joint's column, (n,)."""
        prismatic = np.array([self.robot.prismatic.get(joint, False) for joint in self.joints])
        if not unit:
            return np.ones(len(self.joints))
        return factors(quantity, unit, len(self.joints), prismatic)

    def bare(self, quantity: str) -> str:
        """Return a unit whose size nothing says, '' for none."""
        units = self.said.get(quantity, '').split(',')
        return next((unit for unit in units if canonical(unit) in WITHOUT_VALUE[quantity]), '')

    def of_positions(self, position: np.ndarray) -> tuple[str | None, list[str]]:
        """Return the unit of positions (N, n), None where nothing proves one, and notes."""
        name = self.patterns['position']
        if bare := self.bare('position'):
            raise RecordingError(
                f'the positions {name} are in {bare}, whose size the log does not say: give it in '
                f"rad or m, as in --units 'position={bare}*1.2e-5', or one for each joint between "
                'commas'
            )
        if said := self.said.get('position'):
            return said, []
        limits = np.array([self.robot.limits.get(joint, math.inf) for joint in self.joints])
        unit = unit_by_limits(position, limits)
        if unit is None or (unit and 'motor' in words_of(name)):
            raise RecordingError(
                f'the positions {name} reach {np.nanmax(np.abs(position)):.4g}, which the limits '
                'of the robot description do not permit as rad: give their unit, as in --units '
                "'position=deg', of counts or at motors with its size, 'position=counts*1.2e-5' "
                "or 'position=rad*0.01', or 'position=rad' where the limits are wrong"
            )
        why = 'they exceed the limits of the robot description in rad'
        return unit or None, [_counted('position', unit, why)] if unit else []

    def of_velocities(self, unit: str | None, ratio: float) -> tuple[list[str], list[str]]:
        """Return the units of positions and velocities by their ratio, and notes."""
        velocity = self.said.get('velocity') or None
        if unit and velocity and 'velocity' in self.given:
            return [unit, velocity], []
        found = units_by_ratio(ratio, unit, velocity)
        if found is None:
            position, name = self.patterns['position'], self.patterns['velocity']
            raise RecordingError(
                f'the velocities {name} are {ratio:.3g} times the derivatives of the positions '
                f'{position}, as no units are: give the right ones, of the times too, as in '
                "--units 'time=ms position=rad velocity=rad/s'"
            )
        why = 'so much the derivative of the positions is'
        pairs = zip(('position', 'velocity'), found, (unit, velocity), strict=True)
        return found, [_counted(q, new, why) for q, new, old in pairs if new and new != old]

    def of_efforts(self, current: bool) -> tuple[str, list[str]]:
        """Return the unit of efforts, '' where it is unknown, and notes."""
        unit, bare = self.said.get('effort', ''), self.bare('effort')
        current |= any(canonical(each) in CURRENTS for each in unit.split(','))
        if '*' in unit or not (current or bare):
            return unit, []
        what, one, each = (bare, bare, bare) if bare else ('currents', 'A', 'ampere')
        note = (
            f'the efforts are {what}, parameters come out per {each}: give gains [N·m/{one}], '
            f"--units 'effort={one}*0.12'"
        )
        return '' if bare else unit, [Remark(note, SERIOUS, EFFORT_UNIT, unit=one)]


def _counted(quantity: str, unit: str, why: str) -> str:
    return f'{quantity} counts as {unit}, for {why} (--units: others)'


def apply_units(
    values: dict[str, np.ndarray],
    stamp: np.ndarray,
    units: LogUnits,
    position: str | None,
    meaning: Meaning | None,
) -> tuple[list[str], list[str]]:
    """
    Bring the values to SI, in place.

    Parameters
    ----------
    values : (N, n) by quantity
    stamp : (N,) [ns]
    units : what is known of them
    position : unit of the positions, None where it is unknown
    meaning : of the efforts

    Returns
    -------
    Notes on what was not said by the user, and the quantities that count as SI for want of a unit

    """
    notes, bare = [], units.bare('velocity')
    if bare:
        values['velocity'][:] = math.nan
        notes.append(f'the velocities are in {bare}, whose size nothing says: left out')
    known = {'position': position, 'velocity': '' if bare else units.said.get('velocity')}
    scaled = (values[q] * units.factors(q, unit) for q, unit in known.items())
    ratio = usual_ratio((stamp - stamp[0]) * 1e-9, *scaled)
    found = [position or '', '']
    if np.isfinite(values['velocity']).any():
        found, told = units.of_velocities(position, ratio)
        notes += told
    effort, told = units.of_efforts(bool(meaning and meaning.current))
    final = dict(zip(QUANTITIES, (*found, effort), strict=True))
    for quantity, unit in final.items():
        values[quantity] *= units.factors(quantity, unit)
    return [*notes, *told], [q for q in ('position', 'effort') if not (final[q] or told)]


def unit_by_limits(position: np.ndarray, limits: np.ndarray) -> str | None:
    """
    Return the unit of positions (N, n) that their range proves.

    Parameters
    ----------
    position : as logged
    limits : (n,) largest position of each joint [rad], inf where there is none

    Returns
    -------
    'deg', '' where they may be rad, None where they are neither

    """
    known = np.isfinite(limits) & (limits > 0.0)
    magnitude = np.abs(position[:, known])
    largest = np.nanmax(magnitude, axis=0, initial=0.0) / limits[known]
    if not (largest > BEYOND_LIMIT).any():
        return ''
    if (largest * DEGREE < INSIDE_LIMIT).all():
        return 'deg'
    # Single wrong values are no unit.
    usual = np.quantile(np.nan_to_num(magnitude), WITHOUT_JUMPS, axis=0) / limits[known]
    return None if (usual > BEYOND_LIMIT).any() else ''


def units_by_ratio(ratio: float, position: str | None, velocity: str | None) -> list[str] | None:
    """
    Return units of positions and velocities that make the latter the former's derivatives.

    Parameters
    ----------
    ratio : of the velocities to these derivatives, as logged but for units that are known
    position, velocity : known units, None for unknown ones

    Returns
    -------
    Both units, '' for SI, or None where no units that are usual do

    """
    if math.isnan(ratio) or 0.5 < ratio < 2.0:
        return [position or '', velocity or '']
    for own in ('', 'deg', 'rev') if position is None else ('',):
        for other in ('', 'deg/s', 'rpm', 'rev/s') if velocity is None else ('',):
            scale = FACTORS['velocity'].get(other, 1.0) / FACTORS['position'].get(own, 1.0)
            if abs(ratio * scale - 1.0) < FACTOR_TOLERANCE:
                return [position or own, velocity or other]
    return None
