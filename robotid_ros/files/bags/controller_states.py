"""What trajectory controllers publish of themselves: what they follow and what they command."""

from collections.abc import Collection, Sequence
import dataclasses
import itertools
import math

import numpy as np

from ...core.signals.recording import Recording, Reference
from ...core.timing.update_rate import observed_update_rate
from .messages import CONTROLLER_STATE, Decoder, Layout, stamps
from .storage import Bag

# Of a controller's state, in the order of a `Reference`; 'desired' until ROS 2 Humble.
REFERENCE_FIELDS = (
    ('reference.positions', 'desired.positions'),
    ('reference.velocities', 'desired.velocities'),
    ('reference.accelerations', 'desired.accelerations'),
    ('output.effort', 'output.velocities', 'output.positions'),
)
Window = tuple[int | None, int | None]
UNBOUNDED: Window = (None, None)
# Messages with one stamp are received at most so far apart, whatever their topics [ns]. Reading a
# part takes so much more on both of its sides.
MARGIN = 2_000_000_000
# Updates for which a command counts as held: a few lost messages are bridged, a pause is not.
MAX_COMMAND_AGE = 4.5


def controller_state_topics(bag: Bag, name: str = '') -> list[str]:
    """Topics of controller states, those of a controller of this name first, then the fullest."""
    if CONTROLLER_STATE not in bag.typestore.fielddefs:
        return []
    topics = {topic: count for topic, count in bag.topics(CONTROLLER_STATE).items() if count}
    return sorted(topics, key=lambda t: (f'/{name}/' in t, topics[t]), reverse=True)


def read_fields(
    bag: Bag,
    topic: str,
    joints: Sequence[str],
    fields: Sequence[Sequence[str]],
    window: Window = UNBOUNDED,
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """
    Read fields of the states of one controller.

    Parameters
    ----------
    bag : where from
    topic : of the controller
    joints : columns; a controller that lacks one leaves it NaN
    fields : of each the first that holds something counts, such as ('output.effort',)
    window : times of reception between which it is read [ns]

    Returns
    -------
    Stamps (N,) [ns] and per field (N, n); None where the controller has none of the joints.

    """
    decoder = Decoder(bag.typestore, CONTROLLER_STATE)
    order, parts = [], []
    count = 0
    for batch in bag.blocks(topic, *window):
        for number, payloads, rows in decoder.groups(batch):
            layout = decoder.layouts[number]
            if set(joints) & set(layout.texts.get('joint_names', ())):
                order.append(rows + count)
                values = [_column(layout, payloads, joints, names) for names in fields]
                parts.append((stamps(layout, payloads), *values))
        count += batch.total
        bag.add_left_out(topic, decoder.left_out)
    if not parts:
        return None
    sequence = np.argsort(np.concatenate(order), kind='stable')
    stamp, *columns = (np.concatenate(column)[sequence] for column in zip(*parts, strict=True))
    return stamp, columns


def controllers_of(bag: Bag, joints: Collection[str], among: Collection[str]) -> list[str]:
    """Topics of the controllers whose joints, as far as they are of `joints`, are `among` some."""
    found = []
    for topic in controller_state_topics(bag):
        decoder = Decoder(bag.typestore, CONTROLLER_STATE)
        first = [data for _, data in itertools.islice(bag.messages(topic), 1)]
        named = [decoder.layouts[number].texts for number, _, _ in decoder.groups(first)]
        own = set(joints) & {joint for texts in named for joint in texts.get('joint_names', ())}
        if own and own <= set(among):
            found.append(topic)
    return found


def add_reference(bag: Bag, recording: Recording, window: Window = UNBOUNDED) -> Recording:
    """
    Add what the controller followed and commanded, and the rate at which it did.

    Parameters
    ----------
    bag : where from
    recording : its joints, origin and the controller to prefer when several were recorded
    window : times of reception between which it is read [ns]

    """
    reference, controller = read_reference(bag, recording, window), recording.controller
    recording = dataclasses.replace(recording, reference=reference)
    if reference is None or controller is None:
        return recording
    rate = observed_update_rate(controller.rate, reference.time, recording.rate)
    if rate == controller.rate:
        return recording
    stated = f'{controller.rate:g} Hz' if controller.rate else 'unknown'
    note = (
        f"the states of '{controller.name}' come at {rate:.4g} Hz, its parameter update_rate is "
        f'{stated}: its updates are taken to be as frequent as its states'
    )
    controller = dataclasses.replace(controller, rate=rate)
    return dataclasses.replace(recording, controller=controller, notes=(*recording.notes, note))


def read_reference(bag: Bag, recording: Recording, window: Window = UNBOUNDED) -> Reference | None:
    """Read what the controller followed and commanded, see `add_reference`."""
    name = recording.controller.name if recording.controller else ''
    for topic in controller_state_topics(bag, name):
        found = read_fields(bag, topic, recording.joints, REFERENCE_FIELDS, window)
        if found is None or np.isnan(found[1][0]).all(axis=0).any():
            continue
        stamp, (q, dq, ddq, command) = found
        known = bool(np.isfinite(command).any())
        time = (stamp - recording.origin) * 1e-9
        return Reference(time, q, dq, ddq, command if known else None)
    return None


def commanded_effort(
    bag: Bag,
    topics: Sequence[str],
    joints: Sequence[str],
    stamp: np.ndarray,
    received: np.ndarray,
) -> np.ndarray:
    """
    Return what controllers commanded one cycle of the hardware before each of these times.

    That is what hardware reports that has no sensor: the command which it applied last.

    Parameters
    ----------
    bag : where from
    topics : of the controllers, the first one that knows a joint counts
    joints : names of the columns
    stamp, received : (N,) of joint states [ns]

    Returns
    -------
    (N, n), NaN where nothing is known.

    """
    effort = np.full((len(stamp), len(joints)), np.nan)
    # A controller may update less often than its hardware applies and reports what it commands.
    steps = np.diff(np.unique(stamp))
    spacing = float(np.median(steps)) if len(steps) else math.inf
    window = int(received.min()) - MARGIN, int(received.max()) + MARGIN
    for topic in topics:
        found = read_fields(bag, topic, joints, [('output.effort',)], window)
        if found is None or len(found[0]) < 2:
            continue
        at, first = np.unique(found[0], return_index=True)
        period = float(np.median(np.diff(at)))
        cycle = min(period, spacing)
        row = np.searchsorted(at, stamp - cycle / 2, side='right') - 1
        recent = (row >= 0) & (stamp - at[row] <= MAX_COMMAND_AGE * period)
        held = np.where(recent[:, None], found[1][0][first][row], np.nan)
        effort = np.where(np.isnan(effort), held, effort)
    return effort


def _column(
    layout: Layout, payloads: np.ndarray, joints: Sequence[str], fields: Sequence[str]
) -> np.ndarray:
    names = layout.texts['joint_names']
    values = np.full((len(payloads), len(joints)), np.nan)
    field = next((f for f in fields if layout.numbers.get(f)), fields[0])
    found = layout.column(payloads, field)
    if found.shape[1] == len(names):
        for j, joint in enumerate(joints):
            if joint in names:
                values[:, j] = found[:, names.index(joint)]
    return values
