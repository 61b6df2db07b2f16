"""Files made to break a reader: one sentence each, in bounded time and memory."""

import os
from pathlib import Path
import re
import sqlite3
import zipfile

from bag_tools import EPOCH, joint_state, STORE
from damage import Good, JOINT_STATE, make_good, URDF, write_bag
from isolated import robotid
from mcap.writer import CompressionType, Writer
import numpy as np
import pytest
import yaml
from zstandard import ZstdCompressor

BOMB = 192 << 20  # above what any file of its size may hold; in earnest there would be 100 GB


@pytest.fixture(scope='module')
def good(tmp_path_factory) -> Good:
    made = make_good(tmp_path_factory.mktemp('good'))
    assert robotid('identify', made.folder / 'bag', '-o', made.folder / 'out').code == 0
    return made


def refused(*command, words=''):
    """Run a command that ends with one sentence, which it returns."""
    outcome = robotid(*command)
    assert not outcome.fault, outcome.fault
    assert outcome.code == 1, outcome.out
    assert words in outcome.err + outcome.out
    return outcome.err


def accepted(*command, words=''):
    outcome = robotid(*command)
    assert not outcome.fault, outcome.fault
    assert outcome.code in (0, 4), outcome.err  # 4: read, and unusable
    assert words in outcome.out
    return outcome.out


def zeros(kind: str) -> bytes:
    """Pack zeros."""
    block = bytes(1 << 24)
    if kind == 'zstd':
        packer = ZstdCompressor().compressobj(size=BOMB)
    else:
        from lz4.frame import LZ4FrameCompressor

        packer = LZ4FrameCompressor()
        start = packer.begin()
    parts = [packer.compress(block) for _ in range(BOMB >> 24)]
    return (b'' if kind == 'zstd' else start) + b''.join(parts) + packer.flush()


@pytest.mark.parametrize('claimed', [BOMB, 4000])
@pytest.mark.parametrize('kind', ['zstd', 'lz4'])
def test_chunk_bombs(tmp_path, good, kind, claimed):
    path = write_bag(tmp_path, good.messages, 'NONE')
    data, packed = path.read_bytes(), zeros(kind)
    fixed = (EPOCH).to_bytes(8, 'little') * 2 + claimed.to_bytes(8, 'little') + bytes(4)
    name = len(kind).to_bytes(4, 'little') + kind.encode()
    content = fixed + name + len(packed).to_bytes(8, 'little') + packed
    chunk = b'\x06' + len(content).to_bytes(8, 'little') + content
    end = data.index(b'\x0f\x04\0\0\0\0\0\0\0')
    path.write_bytes(data[:end] + chunk + data[end : end + 13])
    accepted('inspect', path, words='were left out: 1')


def test_message_bomb(tmp_path, good):
    rows = [*good.messages, ('/joint_states', EPOCH + 8 * 10**9, zeros('zstd'))]
    path = write_bag(tmp_path, rows, 'NONE')
    accepted('inspect', path, words='damaged')


def test_file_bomb(tmp_path):
    (tmp_path / 'bag').mkdir()
    (tmp_path / 'bag' / 'bag.mcap.zstd').write_bytes(zeros('zstd'))
    refused('inspect', tmp_path / 'bag', words='unpacked')


def test_table_bombs(tmp_path):
    import gzip

    import h5py
    import pyarrow
    import pyarrow.parquet
    from scipy.io import savemat

    with zipfile.ZipFile(tmp_path / 'log.npz', 'w', zipfile.ZIP_DEFLATED) as archive:
        for name in ('t', 'q1', 'tau1'):
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as stream:
                header = {'descr': '<f8', 'fortran_order': False, 'shape': (BOMB // 8,)}
                np.lib.format.write_array_header_1_0(stream, header)
                for _ in range(BOMB >> 26):
                    stream.write(bytes(1 << 26))
    with h5py.File(tmp_path / 'log.h5', 'w') as file:
        for name in ('t', 'q1', 'tau1'):
            file.create_dataset(name, (BOMB,), 'f8', chunks=True)
    with gzip.open(tmp_path / 'log.csv.gz', 'wb', 1) as stream:
        for _ in range(BOMB >> 26):
            stream.write(b'0' * (1 << 26))
    savemat(tmp_path / 'log.mat', {'q': np.zeros(BOMB // 8)}, do_compression=True)
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in ('t', 'q1', 'tau1')])
    with pyarrow.parquet.ParquetWriter(tmp_path / 'log.parquet', schema) as writer:
        block = pyarrow.table([np.zeros(1 << 22)] * 3, schema)
        for _ in range(3):
            writer.write_table(block)
    for path in sorted(tmp_path.glob('log.*')):
        assert path.stat().st_size < 1 << 24
        refused('inspect', path, words='unpacked')


def test_only_regular_files_are_read(tmp_path, good):
    os.mkfifo(tmp_path / 'fifo.yaml')
    for path in (tmp_path / 'fifo.yaml', '/dev/zero', '/dev/stdin'):
        refused('inspect', path, words='regular file')
        refused('identify', good.folder / 'sql', '-c', path, words='regular file')
        refused('identify', good.folder / 'sql', '--urdf', path, words='regular file')
    (tmp_path / 'bag').mkdir()
    os.mkfifo(tmp_path / 'bag' / 'bag.mcap')
    refused('inspect', tmp_path / 'bag', words='regular file')
    os.mkfifo(tmp_path / 'bag' / 'metadata.yaml')
    refused('inspect', tmp_path / 'bag', words='regular file')


LAUGHS = 'a0: &a0 [x, x]\n' + ''.join(
    f'a{k}: &a{k} [{", ".join([f"*a{k - 1}"] * 9)}]\n' for k in range(1, 12)
)
YAMLS = {
    'deep': '[' * 30_000,
    'deep maps': '{a: ' * 30_000,
    'deep blocks': '- ' * 30_000,
    'laughs': LAUGHS,
    'loop': '&a [*a]',
    'merge': 'x: &x {a: 1}\ny:\n  <<: [*x, *x]\n',
    'date': 'a: 2026-13-45',
    'integer': f'a: {"9" * 5000}',
    'sexagesimal': 'a: 1:99999:' + '9' * 5000,
    'complex key': '? [a, b]\n: c',
    'map key': '? {a: b}\n: c',
    'typed': 'a: !!int "a"',
    'float': 'a: !!float "x"',
    'binary': 'a: !!binary "\u20ac"',
    'stamp': 'a: !!timestamp "x"',
    'python': 'a: !!python/object/apply:os.system [true]',
    'control': 'a: "\x07"',
}


@pytest.mark.parametrize('text', YAMLS.values(), ids=YAMLS)
def test_yaml(tmp_path, good, text):
    indented = text.replace('\n', '\n    ')
    path = tmp_path / 'arm.yaml'
    for content in (text, f'/**:\n  ros__parameters:\n    qos_overrides:\n     {indented}'):
        path.write_text(content)
        outcome = robotid('identify', good.folder / 'sql', '-c', path, '-o', tmp_path / 'out')
        assert not outcome.fault, outcome.fault
    (tmp_path / 'bag').mkdir()
    (tmp_path / 'bag' / 'metadata.yaml').write_text(text)
    (tmp_path / 'bag' / 'bag.mcap').write_bytes((good.folder / 'bag' / 'bag.mcap').read_bytes())
    accepted('inspect', tmp_path / 'bag', words='metadata.yaml')


def test_message_definitions(tmp_path, good):
    states = [row for row in good.messages if row[0] == '/joint_states']
    for name, text in (
        ('x/msg/Y', 'float64 a\n' * 500_000),
        ('x/msg/Y', '=' * 5_000_000),
        ('Y', 'float64 a'),
        ('', ''),
        ('x/msg/Y', 'x/Y y'),
        (JOINT_STATE, 'float64 a\n' * 500_000),
        ('x/msg/Y', 'float64[' + '9' * 5000 + '] a'),
        ('x/msg/Y', 'z/W a'),
    ):
        path = tmp_path / 'bag.mcap'
        with path.open('wb') as stream:
            writer = Writer(stream, compression=CompressionType.NONE)
            writer.start(profile='ros2', library='')
            schema = writer.register_schema(name, 'ros2msg', text.encode())
            channel = writer.register_channel('/y', 'cdr', schema)
            writer.add_message(channel, EPOCH, bytes(12), EPOCH)
            known, _ = STORE.generate_msgdef(JOINT_STATE, ros_version=2)
            schema = writer.register_schema(JOINT_STATE, 'ros2msg', known.encode())
            channel = writer.register_channel('/joint_states', 'cdr', schema)
            for _, time, data in states:
                writer.add_message(channel, time, data, time)
            writer.finish()
        accepted('inspect', path)


@pytest.mark.parametrize('payload', [b'', b'\0', b'\0\1\0\0', bytes(40), b'\0\1' + b'\xff' * 50])
@pytest.mark.parametrize('share', [1, 100])
def test_empty_and_short_messages(tmp_path, good, payload, share):
    rows = [
        (topic, time, payload if topic == '/joint_states' and k % share == 7 % share else data)
        for k, (topic, time, data) in enumerate(good.messages)
    ]
    path = write_bag(tmp_path, rows, 'NONE')
    if share == 1:
        refused('inspect', path)
    else:
        accepted('inspect', path, words='left out')


@pytest.mark.parametrize('stamp', ['1e999999999', 'inf', 'nan', '9' * 5000, '-1e30', 'x'])
def test_stamps_of_states(tmp_path, good, stamp):
    from bag_tools import status

    data = status({'state': 'exciting', 'stamp': stamp})
    rows = [(t, time, data if t == '/excitation/state' else d) for t, time, d in good.messages]
    accepted('inspect', write_bag(tmp_path, rows, 'NONE'))


@pytest.mark.parametrize('step', [5 * 10**7, 10**12], ids=['rounded', 'equal'])
def test_stamps_that_repeat(tmp_path, good, step):
    rows = []
    for topic, time, data in good.messages:
        if topic == '/joint_states':
            second, nano = divmod(time // step * step, 10**9)
            data = data[:4] + second.to_bytes(4, 'little') + nano.to_bytes(4, 'little') + data[12:]
        rows.append((topic, time, data))
    path = write_bag(tmp_path, rows, 'NONE')
    for command in (('inspect', path), ('identify', path, '-o', tmp_path / 'out')):
        outcome = robotid(*command)
        assert not outcome.fault, outcome.fault


def test_metadata_that_promises_messages(tmp_path, good):
    path = tmp_path / 'bag'
    path.mkdir()
    (path / 'bag.mcap').write_bytes((good.folder / 'bag' / 'bag.mcap').read_bytes())
    text = (good.folder / 'bag' / 'metadata.yaml').read_text()
    (path / 'metadata.yaml').write_text(re.sub(r'message_count: \d+', 'message_count: 900', text))
    accepted('inspect', path, words='900')


@pytest.mark.parametrize('value', [None, 'text', 1.5, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize('column', ['timestamp', 'data', 'topic_id'])
def test_values_in_sqlite(tmp_path, good, column, value):
    path = tmp_path / 'sql.db3'
    path.write_bytes((good.folder / 'sql' / 'sql.db3').read_bytes())
    with sqlite3.connect(path) as base:
        base.execute('CREATE TABLE m AS SELECT * FROM messages')
        base.execute('DROP TABLE messages')
        base.execute('ALTER TABLE m RENAME TO messages')
        base.execute(f'UPDATE messages SET {column} = ? WHERE id % 100 = 7', (value,))
    out = accepted('inspect', path)
    assert 'damaged' in out or column == 'topic_id' or value == 2**63 - 1


@pytest.mark.parametrize('name', ['messages', 'message_definitions'])
def test_endless_views_in_sqlite(tmp_path, good, name):
    path = tmp_path / 'sql.db3'
    path.write_bytes((good.folder / 'sql' / 'sql.db3').read_bytes())
    with sqlite3.connect(path) as base:
        columns = ', '.join(row[1] for row in base.execute(f'PRAGMA table_info({name})'))
        numbers = ', '.join('i' for _ in columns.split(','))
        base.execute(f'DROP TABLE {name}')
        base.execute(
            f'CREATE VIEW {name} ({columns}) AS WITH RECURSIVE r(i) AS '
            f'(SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT {numbers} FROM r'
        )
    refused('inspect', path, words=f'{name} is no table')


def urdf_cases():
    text = URDF.read_text()
    mass = text.index('mass value="') + len('mass value="')
    stop = text.index('"', mass)
    for value in ('nan', 'inf', '-1', '0', '1e400', '1 2', '', '1,5'):
        yield f'mass {value}', text[:mass] + value + text[stop:]
    for key in ('ixx', 'iyy'):
        start = text.index(f'{key}="') + 5
        for value in ('nan', '-1', 'inf'):
            yield f'{key} {value}', text[:start] + value + text[text.index('"', start) :]
    start = text.index('xyz="', text.index('<inertial>')) + 5
    for value in ('nan 0 0', '1 2', 'inf 0 0', '1 2 3 4', ''):
        yield f'xyz {value}', text[:start] + value + text[text.index('"', start) :]
    start = text.index('<inertia ')
    yield 'no inertia', text[:start] + text[text.index('/>', start) + 2 :]
    many = ' '.join(f'a{k}="1"' for k in range(200_000))
    yield 'attributes', text.replace('<mass ', f'<mass {many} ', 1)
    yield (
        'entities',
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
        + ''.join(
            f'<!ENTITY {chr(98 + k)} "{"&" + chr(97 + k) + ";"}{("&" + chr(97 + k) + ";") * 9}">'
            for k in range(10)
        )
        + ']>'
        + text.replace('name="scara"', 'name="&k;"'),
    )
    yield 'deep', '<robot name="x">' + '<link>' * 200_000
    yield 'long', f'<robot name="{"x" * 5_000_000}"/>'


@pytest.mark.parametrize(('name', 'text'), urdf_cases(), ids=[n for n, _ in urdf_cases()])
def test_urdfs(tmp_path, good, name, text):
    path = tmp_path / 'arm.urdf'
    path.write_text(text)
    arguments = good.folder / 'sql', '--urdf', path, '-o', tmp_path / 'out', '--all'
    outcome = robotid('identify', *arguments)
    assert not outcome.fault, outcome.fault
    told = outcome.code == 1 or 'arm.urdf' in outcome.out or 'inerti' in outcome.out
    assert told or name == 'mass 0'  # which a body may have


def test_names_that_drawings_and_terminals_mind(tmp_path, good):
    names = ('j$\\frac{1$', 'b\x1b[31m\x9b')
    text = URDF.read_text().replace('joint_1', names[0]).replace('joint_2', 'b')
    (tmp_path / 'arm.urdf').write_text(text)
    stamps = [time for topic, time, _ in good.messages if topic == '/joint_states']
    rng = np.random.default_rng(0)
    q = np.sin(np.outer(np.arange(len(stamps)) * 0.01, [2.0, 3.0]))
    rows = [
        ('/joint_states', time, joint_state(time, (names[0], 'b'), q[k], (), rng.normal(size=2)))
        for k, time in enumerate(stamps)
    ]
    path = write_bag(tmp_path, rows, 'NONE')
    accepted('identify', path, '--urdf', tmp_path / 'arm.urdf', '-o', tmp_path / 'out')
    rows = [(t, s, d.replace(b'b\0', b'\x1b\0')) for t, s, d in rows]
    accepted('inspect', write_bag(tmp_path, rows, 'NONE'), words='\\x1b')


def test_a_hundred_thousand_names(tmp_path, good):
    names = [f'joint_{k}' for k in range(100_000)]
    rows = [
        *good.messages,
        (
            '/joint_states',
            EPOCH + 8 * 10**9,
            joint_state(EPOCH + 8 * 10**9, names, [0.0] * 100_000),
        ),
    ]
    accepted('inspect', write_bag(tmp_path, rows, 'NONE'))


def test_paths_that_are_not_utf8(tmp_path, good):
    name = os.fsdecode(b'b\xff')
    path = tmp_path / f'{name}.mcap'
    path.write_bytes((good.folder / 'bag' / 'bag.mcap').read_bytes())
    accepted('inspect', path)
    accepted('identify', path, '-o', tmp_path / name)
    accepted('report', tmp_path / name)
    refused('inspect', tmp_path / f'{name}2')


def test_edited_results(tmp_path, good, capsys):
    from robotid_ros.cli.main import main

    def refusal(content):
        text = yaml.dump(content, Dumper=yaml.CSafeDumper)
        (tmp_path / 'parameters.yaml').write_text(text)
        code = main(['report', str(tmp_path)])
        text = capsys.readouterr().err
        assert code == bool(text) and 'a bug' not in text, text
        return text

    content = yaml.load((good.folder / 'out' / 'parameters.yaml').read_text(), yaml.CSafeLoader)
    assert not refusal(content)
    unknown = 'compared', 'quality', 'verdict'  # where there is none
    for key, value in content.items():
        for other in (None, 'x', 3, [1], {'a': 'b'}):
            typed = key not in ('compared', 'settings', 'versions') or not isinstance(other, dict)
            number = isinstance(value, float) and other == 3
            if type(other) is not type(value) and typed and not number:
                text = refusal({**content, key: other})
                assert text or (other is None and key in unknown), (key, other)
    for table in ('base', 'standard', 'identification'):
        for key, value in content[table][0].items():
            row = {**content[table][0], key: [] if isinstance(value, str) else 'x'}
            assert 'is damaged' in refusal({**content, table: [row, *content[table][1:]]})
    for key in ('data', 'essential', 'selection'):
        for name in content[key]:
            refusal({**content, key: {**content[key], name: ['x']}})


def test_lost_data_are_told(tmp_path, good):
    data = write_bag(tmp_path, good.messages, 'ZSTD').read_bytes()
    path = tmp_path / 'cut.mcap'
    path.write_bytes(data[: len(data) * 2 // 3])
    accepted('identify', path, '-o', tmp_path / 'out', words='cut short')
    content = bytearray(data)
    content[len(data) // 3] ^= 1
    path.write_bytes(content)
    words = accepted('identify', path, '-o', tmp_path / 'again')
    assert 'Damaged' in words and 'messages' in words


def test_folders_and_other_things_in_place_of_files(tmp_path, good):
    for verb, *rest in (('inspect',), ('report',), ('design',), ('validate', '--parameters', 'x')):
        refused(verb, Path('/proc/self/mem'), *rest)
        refused(verb, tmp_path, *rest)
