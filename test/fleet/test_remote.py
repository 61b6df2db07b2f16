"""Bags behind a URL: read by range, one row like any other."""

from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import re
import threading

import numpy as np
import pytest
from small_fleet import RATE, write_bag

from robotid_ros.exceptions import FileError, RecordingError
from robotid_ros.files.bags import BagWriter, read_recording
from robotid_ros.fleet.session import FAILED, IDENTIFIED, LOST

pytest.importorskip('aiohttp')


class Handler(SimpleHTTPRequestHandler):
    """Sends ranges of files, and counts the bytes."""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._send(head=True)

    def do_GET(self):
        self._send()

    def _send(self, head=False):
        path = self.translate_path(self.path)
        try:
            content = open(path, 'rb').read()
        except OSError:
            self.send_error(404)
            return
        asked = re.match(r'bytes=(\d+)-(\d*)', self.headers.get('Range') or '')
        first, last = 0, len(content) - 1
        if asked and self.server.ranges:
            first, last = int(asked[1]), min(last, int(asked[2] or last))
            self.send_response(206)
            self.send_header('Content-Range', f'bytes {first}-{last}/{len(content)}')
        else:
            self.send_response(200)
        if self.server.ranges:
            self.send_header('Accept-Ranges', 'bytes')
        self.send_header('ETag', f'"{hash(content)}"')
        self.send_header('Content-Length', str(last + 1 - first))
        self.end_headers()
        if not head:
            self.server.sent += last + 1 - first
            self.wfile.write(content[first : last + 1])


class Server(ThreadingHTTPServer):
    ranges, sent = True, 0

    def handle_error(self, *_):
        """Pass over a client that hangs up when it has seen enough."""


@pytest.fixture
def server(tmp_path):
    """Serve a folder; gives server and address."""

    def handler(*arguments):
        return Handler(*arguments, directory=str(tmp_path))

    server = Server(('127.0.0.1', 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.url = f'http://127.0.0.1:{server.server_address[1]}'
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_only_what_is_needed_of_a_bag_is_sent(server, tmp_path):
    bag = write_bag(tmp_path / 'r0', 'small')
    (file,) = bag.glob('*.mcap')
    expected = read_recording(file)
    found = read_recording(f'{server.url}/r0/small/{file.name}')
    np.testing.assert_array_equal(found.effort, expected.effort)
    # The same joint states, and pictures of a megabyte each between them, in chunks of their own.
    from bag_tools import joint_state

    noise = np.random.default_rng(0)
    with BagWriter(tmp_path / 'r0', 'large') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/camera', 'std_msgs/msg/String')
        for k, (time, q, tau) in enumerate(
            zip(expected.time, expected.position, expected.effort, strict=True)
        ):
            stamp = expected.origin + round(time * 1e9)
            data = joint_state(stamp, expected.joints, q, (), tau)
            writer.write('/joint_states', data, stamp)
            if k % 100 == 99:
                writer.flush()
                writer.write('/camera', noise.bytes(2_000_000), stamp)
                writer.flush()
    (file,) = writer.path.glob('*.mcap')
    server.sent = 0
    found = read_recording(f'{server.url}/r0/large/{file.name}')
    assert len(found.time) == len(expected.time) == 12 * RATE
    assert file.stat().st_size > 20_000_000 and server.sent < 0.5 * file.stat().st_size


def test_urls_are_sources_like_others(server, work, tmp_path):
    bag = write_bag(tmp_path / 'r0', 's0')
    (file,) = bag.glob('*.mcap')
    local = work(tmp_path / 'local', [bag]).store.current()[0]
    (tmp_path / 'noise.mcap').write_bytes(b'noise')
    urls = [f'{server.url}/{file.relative_to(tmp_path)}', f'{server.url}/noise.mcap']
    run = work(tmp_path / 'store', [*urls, f'{server.url}/none.mcap'])
    rows = {row['source'].rpartition('/')[2]: row for row in run.store.current()}
    assert [rows[n]['status'] for n in ('noise.mcap', 'none.mcap')] == [FAILED, LOST]
    found = rows[file.name]
    assert found['status'] == IDENTIFIED and found['bytes'] == file.stat().st_size
    assert found['parameters'] == local['parameters']
    # Nothing is read again; what was not there is asked for again.
    assert work(tmp_path / 'store', urls).counts == {'kept': 2}
    # A bag that cannot be reached for a while keeps its row.
    file.rename(file.with_suffix('.away'))
    run = work(tmp_path / 'store', urls)
    assert run.counts == {'kept': 1, LOST: 1} and urls[0] in run.reasons
    rows = {row['source']: row for row in run.store.current()}
    assert rows[urls[0]]['parameters'] == local['parameters']


def test_what_cannot_be_had_is_one_sentence(server, tmp_path):
    (tmp_path / 'a.mcap').write_bytes(b'x' * 1_000_000)
    with pytest.raises(FileError, match='check address'):
        read_recording(f'{server.url}/none.mcap')
    with pytest.raises(RecordingError, match='copy it here'):
        read_recording(f'{server.url}/a.db3')
    with pytest.raises(FileError, match='needs a package'):
        read_recording('nonsense://a/b.mcap')
    server.ranges = False
    with pytest.raises(FileError, match='sends no parts'):
        read_recording(f'{server.url}/a.mcap')


def test_a_bucket_of_s3_is_a_folder(work, tmp_path, monkeypatch):
    s3fs = pytest.importorskip('s3fs')
    pytest.importorskip('flask')
    from moto.server import ThreadedMotoServer

    bag = write_bag(tmp_path / 'r0', 's0')
    (file,) = bag.glob('*.mcap')
    server = ThreadedMotoServer(ip_address='127.0.0.1', port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            'AWS_ACCESS_KEY_ID': 'testing',
            'AWS_SECRET_ACCESS_KEY': 'testing',
            'AWS_ENDPOINT_URL_S3': f'http://{host}:{port}',
            'FSSPEC_S3_ENDPOINT_URL': f'http://{host}:{port}',
        }.items():
            monkeypatch.setenv(name, value)
        from fsspec.config import conf, set_conf_env

        set_conf_env(conf)
        system = s3fs.S3FileSystem(endpoint_url=f'http://{host}:{port}')
        system.mkdir('bucket')
        system.put(str(file), f'bucket/arms/r7/{file.name}')
        run = work(tmp_path / 'store', ['s3://bucket/arms'])
        (row,) = run.store.current()
        assert (row['status'], row['robot']) == (IDENTIFIED, 'r7'), row['reason']
        assert work(tmp_path / 'store', ['s3://bucket/arms']).counts == {'kept': 1}
    finally:
        conf.pop('s3', None)
        server.stop()
