"""Phases of a session, from the states of the excitation."""

from collections.abc import Iterable, Mapping, Sequence
import itertools
import math
from typing import NamedTuple

from ....core.signals.recording import Phase

# States in which the robot moves.
MEASURED = ('exciting', 'validating')
MOVING = ('approaching', *MEASURED, 'verifying')
STATES = ('idle', 'designing', *MOVING, 'done', 'failed')
# What a motion that has run to its end is followed by. Anything else cuts the session, whoever
# ended it: an excitation that was started anew says 'idle' or 'designing', and nothing comes of
# one that is gone.
GOES_ON = (*MOVING, 'done')
# Of a motion that count as missing [s]: some samples at 10 Hz. Phases have the stamps of the
# motion itself, whole ones lack nothing.
MIN_MISSING = 0.3
# Mean, lowest and highest share of the planned speed.
Speed = tuple[float, float, float]
FULL: Speed = (1.0, 1.0, 1.0)


class StateChange(NamedTuple):
    """
    A state, since when it holds [s] and when it was received [s].

    Of a motion also how many periods it has, and its speed so far.
    """

    name: str
    time: float
    received: float
    cycles: int = 1
    speed: Speed = FULL


def build_phases(
    states: Iterable[StateChange], periods: Mapping[str, float], end: float
) -> tuple[Phase, ...]:
    """
    Order states in time and make phases of them.

    Parameters
    ----------
    states : in the order of reception; others than those of a session are passed over
    periods : duration of one cycle of the motion of a phase, where it is known [s]
    end : last time of the recording, which begins at 0 [s]

    """
    ordered = sorted(_on_one_clock(states), key=lambda state: state.time)
    runs = [list(group) for _, group in itertools.groupby(ordered, key=lambda s: s.name)]
    phases = []
    for run, following in itertools.zip_longest(runs, runs[1:]):
        name, start = run[0].name, run[0].time
        stop = following[0].time if following else max(end, start)
        speed = run[-1].speed
        planned = periods.get(name, 0.0) * max(state.cycles for state in run) / speed[0]
        missing = planned - max(0.0, min(stop, end) - max(start, 0.0))
        missing = missing if missing > MIN_MISSING else 0.0
        goes_on = following is not None and following[0].name in GOES_ON
        cut = name in MOVING and (missing > 0.0 or not goes_on)
        phases.append(Phase(name, start, stop, cut, missing, speed))
    return tuple(phases)


def parse_speed(values: Mapping[str, str]) -> Speed:
    """Read the speed of a motion from the values of a state; what cannot be one is none."""
    try:
        mean, low, high = (float(values.get(k, 1.0)) for k in ('speed', 'speed_min', 'speed_max'))
    except ValueError:
        return FULL
    return (mean, low, high) if 0.0 <= low <= mean <= high < math.inf and mean > 0.0 else FULL


def cut_notes(phases: Sequence[Phase]) -> tuple[str, ...]:
    """Say which phases are cut."""
    return tuple(
        f'the session was cut while {phase.name}'
        + (f', {phase.missing:.1f} s of this motion are missing' if phase.missing else '')
        + ': record a whole session'
        for phase in phases
        if phase.cut
    )


def speed_notes(phases: Sequence[Phase]) -> tuple[str, ...]:
    """Say which motions ran at another speed than planned."""
    notes = []
    for phase in phases:
        mean, low, high = phase.speed
        if phase.name not in MEASURED or phase.speed == FULL:
            continue
        share = f'at {mean:.0%} of the planned speed'
        if not phase.steady:
            share = f'at {low:.0%} to {high:.0%} of the planned speed, so its periods differ'
        notes.append(
            f'{phase.name} ran {share}, by the speed scaling: inertias are known better at 100%'
        )
    return tuple(notes)


def _on_one_clock(states: Iterable[StateChange]) -> Iterable[StateChange]:
    """
    Put the end of a session behind all of it.

    Motions have stamps of the robot's clock, all other states those of the node's.
    """
    latest = float('-inf')
    for state in states:
        if state.name not in STATES:
            continue
        if state.name not in MOVING and state.time < latest:
            state = state._replace(time=max(state.received, latest))
        latest = max(latest, state.time)
        yield state
