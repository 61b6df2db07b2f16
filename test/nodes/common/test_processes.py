"""A process ends in time even where nobody gives Python's lock back."""

import os
from pathlib import Path
import subprocess
import sys
import threading
import time

import pytest
from waiting import PATIENCE

from robotid_ros import entry
from robotid_ros.nodes.common.processes import (
    child_environment,
    prefer_threads,
    PROFILES,
    udp_alone,
)

# A regular expression that takes ages, in C, with the lock held as Fast DDS does.
SCRIPT = """
import re
from robotid_ros import entry
from robotid_ros.nodes.common.processes import cancel_exit, exit_after
exit_after(0.2)
cancel_exit()
exit_after(0.5)
print('spinning', flush=True)
re.match('(a+)+$', 'a' * 60 + 'b')
"""


def test_a_process_that_spins_with_the_lock_ends():
    begin = time.monotonic()
    ended = subprocess.run(
        [sys.executable, '-c', SCRIPT],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, 'spinning\n', '')
    assert time.monotonic() - begin > 0.5


@pytest.mark.parametrize(
    ('given', 'transport'),
    [
        ({}, 'UDPv4'),
        ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}, 'loopback.xml'),
        ({'ROS_LOCALHOST_ONLY': '1'}, 'loopback.xml'),
        ({'FASTDDS_BUILTIN_TRANSPORTS': 'SHM'}, ''),
        ({'FASTDDS_BUILTIN_TRANSPORTS': '', 'RMW_IMPLEMENTATION': ''}, 'UDPv4'),
        ({'ROS_STATIC_PEERS': '10.0.0.7', 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}, ''),
        ({'RMW_IMPLEMENTATION': 'rmw_cyclonedds_cpp'}, ''),
    ],
)
def test_shared_memory_is_avoided_where_the_user_chose_nothing_else(
    given: dict[str, str], transport: str, monkeypatch: pytest.MonkeyPatch
):
    for name in [name for name in os.environ if name.startswith(('FAST', 'ROS_', 'RMW_'))]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    chosen = udp_alone()
    assert Path(next(iter(chosen.values()), '')).name == transport
    assert all(x in chosen for x in PROFILES) == (transport == 'loopback.xml')
    # What keeps nodes to this machine is replaced by what does so, too.
    assert ('ROS_AUTOMATIC_DISCOVERY_RANGE' in chosen) == (transport == 'loopback.xml')


@pytest.mark.parametrize(('name', 'shares'), [('excitation', False), ('recorder', True)])
def test_a_node_has_one_thread_for_matrices_and_shares_no_memory_if_it_moves_the_robot(
    name: str, shares: bool, monkeypatch: pytest.MonkeyPatch
):
    seen = dict[str, str]()
    monkeypatch.setattr(os, 'environ', {})
    monkeypatch.setattr(entry, '_run', lambda *_: seen.update(os.environ) or 0)
    monkeypatch.setattr(os, '_exit', lambda _: None)
    entry.run_node(name)
    assert (seen.get('FASTDDS_BUILTIN_TRANSPORTS') != 'UDPv4') == shares
    assert seen['OPENBLAS_NUM_THREADS'] == seen['OMP_NUM_THREADS'] == '1'


def test_threads_that_watch_are_preferred_where_the_system_lets_them():
    def policies() -> set[int]:
        flag = os.SCHED_RESET_ON_FORK
        tasks = map(int, os.listdir('/proc/self/task'))
        return {os.sched_getscheduler(task) & ~flag for task in tasks}

    ask = 'import os; print(os.sched_getscheduler(0))'
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        prefer_threads(True)
        allowed = policies()
        # What computes for them, in a process of its own, is not.
        child = subprocess.run([sys.executable, '-c', ask], capture_output=True, text=True)
        assert child.stdout == f'{os.SCHED_OTHER}\n'
        prefer_threads(False)
        assert policies() == {os.SCHED_OTHER}
    finally:
        end.set()
        thread.join()
    # Without the right to it nothing changes.
    assert allowed in ({os.SCHED_RR}, {os.SCHED_OTHER})
