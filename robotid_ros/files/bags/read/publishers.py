"""Several publishers of joint states: which topic counts, one table of the joints asked for."""

from collections.abc import Sequence
import contextlib
import itertools
import re

import numpy as np

from ....core.model.urdf_parsing import movable_joints
from ....exceptions import RecordingError, RobotIdError, shortened, UnknownNameError
from ...formats.column_names import OTHER, REFERENCE
from ...formats.joint_table import FIELDS, interpolator, JointTable
from ..messages.message_decoding import Decoder
from ..schema.message_definitions import JOINT_STATE
from ..schema.session_header import JOINT_STATES_TOPIC
from .joint_states import fault_of
from .joint_topics import HALF, says_temperature
from .session_context import read_urdf
from .storage import Bag

# Messages of each topic that are looked at where there are several: a second at 100 Hz.
FIRST_MESSAGES = 100

# Publishers of some joints each are interpolated together when this share of their stamps has
# neighbours in all of them, at most so many usual intervals apart: a tenth may be lost at the ends
# and in gaps, publishers that ran one after the other are refused.
MIN_SHARED, MAX_SPACING = 0.9, 4.0


def find_topic(bag: Bag, joints: Sequence[str] | None = None) -> str:
    """
    Topic of the measured joint states of the robot.

    Of several it is one with positions of the robot, by its name not of commands or predictions,
    with efforts, called `/joint_states`, of most joints, the fullest: the first of these that
    tells them apart decides.

    Parameters
    ----------
    bag : an open recording
    joints : that are asked for, None for those of the options or of the robot description

    Raises
    ------
    RecordingError : there is none

    """
    counts = {topic: count for topic, count in bag.topics(JOINT_STATE).items() if count}
    counts = {t: count for t, count in counts.items() if not says_temperature(t)} or counts
    if not counts:
        recorded = shortened(sorted({c.topic for c in bag.connections}))
        raise RecordingError(
            f"'{bag.path}' holds no joint states (its topics: {recorded}), nor another topic with "
            'fields of positions and efforts by their names: record /joint_states, or name fields '
            "of a topic by --columns 'position=FIELD effort=FIELD'"
        )
    if len(counts) == 1:
        return next(iter(counts))
    first = {topic: _first_joints(bag, topic) for topic in counts}
    published = set().union(*(names for names, _ in first.values()))
    wanted = published & set(joints or _joints_of_robot(bag)) or published

    def rank(topic: str) -> tuple[bool | int, ...]:
        names, with_effort = first[topic]
        return (
            not wanted.isdisjoint(names),
            not _is_reference(topic),
            not wanted.isdisjoint(with_effort) or bool(bag.options.effort_topic),
            topic == JOINT_STATES_TOPIC,
            topic.endswith(JOINT_STATES_TOPIC),
            len(wanted & names),
            counts[topic],
        )

    best, *others = sorted(counts, key=rank, reverse=True)
    bag.add_note(
        f'the joint states of {best} count, not those of {shortened(others)}: name joints of '
        'another topic by --joints where these are the wrong ones'
    )
    return best


def _first_joints(bag: Bag, topic: str) -> tuple[set[str], set[str]]:
    """Return the joints with positions in the first messages, and those with efforts but 0."""
    messages = [data for _, data in itertools.islice(bag.messages(topic), FIRST_MESSAGES)]
    decoder = Decoder(bag.typestore, JOINT_STATE, fault_of)
    joints, with_effort = set[str](), set[str]()
    for number, payloads, _ in decoder.groups(messages):
        layout = decoder.layouts[number]
        names = layout.texts['name']
        known = np.isfinite(layout.column(payloads, 'position')).any(axis=0)
        live = np.nan_to_num(layout.column(payloads, 'effort')).any(axis=0)
        joints.update(itertools.compress(names, known))
        with_effort.update(itertools.compress(names, live))
    return joints, with_effort


def _joints_of_robot(bag: Bag) -> tuple[str, ...]:
    """Joints of the options, else of the robot description, as far as they are known."""
    if bag.options.joints:
        return bag.options.joints
    with contextlib.suppress(RobotIdError):
        return movable_joints(bag.options.urdf or read_urdf(bag) or '')[0]
    return ()


def _is_reference(topic: str) -> bool:
    """Whether a topic is of commanded, predicted or other than measured states by its name."""
    words = {word.lower() for word in re.findall('[A-Z]?[a-z]+|[A-Z]+', topic) if len(word) > 1}
    words |= {word.removesuffix('s') for word in words}
    return bool(words & (REFERENCE | OTHER))


def select_joints(tables: Sequence[JointTable], joints: Sequence[str] | None) -> JointTable:
    """
    Make one table with the joints asked for.

    One publisher that has them all is preferred, then one with effort, then the fastest; several
    that have some of them each are joined by interpolation.

    Raises
    ------
    UnknownNameError : nobody publishes a joint
    RecordingError : the joints come from publishers that do not run at one time

    """
    ranked = sorted(tables, key=lambda t: (t.has_effort, len(t.stamp)), reverse=True)
    if joints is None:
        joints = ranked[0].joints
    known = tuple(sorted({name for table in ranked for name in table.joints}))
    for joint in joints:
        if joint not in known:
            raise UnknownNameError('joint of the recording', joint, known)
    for table in ranked:
        if set(joints) <= set(table.joints):
            return table.columns(joints)
    return _interpolate_together(ranked, joints)


def _interpolate_together(ranked: Sequence[JointTable], joints: Sequence[str]) -> JointTable:
    """Bring all publishers onto the stamps of the slowest; exact where they run in step."""
    owners = {j: next(t for t in ranked if j in t.joints) for j in joints}
    used = {id(t): t for t in owners.values()}
    slowest = min(used.values(), key=lambda t: len(t.stamp))
    groups = ' and '.join(f'[{", ".join(t.joints)}]' for t in used.values())
    # A sample counts where every publisher has one before and one after it, not far away.
    together = np.ones(len(slowest.stamp), dtype=bool)
    columns: dict[str, dict[str, np.ndarray]] = {f: {} for f in FIELDS}
    exact = True
    for key, table in used.items():
        sorted_table = table.rows(np.unique(table.stamp, return_index=True)[1])
        inside, interpolate = interpolator(slowest.stamp, sorted_table.stamp, MAX_SPACING, HALF)
        together &= inside
        exact &= bool(np.isin(slowest.stamp, sorted_table.stamp).all())
        for joint in (j for j in joints if id(owners[j]) == key):
            index = table.joints.index(joint)
            for name in FIELDS:
                values = getattr(sorted_table, name)[:, index]
                columns[name][joint] = interpolate(values)
    if together.mean() < MIN_SHARED:
        raise RecordingError(
            f'joint states come from several publishers that do not run at one time ({groups}): '
            'record one publisher of all joints, or identify each group by itself'
        )
    note = '' if exact else f'{groups} come from different publishers: interpolated'
    tables = (np.column_stack([columns[f][j] for j in joints]) for f in FIELDS)
    notes = (note,) if note else ()
    result = JointTable(tuple(joints), slowest.stamp, slowest.received, *tables, notes=notes)
    return result.rows(together)
