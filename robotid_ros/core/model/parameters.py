"""Standard parameters: names, units and the one permutation between our order and Pinocchio's."""

from collections.abc import Iterable
import dataclasses
import re

import numpy as np

from ..arrays import Array
from .friction import FrictionTerm

INERTIAL = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'MX', 'MY', 'MZ', 'M')
INERTIAL_UNITS = ('kg·m²',) * 6 + ('kg·m',) * 3 + ('kg',)
INERTIAL_SYMBOLS = tuple(zip(INERTIAL, INERTIAL_UNITS, strict=True))
# Pinocchio: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz, at the joint frame like ours.
PINOCCHIO_ORDER = np.array([4, 5, 7, 6, 8, 9, 1, 2, 3, 0])
PINOCCHIO_ORDER.flags.writeable = False


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One standard parameter of a robot."""

    name: str  # symbol and number, 'ZZ1'; couplings carry the numbers of their joints, 'Ia56'
    symbol: str  # 'ZZ'
    unit: str  # SI, joint side
    joint: str  # name of the joint, or of the coupling, that it belongs to


def numbered(
    number: int | str, joint: str, symbols: Iterable[tuple[str, str]] = INERTIAL_SYMBOLS
) -> list[Parameter]:
    """Return parameters by symbol and unit, of a link by default, with its joint's number."""
    return [Parameter(f'{symbol}{number}', symbol, unit, joint) for symbol, unit in symbols]


def drive_symbols(
    terms: tuple[FrictionTerm, ...], prismatic: bool, rotor_inertia: bool = False
) -> list[tuple[str, str]]:
    """Return symbol and unit of a joint's rotor inertia, if asked for, and friction parameters."""
    force, length = ('N', 'm') if prismatic else ('N·m', 'rad')
    rotor = [('Ia', 'kg' if prismatic else 'kg·m²')] if rotor_inertia else []
    return rotor + [
        (symbol, term.kind.unit.format(f=force, l=length))
        for term in terms
        for symbol in term.kind.symbols
    ]


def in_effort_unit(unit: str, effort: str) -> str:
    """Return a unit where efforts are in `effort`, '?': unknown, '': N·m or N; kg·m² is N·m·s²."""
    if not effort:
        return unit
    symbol = 'effort' if effort == '?' else effort
    if mechanical := {'kg·m²': 's²', 'kg·m': 's²/m', 'kg': 's²/m²'}.get(unit):
        return f'{symbol}·{mechanical}'
    return re.sub('^(N·m|N)(?=[·/]|$)', lambda _: symbol, unit)


def from_pinocchio(dynamic: Array) -> Array:
    """Reorder Pinocchio's ten parameters `(..., 10)` into `XX XY XZ YY YZ ZZ MX MY MZ M`."""
    return np.asarray(dynamic)[..., PINOCCHIO_ORDER]


def to_pinocchio(inertial: Array) -> Array:
    """Reorder `XX XY XZ YY YZ ZZ MX MY MZ M` `(..., 10)` into Pinocchio's dynamic parameters."""
    dynamic = np.empty_like(np.asarray(inertial, dtype=float))
    dynamic[..., PINOCCHIO_ORDER] = inertial
    return dynamic
