"""
How many messages the recorder loses beside the simulated robot, on this machine.

`python benchmarks/recorder.py [ROBOT] [--seconds 60]`: two processes, 500 Hz joint states and
1 kHz controller states; what is missing shows as gaps between stamps.
"""

import os
from pathlib import Path
import random
import resource
import sys
import tempfile
import time

from common import command_line
import numpy as np

from robotid_ros.cli.demo import find_config
from robotid_ros.files.bags import read_recording
from robotid_ros.files.configuration import load
from robotid_ros.nodes.demo.node_processes import NodeProcesses, ros_environment
from robotid_ros.nodes.demo.session_client import SessionClient

ALLOWED = 1e-3


def lost(stamps: np.ndarray, rate: float) -> tuple[int, int]:
    """Count messages that are missing between the first and the last, and those expected."""
    steps = np.round(np.diff(stamps) * rate).astype(int)
    return int(np.sum(np.maximum(steps, 1) - 1)), int(np.sum(steps)) + 1


def record(config: Path, folder: str, seconds: float) -> Path:
    """Record for so long, driven as by hand."""
    domain = random.SystemRandom().randint(1, 100)
    os.environ.update(ros_environment(domain))
    with NodeProcesses(config, domain) as processes, SessionClient(domain) as client:
        processes.start('simulated_robot')
        processes.start('recorder', {'recorder.folder': folder})
        client.wait_for(lambda: client.state('recorder') == 'idle', 30.0, 'the recorder')
        # The robot must be known before the recorder chooses how to subscribe.
        client.wait_for(
            lambda: client.node.count_publishers('/joint_states') > 0, 30.0, 'the robot'
        )
        time.sleep(1.0)
        client.call_set_bool('recorder/record', True)
        time.sleep(seconds + 0.5)
        client.call_set_bool('recorder/record', False)
        client.wait_for(lambda: 'recorder/bag' in client.latest, 10.0, 'the bag')
        return Path(client.latest['recorder/bag'].data)


def main() -> int:
    """Print the figures; fail when more is lost than is allowed."""
    parser = command_line(__doc__, check=False)
    parser.add_argument('robot', nargs='?', default='tx40')
    parser.add_argument('--seconds', type=float, default=60.0)
    args = parser.parse_args()
    config = find_config(args.robot)
    simulation = load(config).simulation
    with tempfile.TemporaryDirectory() as folder:
        path = record(config, folder, args.seconds)
        recording = read_recording(path)
        size = sum(file.stat().st_size for file in path.iterdir())
    missing, expected = lost(recording.time, simulation.state_rate)
    print(f'{recording.duration:.1f} s recorded, {size / 1e6:.1f} MB')
    print(f'joint states: {missing} of {expected} lost, {100 * missing / expected:.4f} %')
    if recording.reference is not None:
        rate = simulation.controller_state_rate or simulation.update_rate
        gone, all_of_them = lost(recording.reference.time, rate)
        print(f'controller states: {gone} of {all_of_them} lost, {100 * gone / all_of_them:.4f} %')
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (used.ru_utime + used.ru_stime) / (args.seconds + 5.0)
    print(f'robot and recorder together used {100 * busy:.0f} % of one core')
    return 0 if missing <= ALLOWED * expected else 1


if __name__ == '__main__':
    sys.exit(main())
