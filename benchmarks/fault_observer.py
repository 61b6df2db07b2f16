"""What is seen of a session from outside: states and when they came, the robot and its efforts."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
import contextlib
import functools
from pathlib import Path
import sys
import threading
from typing import Any

from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from sensor_msgs.msg import JointState

from robotid_ros.nodes.common.batched_subscription import BatchedSubscription
from robotid_ros.nodes.common.runtime import LATCHED_HISTORY
from robotid_ros.nodes.common.waiting import wait_until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'tools'))
from session_client import SessionClient

# Slower than this counts as rest [rad/s]; over this time a speed is taken [ns].
REST, WINDOW = 0.015, 20_000_000


class Client(SessionClient):
    """Notes when each state was published [ns], not when this process had its turn."""

    def __init__(self, domain: int):
        super().__init__(domain)
        self.arrivals: list[tuple[int, str, Any]] = []
        for topic in ('excitation/state', 'recorder/state'):
            note = functools.partial(self._note, topic)
            self.node.create_subscription(DiagnosticStatus, topic, note, LATCHED_HISTORY)

    def _note(self, topic: str, message: Any, info: Mapping[str, int]) -> None:
        self.arrivals.append((info['source_timestamp'], topic, message))


class Observer:
    """Positions and efforts of the robot as two topics show them, by the robot's clock."""

    def __init__(self, client: Client, limits: np.ndarray):
        self._limits = limits
        self._streams = (
            BatchedSubscription(client.node, JointState, 'joint_states', depth=5000),
            BatchedSubscription(
                client.node, JointTrajectoryControllerState, 'arm_controller/controller_state'
            ),
        )
        self.reset()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def reset(self) -> None:
        """Forget everything."""
        # Stamps and positions of each topic: one value, as another thread appends to it meanwhile.
        self.samples: tuple[tuple[list[int], list[np.ndarray]], ...] = (([], []), ([], []))
        self.excess = 0.0

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            for k, stream in enumerate(self._streams):
                for message in stream.take_messages():
                    self._keep(k, message)

    def _keep(self, k: int, message: Any) -> None:
        state = message if k == 0 else message.feedback
        position = getattr(state, 'position' if k == 0 else 'positions')
        if len(position) != len(self._limits):
            return  # not the robot's
        if k == 0 and len(message.effort) == len(self._limits):
            # Applied ones: what a controller commands to stop at once, drives saturate.
            share = np.nanmax(np.abs(message.effort) / self._limits, initial=0.0)
            self.excess = max(self.excess, float(share))
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        stamps, positions = self.samples[k]
        if not stamps or stamp > stamps[-1]:
            positions.append(np.array(position))
            stamps.append(stamp)

    def speed(self, k: int, stamp: int) -> float:
        """Largest joint speed at a stamp on one topic, NaN without samples."""
        stamps, positions = self.samples[k]
        first, last = bisect_left(stamps, stamp - WINDOW), bisect_right(stamps, stamp) - 1
        if last <= first:
            return float('nan')
        travel = np.abs(positions[last] - positions[first])
        if np.isnan(travel).all():
            return float('nan')
        return float(np.nanmax(travel) / ((stamps[last] - stamps[first]) * 1e-9))

    @property
    def latest(self) -> int:
        """Stamp of the latest joint states [ns], 0 without any."""
        stamps = self.samples[0][0]
        return stamps[-1] if stamps else 0

    def is_moving(self) -> bool:
        """Whether the robot moves now."""
        return any(s and self.speed(k, s[-1]) > 0.1 for k, (s, _) in enumerate(self.samples))

    def rest_after(self, stamp: int, watched: float, patience: float) -> float:
        """
        Time from a stamp until the robot rests for good [s], NaN if it was not seen.

        By the robot's clock, which a busy machine holds up: it is watched until that tells that
        `watched` seconds have passed, or for `patience` seconds.
        """
        end = stamp + round(watched * 1e9)
        wait_until(lambda: any(s and s[-1] >= end for s, _ in self.samples), patience)
        ends = []
        for k in range(2):
            stamps, _ = self.samples[k]
            seen = {s: self.speed(k, s) for s in stamps[bisect_left(stamps, stamp) :: 5]}
            if sum(np.isfinite(v) for v in seen.values()) > 10:
                moving = [s for s, speed in seen.items() if speed > REST]
                ends.append((max(moving, default=stamp) - stamp) * 1e-9)
        return max(ends, default=float('nan'))

    def close(self) -> None:
        """Stop watching."""
        self._end.set()
        self._thread.join()


class Turns:
    """
    How long a machine holds up processes that could run: what no bound of theirs can include.

    Parameters
    ----------
    pids : of the processes that answer one another in turn

    """

    def __init__(self, pids: Iterable[int]):
        self._before = {pid: _waited(pid) for pid in pids}

    def waited(self) -> float:
        """Sum over the processes of the longest wait of a thread for a processor until now [s]."""
        return sum(
            max((now[k] - before.get(k, 0) for k in now), default=0) * 1e-9
            for pid, before in self._before.items()
            for now in (_waited(pid),)
        )


def _waited(pid: int) -> dict[str, int]:
    """Time that each thread has waited for a processor, by schedstat of proc(5) [ns]."""
    found = {}
    for task in Path(f'/proc/{pid}/task').glob('*'):
        # A thread may end meanwhile.
        with contextlib.suppress(OSError, IndexError):
            found[task.name] = int((task / 'schedstat').read_text().split()[1])
    return found
