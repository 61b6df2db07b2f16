"""The server of the live page: who is answered, what is served, and whom nobody waits for."""

import asyncio
from collections.abc import Iterator
import http.client
from pathlib import Path
import socket

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from robotid_ros.exceptions import ConfigurationError
from robotid_ros.nodes.live.page_server import PageServer

TEXT = 'x' * 3_000_000  # more than waits in a socket


class Session:
    """A session of which there is always something new; `number` is how often it was asked."""

    page = 'the page'

    def __init__(self) -> None:
        self.calls, self.number = list[str](), 0

    def news(self, since: int) -> tuple[int, str]:
        self.number += 1
        return self.number, f'{since} {TEXT}'

    async def call(self, name: str) -> tuple[bool, str]:
        self.calls.append(name)
        return name == 'stop', f'{name} was asked for'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'sessions' / 'monday').mkdir(parents=True)
    (tmp_path / 'secret.html').write_text('not below')
    for name in ('report.html', 'parameters.yaml'):
        (tmp_path / 'sessions' / 'monday' / name).write_text(f'of monday: {name}')
    return tmp_path / 'sessions'


@pytest.fixture
def source() -> Session:
    return Session()


@pytest.fixture
def server(source: Session, folder: Path) -> Iterator[PageServer]:
    server = PageServer(source, '127.0.0.1', 0, folder)
    yield server
    server.close()


def ask(server: PageServer, path: str, method: str = 'GET', **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def cookie(server: PageServer) -> dict[str, str]:
    return {'Cookie': f'robotid_{server.port}={server.token}'}


@pytest.mark.parametrize('path', ['/', '/data', '/sessions/monday/report.html', '/?token=guess'])
def test_who_has_no_token_is_refused(server: PageServer, path: str):
    status, text = ask(server, path)
    assert status == 403 and 'token' in text and server.token not in text
    assert ask(server, path, Cookie=f'robotid_{server.port}=é')[0] == 403


def test_the_token_becomes_a_cookie_that_other_sites_do_not_send(server: PageServer):
    connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=10)
    connection.request('GET', f'/?token={server.token}')
    answer = connection.getresponse()
    given = answer.getheader('Set-Cookie') or ''
    assert answer.status == 302 and server.token in given
    assert 'HttpOnly' in given and 'SameSite=Strict' in given
    assert ask(server, '/', **cookie(server)) == (200, 'the page')


def test_buttons_are_requests_of_the_page_itself(server: PageServer, source: Session):
    assert ask(server, '/call/stop', 'POST')[0] == 403
    assert ask(server, '/call/stop', 'POST', Origin='http://evil', **cookie(server))[0] == 403
    assert ask(server, '/call/stop', **cookie(server))[0] == 405
    assert source.calls == []
    own = {'Origin': f'http://127.0.0.1:{server.port}', **cookie(server)}
    assert ask(server, '/call/stop', 'POST', **own) == (200, 'stop was asked for')
    assert ask(server, '/call/start', 'POST', **own)[0] == 409
    assert source.calls == ['stop', 'start']


def test_pages_of_sessions_are_served_and_nothing_else(server: PageServer):
    path = '/sessions/monday/report.html'
    assert ask(server, path, **cookie(server)) == (200, 'of monday: report.html')
    for other in ('monday/parameters.yaml', '../secret.html', '%2e%2e/secret.html', 'monday'):
        status, text = ask(server, f'/sessions/{other}', **cookie(server))
        assert status in (403, 404) and 'not below' not in text


def test_nothing_runs_up_for_who_does_not_read(server: PageServer, source: Session):
    request = (
        f'GET /data HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n'
        f'Connection: Upgrade\r\nSec-WebSocket-Key: {"A" * 22}==\r\nSec-WebSocket-Version: 13\r\n'
        f'Cookie: {cookie(server)["Cookie"]}\r\n\r\n'
    )

    async def watch() -> list[int]:
        url = f'ws://127.0.0.1:{server.port}/data'
        viewer = await websocket_connect(HTTPRequest(url, headers=cookie(server)))
        texts = [await asyncio.wait_for(viewer.read_message(), 10) for _ in range(10)]
        viewer.close()
        return [int(str(text).split()[0]) for text in texts]

    with socket.create_connection(('127.0.0.1', server.port)) as slow:
        slow.sendall(request.encode())
        assert slow.recv(12) == b'HTTP/1.1 101'
        since = asyncio.run(watch())
    assert since[0] == -1 and since[1:] == sorted(set(since[1:]))
    assert source.number <= len(since) + 4


def test_a_port_that_is_taken_is_said(server: PageServer, source: Session, folder: Path):
    with pytest.raises(ConfigurationError, match=rf'port {server.port}\b.*live\.port'):
        PageServer(source, '127.0.0.1', server.port, folder)


def test_closing_frees_the_port(source: Session, folder: Path):
    first = PageServer(source, '127.0.0.1', 0, folder)
    first.close()
    PageServer(source, '127.0.0.1', first.port, folder).close()
