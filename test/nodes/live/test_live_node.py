"""The node of the live page as a process: what others publish does not end it."""

import asyncio
import json
import os
from pathlib import Path
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from diagnostic_msgs.msg import DiagnosticStatus
import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect
from waiting import PATIENCE

from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.common.runtime import LATCHED_HISTORY, lone_node

pytestmark = pytest.mark.ros
CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'


def refuse(text: str) -> Any:
    raise AssertionError(f'no JSON of a browser: {text}')


async def message_of(address: str, wanted: str) -> None:
    """Wait until a viewer sees this state."""
    url = urlsplit(address)
    token = url.query.partition('=')[2]
    headers = {'Cookie': f'robotid_{url.port}={token}'}
    request = HTTPRequest(f'ws://127.0.0.1:{url.port}/data', headers=headers)
    viewer = await websocket_connect(request)
    while (text := await viewer.read_message()) is not None:
        if json.loads(text, parse_constant=refuse)['message'] == wanted:
            viewer.close()
            return
    raise AssertionError('the page is gone')


def test_values_that_are_no_numbers_do_not_end_the_page(domain: int, tmp_path: Path):
    command = [
        *(sys.executable, '-m', 'robotid_ros.nodes', 'live', '--ros-args', '--log-level', 'fatal'),
        *('--params-file', str(CONFIG), '-p', 'live.port:=0'),
        *('-p', f'recorder.folder:={tmp_path}'),
    ]
    environment = os.environ | {'ROS_DOMAIN_ID': str(domain)}
    page = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert page.stdout is not None
        address = next(line for line in page.stdout if 'token=' in line).split()[-1]
        with lone_node('stranger', '/', domain) as node:
            keys = {'identification/progress': 'sigma.M1', 'excitation/state': 'stamp'}
            for topic, key in keys.items():
                publisher = node.create_publisher(DiagnosticStatus, topic, LATCHED_HISTORY)
                for value in ('soon', 'nan', '1e999'):
                    values = {key: value, 'state': 'exciting'}
                    publisher.publish(status('', f'{topic}: {value}', values))
            done = node.create_publisher(DiagnosticStatus, 'identification/state', LATCHED_HISTORY)
            for more in ({}, {'folder': '/'}):  # of no folder, of one that is not the node's
                done.publish(status('', 'done', {'state': 'done', **more}))
            publisher.publish(status('', 'well', {'stamp': '1.5', 'state': 'exciting'}))
            asyncio.run(asyncio.wait_for(message_of(address, 'well'), PATIENCE))
    finally:
        page.kill()
        page.wait()
