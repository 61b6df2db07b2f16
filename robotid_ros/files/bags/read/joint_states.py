"""Joint states of a recording as one table, whoever published them and in whatever order."""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
from dataclasses import dataclass, field

import numpy as np

from ....exceptions import RecordingError, UnknownNameError
from ..schema.message_definitions import JOINT_STATE
from ..schema.session_header import JOINT_STATES_TOPIC
from .controller_states import commanded_effort
from .message_decoding import BATCH, batches, Decoder, Layout, stamps
from .storage import Bag

FIELDS = ('position', 'velocity', 'effort')
# Publishers of some joints each are joined when so large a part of their stamps has neighbours in
# all of them, no more than so many usual intervals apart.
MIN_SHARED, MAX_SPACING = 0.9, 4.0


@dataclass(frozen=True)
class JointStates:
    """
    Joint states in the order of recording; NaN where a message leaves a field empty.

    Attributes
    ----------
    joints : names of the columns
    stamp, received : (N,) times [ns]
    position, velocity, effort : (N, n)
    notes : what was done to them, in words

    """

    joints: tuple[str, ...]
    stamp: np.ndarray
    received: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def columns(self, joints: Sequence[str]) -> 'JointStates':
        """Return these joints, in this order."""
        index = [self.joints.index(joint) for joint in joints]
        tables = (t[:, index] for t in (self.position, self.velocity, self.effort))
        return JointStates(tuple(joints), self.stamp, self.received, *tables, notes=self.notes)

    def rows(self, index: np.ndarray | slice) -> 'JointStates':
        """Return these messages."""
        fields = (self.stamp, self.received, self.position, self.velocity, self.effort)
        return JointStates(self.joints, *(f[index] for f in fields), notes=self.notes)

    @property
    def has_effort(self) -> bool:
        """Whether any effort was published."""
        return bool(np.isfinite(self.effort).any())


@dataclass
class _JointSet:
    """Messages with one set of joints, as decoded so far."""

    joints: tuple[str, ...]
    order: list[np.ndarray] = field(default_factory=list)
    parts: list[JointStates] = field(default_factory=list)

    def joined(self) -> JointStates:
        sequence = np.argsort(np.concatenate(self.order), kind='stable')
        fields = ('stamp', 'received', 'position', 'velocity', 'effort')
        stamp, received, *tables = (
            np.concatenate([getattr(p, f) for p in self.parts])[sequence] for f in fields
        )
        if len(stamp) > 1 and not stamp.any():
            note = 'the joint states carry no stamps: the times of reception count'
            return JointStates(self.joints, received, received, *tables, notes=(note,))
        return JointStates(self.joints, stamp, received, *tables)


def find_topic(bag: Bag) -> str:
    """
    Topic of the joint states: `/joint_states`, else the only or fullest one of its type.

    Raises
    ------
    RecordingError : there is none

    """
    topics = bag.topics(JOINT_STATE)
    topics = {topic: count for topic, count in topics.items() if count}
    if not topics:
        others = ', '.join(sorted({c.topic for c in bag.connections})) or 'none'
        raise RecordingError(
            f"'{bag.path}' holds no joint states (its topics: {others}): record /joint_states"
        )
    named = [t for t in topics if t == JOINT_STATES_TOPIC]
    named = named or [t for t in topics if t.endswith(JOINT_STATES_TOPIC)]
    return max(named or topics, key=lambda topic: topics[topic])


def concatenate(first: JointStates, second: JointStates) -> JointStates:
    """Put the messages of two tables with the same columns behind each other."""
    fields = ('stamp', 'received', *FIELDS)
    tables = (np.concatenate([getattr(first, f), getattr(second, f)]) for f in fields)
    return JointStates(second.joints, *tables, notes=second.notes)


def read_joint_states(
    bag: Bag,
    topic: str,
    seconds: float = np.inf,
    start: int | None = None,
    stop: int | None = None,
) -> Iterator[list[JointStates]]:
    """
    Read the joint states of a topic, those with the same set of joints together.

    Parameters
    ----------
    bag : an open recording
    topic : of sensor_msgs/JointState
    seconds : start a new list whenever so much time has passed, to bound the memory
    start, stop : only what was received between these times [ns]

    Yields
    ------
    One table per set of joints.

    """
    decoder = Decoder(bag.typestore, JOINT_STATE)
    joint_sets: dict[frozenset[str], _JointSet] = {}
    count, began = 0, None
    for batch in batches(bag.messages(topic, start=start, stop=stop), BATCH):
        received = np.array([time for _, time, _ in batch], np.int64)
        if began is None:
            began = received[0]
        if joint_sets and received[0] - began >= seconds * 1e9:
            yield _with_effort(bag, [p.joined() for p in joint_sets.values()])
            joint_sets, began = {}, received[0]
        for number, payloads, rows in decoder.groups([data for _, _, data in batch]):
            part = _table(decoder.layouts[number], payloads, received[rows])
            known = joint_sets.setdefault(frozenset(part.joints), _JointSet(part.joints))
            known.order.append(rows + count)
            known.parts.append(part if part.joints == known.joints else part.columns(known.joints))
        count += len(batch)
    if joint_sets:
        yield _with_effort(bag, [p.joined() for p in joint_sets.values()])


def _with_effort(bag: Bag, tables: list[JointStates]) -> list[JointStates]:
    """Take the controllers' commands for efforts that nobody reports."""
    if any(table.has_effort for table in tables):
        return tables
    note = "the joint states report no effort: the controller's commands are taken for it"
    filled = []
    for table in tables:
        effort = commanded_effort(bag, table.joints, table.stamp, table.received)
        notes = table.notes if np.isnan(effort).all() else (*table.notes, note)
        filled.append(dataclasses.replace(table, effort=effort, notes=notes))
    return filled


def _table(layout: Layout, payloads: np.ndarray, received: np.ndarray) -> JointStates:
    joints = layout.texts.get('name', ())
    if len(set(joints)) != len(joints):
        raise RecordingError(
            f'joint states name a joint twice ({", ".join(joints)}): rename the joints'
        )
    columns = []
    for name in ('position', 'velocity', 'effort'):
        values = layout.column(payloads, name)
        if values.shape[1] == 0:
            values = np.full((len(payloads), len(joints)), np.nan)
        elif values.shape[1] != len(joints):
            raise RecordingError(
                f'joint states have {values.shape[1]} values of {name} for {len(joints)} joints: '
                'correct the publisher and record again'
            )
        columns.append(values.astype(float, copy=False))
    return JointStates(joints, stamps(layout, payloads), received, *columns)


def select_joints(tables: Sequence[JointStates], joints: Sequence[str] | None) -> JointStates:
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


def _interpolate_together(ranked: Sequence[JointStates], joints: Sequence[str]) -> JointStates:
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
        inside, interpolate = _interpolator(slowest.stamp, sorted_table.stamp)
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
    result = JointStates(
        tuple(joints), slowest.stamp, slowest.received, *tables, notes=(note,) if note else ()
    )
    return result.rows(together)


def _interpolator(
    wanted: np.ndarray, stamp: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Tell where stamps lie between others, not far apart, and how to interpolate there."""
    if len(stamp) < 2:
        return np.zeros(len(wanted), dtype=bool), lambda v: np.full(len(wanted), np.nan)
    after = np.clip(np.searchsorted(stamp, wanted), 1, len(stamp) - 1)
    width = stamp[after] - stamp[after - 1]
    usual = float(np.median(np.diff(stamp)))
    # At the ends half a sample is not worth a hole.
    inside = (wanted >= stamp[0] - 0.5 * usual) & (wanted <= stamp[-1] + 0.5 * usual)
    return inside & (width <= MAX_SPACING * usual), lambda v: np.interp(
        wanted - stamp[0], stamp - stamp[0], v
    )
