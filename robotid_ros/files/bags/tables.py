"""Joint states of a bag that are no sensor_msgs/JointState: topics whose fields are columns."""

from collections import defaultdict
from collections.abc import Sequence
import contextlib
import dataclasses

import numpy as np

from ...core.finding_codes import finding
from ..formats.column_selection import find, select
from ..formats.joint_table import JointTable
from ..formats.read_options import NEEDED
from ..formats.stamps import continuous
from ..formats.table import ColumnTable, from_arrays
from ..formats.table_joints import read_joint_table
from .messages import Layout
from .storage import Bag

# Messages of a topic that are looked at, and fewer than which are no recording of a motion.
FIRST, FEWEST = 50, 10
_TIME = 'time of reception'


def joint_states_of_topics(bag: Bag) -> tuple[str, JointTable] | None:
    """
    Return the topic whose fields are positions and efforts of joints, and its joint states.

    Of several it is the one with most messages. None where there is none. Raises RobotIdError
    where the fields do not fit the robot or the options.
    """
    for connection in sorted(bag.connections, key=lambda c: -c.msgcount):
        if connection.msgcount < FEWEST:
            continue
        # Whatever messages of unknown types lead to: they are not joint states then.
        with contextlib.suppress(Exception):
            probe = _table(bag, connection.topic, FIRST)
            found = set(find(probe, bag.options.known_joints))
            found |= {q for q, pattern in bag.options.columns if select(probe, q, pattern)}
            if not set(NEEDED[bag.options.commands]) <= found:
                continue
            table = _table(bag, connection.topic)
            note = finding('states_of_fields', topic=connection.topic)
            table = dataclasses.replace(table, notes=(*table.notes, note))
            break
    else:
        return None
    return connection.topic, continuous(read_joint_table(table, bag.options), bag.path)


def _table(bag: Bag, topic: str, limit: int | None = None) -> ColumnTable:
    """Make a table of the messages of a topic, whose columns are called after their fields."""
    parts: dict[int, list[tuple[np.ndarray, dict[str, np.ndarray]]]] = defaultdict(list)
    layouts: dict[int, Layout] = {}
    for layout, payloads, received, _ in bag.groups(topic, limit=limit):
        layouts[id(layout)] = layout
        parts[id(layout)].append((received, _columns(layout, payloads)))
    # The layout that most messages have.
    best = max(parts, key=lambda number: sum(len(time) for time, _ in parts[number]))
    joined = {_TIME: np.concatenate([time for time, _ in parts[best]])}
    for field in parts[best][0][1]:
        values = np.concatenate([columns[field] for _, columns in parts[best]])
        if not (field.startswith('header.stamp') and not values.any()):
            joined[field] = values[:, 0] if values.shape[1] == 1 else values
    words = {key: np.array(values) for key, values in layouts[best].texts.items()}
    return from_arrays(f'{topic} of {bag.path}', joined | words, units={_TIME: 'ns'})


def _columns(layout: Layout, payloads: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers of messages, (M, n) each, by the names of joints and interfaces."""
    joints: Sequence[str] = next(
        (t for path, t in layout.texts.items() if path.endswith('joint_names')), ()
    )
    found = {}
    for path in layout.numbers:
        values = layout.column(payloads, path)
        parent = path.rpartition('.')[0]
        own = next((t for p, t in layout.texts.items() if p.rpartition('.')[0] == parent), ())
        place, _, number = parent.rpartition('.')
        if number.isdecimal() and int(number) < len(joints) and len(own) == values.shape[1]:
            for k, interface in enumerate(own):
                found[f'{place}.{joints[int(number)]}.{interface}'] = values[:, k : k + 1]
        else:
            found[path] = values
    return found
