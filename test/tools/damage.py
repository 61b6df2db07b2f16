"""Files of every kind that the package reads, and damage done to them by chance."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
import random
import re
import shutil
import sqlite3
from typing import Any

from bag_tools import EPOCH, joint_state, status, STORE, write_sqlite
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
import numpy as np
from rosbags import rosbag1
from rosbags.typesys import get_typestore, Stores
import yaml

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.bags import BagWriter, dump_session, RecordedSession
from robotid_ros.files.bags.session import SESSION_TOPIC

URDF = Path(__file__).resolve().parents[2] / 'urdf' / 'scara.urdf'
JOINT_STATE = 'sensor_msgs/msg/JointState'
STATUS = 'diagnostic_msgs/msg/DiagnosticStatus'
RATE, SECONDS = 100.0, 8.0
# What stands in a text where something else should.
WEIRD = (
    *('nan', 'inf', '-1', '0', '1e999', '-1e-320', '9' * 5000, '1e999999999', '2026-13-45'),
    *('', '~', '"', '[' * 30_000, '{a: ' * 3000, '? [a]: b', '!!int "a"', '*x', '&x [*x]'),
    *('a\x1b[31mb', 'j$\\frac{1$', '${mass}', '\u202e', '<a>', '&amp;', 'x' * 70_000, 'true'),
)
Command = list[object]


@dataclass(frozen=True)
class Good:
    """
    Sound files in one folder.

    Attributes
    ----------
    folder : where they are
    messages : topic, time [ns], payload of the recording

    """

    folder: Path
    messages: list[tuple[str, int, bytes]]


def make_good(folder: Path) -> Good:
    """Write one recording of the SCARA arm in every format, and what is read beside it."""
    robot = build_robot(URDF.read_text(), RobotSettings())
    t = np.arange(0.0, SECONDS, 1 / RATE)
    phase = 2 * np.pi * np.arange(1, 4)[:, None] * t / SECONDS
    q = np.stack([(np.sin(phase + s).T / [1, 2, 3]).sum(axis=1) for s in (0.3, 1.1)], axis=1)
    dq = np.gradient(q, t, axis=0)
    tau = inverse_dynamics(robot, robot.prior, q, dq, np.gradient(dq, t, axis=0))
    tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    messages = []
    settings = {
        'robot': {'name': 'scara'},
        'identification': {'method': 'ols', 'model': 'plain'},
    }
    with BagWriter(folder, 'bag') as writer:
        writer.add_topic('/joint_states', JOINT_STATE)
        writer.write_text('/robot_description', robot.urdf, EPOCH)
        writer.write_text(
            SESSION_TOPIC, dump_session(RecordedSession(configuration=settings)), EPOCH
        )
        writer.add_topic('/excitation/state', STATUS)
        writer.write('/excitation/state', status({'state': 'exciting'}), EPOCH)
        for k, time in enumerate(t):
            stamp = EPOCH + round(time * 1e9)
            data = joint_state(stamp, robot.joints, q[k], dq[k], tau[k])
            writer.write('/joint_states', data, stamp)
            if k % 50 == 49:
                writer.flush()
    with (folder / 'bag' / 'bag.mcap').open('rb') as stream:
        for _, channel, message in make_reader(stream).iter_messages():
            messages.append((channel.topic, message.log_time, message.data))
    write_sqlite(folder, (data for topic, _, data in messages if topic == '/joint_states'), 'sql')
    columns = {'t': t, 'q1': q[:, 0], 'q2': q[:, 1], 'tau1': tau[:, 0], 'tau2': tau[:, 1]}
    _write_tables(folder, columns)
    shutil.copy(URDF, folder / 'arm.urdf')
    text = {
        '/**': {'ros__parameters': {**settings, 'robot': {'name': 'scara', 'urdf': 'arm.urdf'}}}
    }
    (folder / 'arm.yaml').write_text(yaml.safe_dump(text))
    return Good(folder, messages)


def _write_tables(folder: Path, columns: dict[str, np.ndarray]) -> None:
    import h5py
    import pyarrow
    import pyarrow.parquet
    from scipy.io import savemat

    rows = np.column_stack(list(columns.values()))
    np.savetxt(folder / 'log.csv', rows, delimiter=',', header=','.join(columns), comments='')
    np.savez_compressed(folder / 'log.npz', **columns)
    savemat(folder / 'log.mat', columns, do_compression=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / 'log.parquet')
    with h5py.File(folder / 'log.h5', 'w') as file:
        for name, values in columns.items():
            file.create_dataset(name, data=values, compression='gzip')


def damaged_bytes(chance: random.Random, data: bytes) -> bytes:
    """Return bytes with one to three of them flipped, cut off, zeroed, doubled or taken out."""
    content = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(max(1, len(content)))
        stop = start + chance.choice((1, 4, 8, 64, 4096))
        part = bytes(content[start:stop])
        kind = chance.randrange(6)
        if kind == 0 and part:
            content[start] ^= 1 << chance.randrange(8)
        elif kind == 1:
            content[start:stop] = bytes(len(part))
        elif kind == 2:
            content[start:stop] = chance.randbytes(len(part))
        elif kind == 3:
            content[start:start] = part
        elif kind == 4:
            content[start:stop] = b''
        else:
            content[start:] = b''
    return bytes(content)


def damaged_text(chance: random.Random, text: str) -> str:
    """Return text with words replaced, lines taken out or doubled, or other damage."""
    for _ in range(chance.randint(1, 3)):
        kind = chance.randrange(8)
        if kind < 5:
            words = [m.span(1) for m in re.finditer(r'["\s:\[>]([-\w.]+)(?=["\s,\]<]|$)', text)]
            start, stop = chance.choice(words) if words else (0, 0)
            text = text[:start] + chance.choice(WEIRD) + text[stop:]
        elif kind < 7:
            lines = text.splitlines(keepends=True) or ['']
            k = chance.randrange(len(lines))
            lines[k : k + chance.choice((1, 3))] = [] if kind == 5 else [lines[k]] * 2
            text = ''.join(lines)
        else:
            data = damaged_bytes(chance, text.encode(errors='surrogateescape'))
            text = data.decode(errors='surrogateescape')
    return text


def write_bag(folder: Path, messages: Iterable[tuple[str, int, bytes]], compression: str) -> Path:
    """Write messages as an MCAP file with small chunks, index and footer."""
    path = folder / 'bag.mcap'
    kinds = {
        '/joint_states': JOINT_STATE,
        '/excitation/state': 'diagnostic_msgs/msg/DiagnosticStatus',
    }
    with path.open('wb') as stream:
        writer = Writer(stream, chunk_size=8192, compression=CompressionType[compression])
        writer.start(profile='ros2', library='')
        channels: dict[str, int] = {}
        for topic, time, data in messages:
            if topic not in channels:
                kind = kinds.get(topic, 'std_msgs/msg/String')
                text, _ = STORE.generate_msgdef(kind, ros_version=2)
                schema = writer.register_schema(kind, 'ros2msg', text.encode())
                channels[topic] = writer.register_channel(topic, 'cdr', schema)
            writer.add_message(channels[topic], time, data, time)
        writer.finish()
    return path


def _identify(folder: Path, bag: Path, *more: object) -> Command:
    return ['identify', bag, '-o', folder / 'out', '--force', *more]


def _rewritten(good: Good, chance: random.Random, folder: Path, name: str) -> Path:
    """Copy one file with damaged bytes."""
    path = folder / name
    path.write_bytes(damaged_bytes(chance, next(good.folder.rglob(name)).read_bytes()))
    return path


def mcap_bytes(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage the recorder's own file."""
    return _identify(folder, _rewritten(good, chance, folder, 'bag.mcap'))


def mcap_compressed(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage a file with compressed chunks."""
    path = write_bag(folder, good.messages, chance.choice(('NONE', 'LZ4', 'ZSTD')))
    path.write_bytes(damaged_bytes(chance, path.read_bytes()))
    return _identify(folder, path)


def messages(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage messages in a sound file: payloads, times, order."""
    found = list(good.messages)
    for _ in range(chance.randint(1, 5)):
        k = chance.randrange(len(found)) if chance.random() < 0.7 else chance.randrange(4)
        topic, time, data = found[k]
        kind = chance.randrange(5)
        if kind == 0:
            data = chance.choice((b'', b'\0', data[:4], data[: chance.randrange(len(data) + 1)]))
        elif kind == 1:
            time = chance.choice((0, 2**63 - 1, 2**64 - 1, time + 10**12))
        elif kind == 2:
            topic = chance.choice(('/joint_states', '/excitation/state', '/x', 'no slash'))
        else:
            data = damaged_bytes(chance, data)
        found[k] = topic, time, data
    return _identify(folder, write_bag(folder, found, 'ZSTD'))


def metadata(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage `metadata.yaml` beside a sound file."""
    path = folder / 'bag'
    shutil.copytree(good.folder / 'bag', path)
    text = (path / 'metadata.yaml').read_text()
    text = damaged_text(chance, text)
    (path / 'metadata.yaml').write_text(text, errors='surrogateescape')
    return _identify(folder, path)


def sqlite_bytes(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage a database."""
    return _identify(folder, _rewritten(good, chance, folder, 'sql.db3'), '--urdf', URDF)


def sqlite_values(good: Good, chance: random.Random, folder: Path) -> Command:
    """Put values of other types into a database."""
    path = folder / 'sql.db3'
    shutil.copy(good.folder / 'sql' / 'sql.db3', path)
    with sqlite3.connect(path) as database:
        for table in ('messages', 'topics', 'message_definitions'):
            columns = [row[1] for row in database.execute(f'PRAGMA table_info({table})')]
            rows = database.execute(f'SELECT * FROM {table}').fetchall()
            for _ in range(chance.randint(0, 3)):
                k, column = chance.randrange(len(rows)), chance.randrange(1, len(columns))
                values = (None, 'text', -1, 2**62, 1.5, b'', b'\0\1', *WEIRD)
                rows[k] = (*rows[k][:column], chance.choice(values), *rows[k][column + 1 :])
            database.execute(f'DROP TABLE {table}')
            database.execute(f'CREATE TABLE {table} (id, {", ".join(columns[1:])})')
            marks = ', '.join('?' * len(columns))
            database.executemany(f'INSERT INTO {table} VALUES ({marks})', rows)
    return _identify(folder, path, '--urdf', URDF)


def session(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage the session's text, or the robot's description, in a sound file."""
    found = list(good.messages)
    topic = chance.choice((SESSION_TOPIC, '/robot_description'))
    k = next(k for k, row in enumerate(found) if row[0] == topic)
    text = damaged_text(chance, found[k][2][8:-1].decode())
    data = text.encode(errors='surrogateescape') + b'\0'
    found[k] = (*found[k][:2], b'\0\1\0\0' + len(data).to_bytes(4, 'little') + data)
    return _identify(folder, write_bag(folder, found, 'NONE'))


def ros1(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage a bag of ROS 1."""
    store = get_typestore(Stores.ROS1_NOETIC)
    path = folder / 'log.bag'
    writer = rosbag1.Writer(path)
    writer.set_compression(chance.choice(list(rosbag1.Writer.CompressionFormat)))
    with writer:
        connection = writer.add_connection('/joint_states', JOINT_STATE, typestore=store)
        for topic, time, data in good.messages:
            if topic == '/joint_states':
                state: Any = STORE.deserialize_cdr(data, JOINT_STATE)
                stamp = store.types['builtin_interfaces/msg/Time'](*divmod(time, 10**9))
                header = store.types['std_msgs/msg/Header'](0, stamp, '')
                values = state.position, state.velocity, state.effort
                message = store.types[JOINT_STATE](header, state.name, *values)
                writer.write(connection, time, store.serialize_ros1(message, JOINT_STATE))
    path.write_bytes(damaged_bytes(chance, path.read_bytes()))
    return _identify(folder, path, '--urdf', URDF)


def urdf(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage a robot description."""
    path = folder / 'arm.urdf'
    path.write_text(damaged_text(chance, URDF.read_text()), errors='surrogateescape')
    return _identify(folder, good.folder / 'sql', '--urdf', path)


def configuration(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage a configuration."""
    shutil.copy(URDF, folder)
    text = damaged_text(chance, (good.folder / 'arm.yaml').read_text())
    (folder / 'arm.yaml').write_text(text, errors='surrogateescape')
    return _identify(folder, good.folder / 'sql', '-c', folder / 'arm.yaml')


def parameters(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage the results of an identification; `good` must hold some."""
    for file in (good.folder / 'out').iterdir():
        shutil.copy(file, folder)
    path = folder / chance.choice(('parameters.yaml', 'parameters.yaml', 'torques.npz'))
    if path.suffix == '.npz':
        path.write_bytes(damaged_bytes(chance, path.read_bytes()))
    else:
        text = damaged_text(chance, path.read_text())
        path.write_text(text, errors='surrogateescape')
    if chance.random() < 0.5:
        return ['report', folder]
    return ['validate', good.folder / 'bag', '--parameters', folder]


def tables(good: Good, chance: random.Random, folder: Path) -> Command:
    """Damage a table of any format."""
    name = chance.choice(('log.csv', 'log.npz', 'log.mat', 'log.parquet', 'log.h5'))
    path = _rewritten(good, chance, folder, name)
    if name == 'log.csv' and chance.random() < 0.7:
        text = damaged_text(chance, (good.folder / name).read_text())
        path.write_text(text, errors='surrogateescape')
    return _identify(folder, path, '--urdf', URDF)


Kind = Callable[[Good, random.Random, Path], Command]
KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        *(mcap_bytes, mcap_compressed, messages, metadata, sqlite_bytes),
        *(sqlite_values, ros1, session, urdf, configuration, parameters, tables),
    )
}


def base_parameters(folder: Path) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Return value and σ of the base parameters, and the findings, of `parameters.yaml`."""
    content = yaml.load((folder / 'parameters.yaml').read_text(), yaml.CSafeLoader)
    values = {row['name']: (row['value'], row['sigma']) for row in content['base']}
    return values, [found['text'] for found in content['findings']]


def is_silently_wrong(good: Good, folder: Path, factor: float = 10.0) -> str:
    """Return what differs from the sound result by so many σ without any warning, else ''."""
    if not (folder / 'out' / 'parameters.yaml').exists():
        return ''
    (true, known), (found, findings) = (base_parameters(f / 'out') for f in (good.folder, folder))
    if set(findings) - set(known):
        return ''
    for name, (value, sigma) in true.items():
        if name not in found or not abs(found[name][0] - value) < factor * sigma + 1e-9:
            return f'{name}: {found.get(name)} for {value:.4g} ± {sigma:.2g}'
    return ''
