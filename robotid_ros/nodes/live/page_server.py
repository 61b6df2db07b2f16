"""
The web server of the node `live`: one page, its data over a WebSocket, and its buttons.

Only who knows the token is answered. It is in the address that the node prints, and then in a
cookie that the browser sends for no other site. Whoever reads slowly misses steps, and nothing
waits for them.
"""

import asyncio
import contextlib
import hmac
from pathlib import Path
import secrets
import threading
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from ...exceptions import ConfigurationError

PERIOD = 0.2  # from one message to the next [s]
TOKEN_BYTES = 24
MOST_VIEWERS = 20
HEADERS = {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
}


class _Guarded(RequestHandler):
    """Answers only who knows the token, and no page of another site."""

    def prepare(self) -> None:
        given = self.get_argument('token', '') or self.get_cookie(self.settings['cookie']) or ''
        if not hmac.compare_digest(given.encode(), self.settings['token'].encode()):
            raise HTTPError(403)
        origin = self.request.headers.get('Origin')
        if origin is not None and origin.partition('://')[2] != self.request.host:
            raise HTTPError(403)

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def write_error(self, status_code: int, **_: Any) -> None:
        refused = 'open the address that the node live printed, with its token'
        self.finish(refused if status_code == 403 else f'error {status_code}')


class _Page(_Guarded):
    def get(self) -> None:
        if self.get_argument('token', ''):
            cookie, token = self.settings['cookie'], self.settings['token']
            self.set_cookie(cookie, token, httponly=True, samesite='Strict', path='/')
            # The token does not stay in the history of the browser; relative for a proxy's path.
            self.redirect('.')
        else:
            self.write(self.settings['source'].page)


class _Call(_Guarded):
    async def post(self, name: str) -> None:
        accepted, text = await self.settings['source'].call(name)
        self.set_status(200 if accepted else 409)
        self.set_header('Content-Type', 'text/plain; charset=utf-8')
        self.write(text)


class _Files(_Guarded, StaticFileHandler):
    """Pages of earlier sessions; nothing else of their folders."""

    def validate_absolute_path(self, root: str, absolute_path: str) -> str | None:
        if not absolute_path.endswith('.html'):
            raise HTTPError(404)
        return super().validate_absolute_path(root, absolute_path)


class _Viewer(_Guarded, WebSocketHandler):
    _since = -1
    _sent: asyncio.Future[None] | None = None

    def open(self, *_: str) -> None:
        if len(self.settings['viewers']) >= MOST_VIEWERS:
            self.close(1013, 'too many viewers')
        else:
            self.settings['viewers'].add(self)

    def on_message(self, message: str | bytes) -> None:
        """Take nothing: buttons are requests."""

    def on_close(self) -> None:
        self.settings['viewers'].discard(self)

    def tell(self, found: dict[int, tuple[int, str]]) -> None:
        """Send what is new, but for who has not taken the last message yet."""
        if self._sent is not None and not self._sent.done():
            return
        if self._since not in found:
            found[self._since] = self.settings['source'].news(self._since)
        self._since, text = found[self._since]
        self._sent = asyncio.ensure_future(self._send(text))

    async def _send(self, text: str) -> None:
        with contextlib.suppress(WebSocketClosedError):
            await self.write_message(text)


class PageServer:
    """Serves a page and those of a folder, to who knows `token`, until it is closed."""

    def __init__(self, source: Any, address: str, port: int, folder: Path):
        try:
            self._sockets = bind_sockets(port, address)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigurationError(
                f'the page cannot listen to port {port} of {address} ({reason}): set live.port to '
                'another one, or to 0 for any'
            ) from error
        self.port = self._sockets[0].getsockname()[1]
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._source, self._folder, self._viewers = source, folder, set[_Viewer]()
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        run, serve = self._loop.run_until_complete, self._serve()
        self._thread = threading.Thread(target=run, args=(serve,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; viewers see that the page is not connected."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2.0)

    async def _serve(self) -> None:
        handlers: list[Any] = [
            ('/', _Page),
            ('/data', _Viewer),
            ('/call/(.*)', _Call),
            ('/sessions/(.*)', _Files, {'path': str(self._folder)}),
        ]
        application = Application(
            handlers,
            source=self._source,
            viewers=self._viewers,
            token=self.token,
            cookie=f'robotid_{self.port}',
            websocket_ping_interval=10,
            log_function=lambda _: None,
        )
        server = HTTPServer(application)
        server.add_sockets(self._sockets)
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), PERIOD)
            found = dict[int, tuple[int, str]]()
            for viewer in list(self._viewers):
                viewer.tell(found)
        server.stop()
        for viewer in list(self._viewers):
            viewer.close()
        await server.close_all_connections()
