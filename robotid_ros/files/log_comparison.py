"""Several recordings, which have to be of one robot: joints, descriptions, positions at rest."""

from collections.abc import Sequence

from ..core.setup.joint_selection import MIN_TRAVEL, PositionRange
from ..core.signals.recording import range_of_positions, Recording
from ..exceptions import RecordingError
from .bags import ChunkedRecording

Log = Recording | ChunkedRecording


def check_joints(recordings: Sequence[Log], wanted: Sequence[str] = ()) -> None:
    """
    Check that all recordings have the same joints, unless some are asked for.

    Raises
    ------
    RecordingError : they differ

    """
    first = recordings[0]
    for other in recordings[1:] if not wanted else ():
        if set(other.joints) == set(first.joints):
            continue
        common = [joint for joint in first.joints if joint in other.joints]
        remedy = (
            f'name those to identify of both by --joints {",".join(common)}'
            if common
            else 'identify each robot by itself'
        )
        raise RecordingError(
            f"'{first.source}' has efforts and positions of {', '.join(first.joints)}, "
            f"'{other.source}' of {', '.join(other.joints)}: {remedy}"
        )


def check_descriptions(recordings: Sequence[Log]) -> None:
    """
    Check that all recordings that carry a robot description carry the same.

    Raises
    ------
    RecordingError : they differ

    """
    known = [r for r in recordings if r.urdf is not None]
    for other in known[1:]:
        if str(other.urdf).split() != str(known[0].urdf).split():
            raise RecordingError(
                f"'{known[0].source}' and '{other.source}' carry different robot descriptions: "
                'give the one that holds for both with --urdf, or identify each robot by itself'
            )


def position_ranges(
    recordings: Sequence[Log], wanted: Sequence[str] = ()
) -> tuple[dict[str, PositionRange], dict[str, PositionRange]]:
    """
    Return the position ranges of the joints with efforts, and of those without.

    A joint that moves while its effort never changes counts as one without, unless it is wanted.
    Where a joint moves in no recording, its range is that of the first one.
    """
    ranges, left_out = dict[str, PositionRange](), dict[str, PositionRange]()
    for recording in recordings:
        dead = set(_dead_joints(recording)) - set(wanted)
        for joint, found in _ranges(recording).items():
            group = left_out if joint in dead else ranges
            group[joint] = _union(group.get(joint, found), found)
        for joint, (lower, upper) in recording.left_out.items():
            found = PositionRange(lower, upper)
            left_out[joint] = _union(left_out.get(joint, found), found)
    return {k: v for k, v in ranges.items() if k not in left_out}, left_out


def _union(known: PositionRange, found: PositionRange) -> PositionRange:
    if not (found.moves or known.moves):
        return known
    return PositionRange(min(known.lower, found.lower), max(known.upper, found.upper))


def _dead_joints(recording: Log) -> list[str]:
    """Return the joints that move without any change of effort, unless no effort changes."""
    if not isinstance(recording, Recording):
        return []
    low, high = range_of_positions(recording.effort)
    dead = low == high
    ranges = _ranges(recording)
    names = zip(recording.joints, dead, strict=True)
    return [] if dead.all() else [k for k, d in names if d and ranges[k].moves]


def check_positions(recordings: Sequence[Log], joints: Sequence[str]) -> None:
    """
    Check that joints which count as locked stand at one position in all recordings.

    Raises
    ------
    RecordingError : they stand at different ones

    """
    first = _ranges(recordings[0])
    for other in recordings[1:]:
        here = _ranges(other)
        for joint in joints:
            if joint not in first or joint not in here:
                continue
            one, two = first[joint], here[joint]
            if abs(one.middle - two.middle) > MIN_TRAVEL and not (one.moves or two.moves):
                raise RecordingError(
                    f"{joint} stands at {one.middle:.4g} in '{recordings[0].source}' and at "
                    f"{two.middle:.4g} in '{other.source}': identify these apart, or record "
                    'with it at one place'
                )


def _ranges(recording: Log) -> dict[str, PositionRange]:
    ends = recording.position_range.T
    return {
        joint: PositionRange(float(low), float(high))
        for joint, (low, high) in zip(recording.joints, ends, strict=True)
    }
