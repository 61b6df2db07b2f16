"""
Does the simulated robot keep real time on one core? Rates, jitter, late cycles and CPU load.

Run: `python benchmarks/simulated_robot.py [--config FILE] [--seconds 20] [--check]`. The bound of
the load is a multiple of the yardstick of `measure`; latency and loss are those of real time.
"""

import os
from pathlib import Path
import random
import signal
import subprocess
import sys
import time

from common import command_line, ROOT
from measure import yardstick
import numpy as np
import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

# Bounds of --check: a core with room for the rest of a session, where the yardstick takes a
# second, and no loss to speak of.
MOST_LOAD, MOST_LOST, MOST_LATENCY = 60.0, 0.1, 50.0


def main() -> int:
    """Measure, print a table, and with --check fail when a bound is passed."""
    parser = command_line(__doc__)
    parser.add_argument('--config', default=str(ROOT / 'config' / 'tx40.yaml'))
    parser.add_argument('--seconds', type=float, default=20.0)
    options = parser.parse_args()
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 100))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ['PYTHONPATH'] = str(ROOT)
    core = max(os.sched_getaffinity(0))
    robot = subprocess.Popen(
        [
            'taskset', '-c', str(core),
            sys.executable, '-m', 'robotid_ros.nodes', 'simulated_robot',
            '--ros-args', '--params-file', options.config,
        ]
    )  # fmt: skip
    try:
        rows = measure(robot.pid, options.seconds)
    finally:
        robot.send_signal(signal.SIGINT)
        robot.wait(timeout=10.0)
    width = max(map(len, rows))
    for name, (value, unit, bound) in rows.items():
        limit = f'  (at most {bound:g})' if bound is not None else ''
        print(f'{name:{width}}  {value:10.3f} {unit}{limit}')
    passed = all(bound is None or value <= bound for value, _, bound in rows.values())
    return 0 if passed or not options.check else 1


def measure(pid: int, seconds: float) -> dict[str, tuple[float, str, float | None]]:
    """Listen to the robot for a while; name -> (value, unit, bound of --check)."""
    rclpy.init()
    node = rclpy.create_node('listener')
    seen: list[tuple[int, int]] = []

    def note(message: JointState) -> None:
        stamp = message.header.stamp
        seen.append((stamp.sec * 10**9 + stamp.nanosec, time.time_ns()))

    node.create_subscription(JointState, '/joint_states', note, QoSProfile(depth=1000))
    while not seen:
        rclpy.spin_once(node, timeout_sec=1.0)
    end, used = time.monotonic() + 2.0, 0.0
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    seen.clear()
    used, begin = cpu_time(pid), time.monotonic()
    while time.monotonic() < begin + seconds:
        rclpy.spin_once(node, timeout_sec=0.1)
    load = 100.0 * (cpu_time(pid) - used) / (time.monotonic() - begin)
    node.destroy_node()
    rclpy.shutdown()
    unit = yardstick()
    stamps, arrivals = np.array(seen, dtype=np.int64).T
    periods, latency = np.diff(stamps) * 1e-6, (arrivals - stamps) * 1e-6
    due = round((stamps[-1] - stamps[0]) / np.median(np.diff(stamps))) + 1
    return {
        'CPU load of the core': (load, '%', None),
        'CPU load over the yardstick': (load / unit, '%/s', MOST_LOAD),
        'joint states by stamp': (1e3 * (len(stamps) - 1) / periods.sum(), 'Hz', None),
        'joint states by arrival': (
            1e9 * (len(stamps) - 1) / float(arrivals[-1] - arrivals[0]), 'Hz', None,
        ),
        'lost': (100.0 * (1.0 - len(stamps) / due), '%', MOST_LOST),
        'stamp to arrival, median': (float(np.median(latency)), 'ms', None),
        'stamp to arrival, 99.9 %': (float(np.quantile(latency, 0.999)), 'ms', MOST_LATENCY),
        'stamp to arrival, worst': (float(latency.max()), 'ms', None),
        'drift of stamps': (float(np.mean(latency[-500:]) - np.mean(latency[:500])), 'ms', 5.0),
        'jitter of stamps': (float(periods.std()), 'ms', None),
    }  # fmt: skip


def cpu_time(pid: int) -> float:
    """Time that a process has used of the processors [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


if __name__ == '__main__':
    sys.exit(main())
