"""A node ends when `ros2 launch`, which should end it, is gone; without one it goes on."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from loopback import loopback_environment
import pytest
from waiting import PATIENCE, wait_until

from robotid_ros.nodes.common.processes import child_environment

from .conftest import Session
from .test_deaths import dead

pytestmark = [pytest.mark.ros, pytest.mark.slow]

SCRIPT = """
import os, subprocess, sys
if os.path.basename(sys.argv[0]) == 'parent':
    os.environ['ROBOTID_ENDS_WITH'] = str(os.getpid())
process = subprocess.Popen([sys.executable, '-m', 'robotid_ros.nodes', *sys.argv[1:]])
print(process.pid, flush=True)
process.wait()
"""


@pytest.mark.parametrize(
    ('name', 'node'),
    [
        *(('ros2', 'excitation'), ('ros2', 'recorder')),
        *(('parent', 'identification'), ('shell', 'excitation')),
    ],
)
def test_an_orphan_ends_only_where_its_launch_should_have_ended_it(
    name: str, node: str, session: Session, config: Path, tmp_path: Path
):
    script = tmp_path / name
    script.write_text(SCRIPT)
    launcher = subprocess.Popen(
        [sys.executable, script, node, '--ros-args', '--params-file', config],
        env=child_environment(**loopback_environment(session.domain)),
        stdout=subprocess.PIPE,
        text=True,
    )
    with launcher:
        pid = int(launcher.stdout.readline())
        session.ready(node)
        launcher.kill()
    if name != 'shell':
        wait_until(lambda: dead(pid), 'the node ends', session.describe)
        return
    # Long enough for the other one to end; it still answers, and can be ended.
    # Several times as long as the other one takes to notice.
    time.sleep(1.0)
    message = session.client.call_trigger('excitation/stop', PATIENCE)
    assert message == 'nothing was running'
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: dead(pid), 'the node ends', session.describe)
