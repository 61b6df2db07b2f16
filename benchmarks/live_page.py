"""
The page of a session that runs: what it costs, and how soon its button stops the robot.

    python benchmarks/live_page.py [--check]

A session of the simulated SCARA at 500 Hz is recorded without the page, with one viewer and with
five. CPU is that of the node `live`, over the time that the robot moves; gaps are steps between
joint states in the bag that are over 1.5 times the usual one. Then the button stops it in
mid-motion; time counts on the robot's clock, from the request to the answer and to rest.
"""

import asyncio
import http.client
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import parse_qs, urlsplit

from common import command_line, ROOT, verdict
import numpy as np
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect
import yaml

sys.path.insert(0, str(ROOT / 'test' / 'tools'))
from live_session import Session

from robotid_ros.files.bags import open_recording
from robotid_ros.nodes.common.processes import child_environment, ENDS_WITH

VIEWERS = (None, 1, 5)  # None: without the page
MOST_CPU, MOST_ANSWER, MOST_REST = 0.10, 0.3, 0.5
# Shares of steps that are gaps: with the page at most so much more than without.
MORE_GAPS = 0.002
TICKS = os.sysconf('SC_CLK_TCK')


class Page:
    """The node `live` as a process, with viewers that read all they are sent."""

    def __init__(self, config: Path, folder: Path, viewers: int):
        command = [
            *(sys.executable, '-m', 'robotid_ros.nodes', 'live', '--ros-args'),
            *('--params-file', str(config), '-p', 'live.port:=0'),
            *('-p', f'recorder.folder:={folder}', '-r', '/clock:=clock'),
        ]
        environment = child_environment(**os.environ, **{ENDS_WITH: str(os.getpid())})
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        )
        said = next(line for line in self.process.stdout if 'token=' in line)
        address = urlsplit(said.split()[-1])
        self.port = address.port
        self.cookie = f'robotid_{self.port}={parse_qs(address.query)["token"][0]}'
        self.read = 0
        threading.Thread(target=lambda: asyncio.run(self._watch(viewers)), daemon=True).start()

    async def _watch(self, viewers: int) -> None:
        async def view() -> None:
            request = HTTPRequest(
                f'ws://localhost:{self.port}/data', headers={'Cookie': self.cookie}
            )
            connection = await websocket_connect(request)
            while await connection.read_message() is not None:
                self.read += 1

        await asyncio.gather(*(view() for _ in range(viewers)))

    def cpu(self) -> float:
        """Return the processor time that the node has taken [s]."""
        fields = Path(f'/proc/{self.process.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def call(self, name: str) -> int:
        """Press a button; return the status of the answer."""
        connection = http.client.HTTPConnection('localhost', self.port, timeout=60)
        connection.request('POST', f'/call/{name}', headers={'Cookie': self.cookie})
        return connection.getresponse().status

    def close(self) -> None:
        """End the node."""
        self.process.terminate()
        self.process.wait()


def write_config(folder: Path) -> Path:
    """Write the configuration of a session that lasts for half a minute."""
    values = yaml.safe_load((ROOT / 'config' / 'scara.yaml').read_text())
    groups = values['/**']['ros__parameters']
    groups['excitation'].update(period=4.0, periods=5, order=3, starts=1, timeout=60.0)
    groups['simulation'].update(update_rate=500.0)
    path = folder / 'scara.yaml'
    path.write_text(yaml.safe_dump(values))
    return path


def run(config: Path, folder: Path, viewers: int | None) -> dict[str, float]:
    """Run a session, and stop another one by the button where there is a page."""
    with Session(config, folder, pages=True) as session:
        session.start(
            *('simulated_robot', 'excitation', 'recorder'),
            recorder={'recorder.folder': str(folder)},
        )
        session.robot.wait()
        session.ready('excitation', 'recorder')
        page = None if viewers is None else Page(config, folder, viewers)
        session.client.call_trigger('excitation/start')
        session.until('excitation', 'exciting')
        begin, cpu = time.monotonic(), page.cpu() if page else 0.0
        session.until('excitation', 'done')
        share = (page.cpu() - cpu) / (time.monotonic() - begin) if page else 0.0
        session.client.wait_for(lambda: 'recorder/bag' in session.client.latest, what='a bag')
        steps = np.diff(open_recording(session.client.latest['recorder/bag'].data).time)
        found = {'cpu': share, 'gaps': float(np.mean(steps > 1.5 * np.median(steps)))}
        if page is not None:
            assert page.call('start') == 200
            session.robot.wait_moving(0.1)
            pressed, begin = session.robot.now, time.monotonic()
            assert page.call('stop') == 200
            found['answer'] = time.monotonic() - begin
            found['rest'] = session.robot.rest_after(pressed)
            found['read'] = page.read
            page.close()
        return found


def main() -> int:
    """Print the table; with --check tell what is missed."""
    args = command_line(__doc__).parse_args()
    failed, plain = [], 0.0
    print('viewers         CPU     gaps   answer     rest')
    for viewers in VIEWERS:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            found = run(write_config(folder), folder, viewers)
        name = 'no page' if viewers is None else str(viewers)
        times = ''.join(f'{found[k]:7.3f} s' for k in ('answer', 'rest') if k in found)
        print(f'{name:10s} {100 * found["cpu"]:6.1f} % {100 * found["gaps"]:6.2f} %{times}')
        if viewers is None:
            plain = found['gaps']
            continue
        checks = {
            f'{viewers} viewers: {found["cpu"]:.0%} of a core': (
                viewers > 1 or found['cpu'] <= MOST_CPU
            ),
            f'{viewers} viewers: more gaps': found['gaps'] <= plain + MORE_GAPS,
            f'{viewers} viewers: stopped after {found["answer"]:.2f} s': (
                found['answer'] <= MOST_ANSWER
            ),
            f'{viewers} viewers: at rest after {found["rest"]:.2f} s': found['rest'] <= MOST_REST,
            f'{viewers} viewers: nothing was shown': found['read'] > 0,
        }
        failed += [text for text, kept in checks.items() if not kept]
    return verdict(failed, args.check)


if __name__ == '__main__':
    sys.exit(main())
