"""Any log as the package's own bag."""

from collections.abc import Callable
from dataclasses import dataclass
import math
import operator
import os
from pathlib import Path
import shutil
import tempfile
from typing import Any

import numpy as np

from ..core.findings import Finding
from ..exceptions import FileError
from .atomic import file_errors
from .bags.joint_states import find_topic, read_joint_states
from .bags.joint_topics import topics_of
from .bags.mcap_writer import BagWriter
from .bags.messages import CONTROLLER_STATE, JOINT_STATE, JOINT_STATES_TOPIC, STATUS, STRING
from .bags.opening import open_bag
from .bags.recording import CHUNK_DURATION
from .bags.session import DESCRIPTION_TOPIC, SESSION_TOPIC, STATE_TOPIC
from .bags.storage import Bag
from .formats.joint_table import FIELDS, JointTable
from .formats.read_options import DEFAULTS, ReadOptions

# Endings of files that nobody means as the folder of a bag.
OTHER_SUFFIXES = frozenset(('.pdf .csv .txt .json .yaml .yml .html .xml .urdf .png .bag .db3 .npz '
                            '.mat .h5 .parquet .zip').split())  # fmt: skip


@dataclass(frozen=True)
class Converted:
    """A new bag: where, how many joint states of which joints for how long [s], notes."""

    path: Path
    joints: tuple[str, ...]
    count: int
    duration: float
    notes: tuple[Finding, ...]


def convert(
    source: str | Path,
    output: str | Path,
    options: ReadOptions = DEFAULTS,
    progress: Callable[[float], None] = lambda _: None,
) -> Converted:
    """
    Write a log as a bag: joint states in SI with their efforts, and what a session holds beside.

    The bag appears whole or not at all.

    Parameters
    ----------
    source : bag of ROS 2 or ROS 1, CSV, npz, MAT, HDF5 or Parquet file, LeRobot data set
    output : `.mcap` file or folder, which must not exist
    options : what the log does not say of itself
    progress : called with the share that is done

    Raises
    ------
    FileError : the output exists or cannot be written
    RobotIdError : the source cannot be read

    """
    output = Path(output)
    with file_errors(output):
        if output.exists() or output.is_symlink():
            raise FileExistsError
    if output.suffix.lower() in OTHER_SUFFIXES:
        raise FileError(
            f"'{output}' would be a folder with a bag: name a .mcap file, or a folder without an "
            'ending'
        )
    with open_bag(source, options) as bag:
        with file_errors(output):
            output.parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f'.{output.name}.', dir=output.parent))
        try:
            single = output.suffix == '.mcap'
            name = output.stem if single else output.name
            with BagWriter(folder, name, flush_period=math.inf) as writer:
                _copy_context(bag, writer)
                result = _write_joint_states(bag, writer, output, progress)
            with file_errors(output):  # fails where the name is taken, but by an empty folder
                if single:
                    os.link(next(writer.path.glob('*.mcap')), output)
                else:
                    os.rename(writer.path, output)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return result


def _copy_context(bag: Bag, writer: BagWriter) -> None:
    """Copy description, session, phases and controller states as they are."""
    wanted: dict[str, tuple[str, ...]] = {STRING: (SESSION_TOPIC,), STATUS: (STATE_TOPIC,)}
    if not bag.options.urdf:
        wanted[STRING] = (SESSION_TOPIC, DESCRIPTION_TOPIC)
    topics = topics_of(bag, CONTROLLER_STATE)
    for kind, names in wanted.items():
        topics += [t for t, n in bag.topics(kind).items() if n and t.endswith(names)]
    for topic in dict.fromkeys(topics):
        kind = bag.kind(topic)
        text, _ = bag.typestore.generate_msgdef(kind, ros_version=2)
        writer.add_topic(
            topic,
            kind,
            latched=kind == STRING,
            definition_and_hash=(text, bag.typestore.hash_rihs01(kind)),
        )
        for received, data in bag.messages(topic):
            writer.write(topic, data, received)


def _write_joint_states(
    bag: Bag, writer: BagWriter, output: Path, progress: Callable[[float], None]
) -> Converted:
    """Write the joint states of all publishers in the order of reception."""
    topic = find_topic(bag)
    total = max(1, bag.count(topic))
    joints: dict[str, None] = {}
    notes: dict[Finding, None] = {}
    count, first, last = 0, math.inf, -math.inf
    writer.add_topic(JOINT_STATES_TOPIC, JOINT_STATE)
    for tables in read_joint_states(bag, topic, CHUNK_DURATION):
        if not count and bag.options.urdf:
            start = min(int(table.received.min()) for table in tables)
            writer.write_text(DESCRIPTION_TOPIC, bag.options.urdf, start)
        messages = list[tuple[int, bytes]]()
        for table in tables:
            serialized = serialize_joint_states(bag.typestore, table)
            messages += zip(table.received.tolist(), serialized, strict=True)
        if len(tables) > 1:
            messages.sort(key=operator.itemgetter(0))
        for received, message in messages:
            writer.write(JOINT_STATES_TOPIC, message, received)
        for table in tables:
            joints.update(dict.fromkeys(table.joints))
            notes.update(dict.fromkeys(table.notes))
            first, last = min(first, table.stamp.min()), max(last, table.stamp.max())
            count += len(table.stamp)
        progress(count / total)
    notes.update(dict.fromkeys(bag.notes))
    return Converted(output, tuple(joints), count, (last - first) * 1e-9, tuple(notes))


def serialize_joint_states(typestore: Any, table: JointTable) -> list[bytes]:
    """Serialize the rows of a table; a quantity without any value stays empty."""
    types, names = typestore.types, list(table.joints)
    header, time = types['std_msgs/msg/Header'], types['builtin_interfaces/msg/Time']
    filled = [x if np.isfinite(x).any() else x[:, :0] for x in (getattr(table, k) for k in FIELDS)]
    messages = (
        types[JOINT_STATE](header(time(*divmod(stamp, 10**9)), ''), names, *row)
        for stamp, *row in zip(table.stamp.tolist(), *filled, strict=True)
    )
    return [bytes(typestore.serialize_cdr(message, JOINT_STATE)) for message in messages]
