"""Processes: whether one runs, and its end by force; no ROS, which is slow to import."""

from collections.abc import Mapping
import contextlib
import faulthandler
import functools
import os
from pathlib import Path
import threading

# Files of profiles by the names of Fast DDS 2 and 3; by what else a user chooses how it sends.
PROFILES = 'FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE'
_CHOSEN = {*PROFILES, 'FASTDDS_BUILTIN_TRANSPORTS', 'ROS_DISCOVERY_SERVER', 'ROS_STATIC_PEERS'}
_NOWHERE = open(os.devnull, 'w')
WATCHING_PRIORITY = 1  # above all that computes, below drivers and controllers: 50
_preferring, _PREFERRING_LOCK = 0, threading.Lock()  # how many ask for it
# Id of the process that a child ends with, as children of `ros2 launch` and `ros2 run` do.
ENDS_WITH = 'ROBOTID_ENDS_WITH'


def is_ros2(pid: int) -> bool:
    """Whether a process is the command `ros2`, a script of some interpreter."""
    try:
        words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
    except OSError:
        return False
    return any(Path(os.fsdecode(word)).name == 'ros2' for word in words[:2])


# As this module is imported: before all that takes long, see `entry.run_node`.
_GIVEN = os.environ.pop(ENDS_WITH, '')
PARENT = int(_GIVEN or os.getppid())
IS_LAUNCHED = bool(_GIVEN) or is_ros2(PARENT)


def launcher_is_gone() -> bool:
    """Whether the launch that started this process has ended; it goes on without a shell."""
    return IS_LAUNCHED and os.getppid() != PARENT


def child_environment(**variables: str) -> dict[str, str]:
    """Environment in which a child process finds this package, installed or not."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get('PYTHONPATH'))))
    return {**os.environ, 'PYTHONPATH': path, **variables}


def udp_alone() -> dict[str, str]:
    """
    Variables by which Fast DDS uses no shared memory, unless the user chose something else.

    A process that dies or is suspended while it writes to a port of shared memory keeps the port's
    lock: others wait for 1 s, and what they lose then is sent again after 3 s.
    """
    given = {name: value for name, value in os.environ.items() if value}
    if _CHOSEN & given.keys() or 'fastrtps' not in given.get('RMW_IMPLEMENTATION', 'fastrtps'):
        return {}
    alone = given.get('ROS_LOCALHOST_ONLY') == '1'  # which overrules the range
    if not alone and given.get('ROS_AUTOMATIC_DISCOVERY_RANGE') != 'LOCALHOST':
        return {'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4'}
    # There rmw_fastrtps takes shared memory, whatever it is told.
    return {
        **dict.fromkeys(PROFILES, str(Path(__file__).with_name('loopback.xml'))),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT',
        'ROS_LOCALHOST_ONLY': '0',
    }


def own_process() -> dict[str, str | int]:
    """Values by which others on this machine find this process: `is_alive`."""
    return {'processes': _process_space(), 'pid': os.getpid()}


@functools.cache
def _process_space() -> str:
    """Name what numbers processes: containers share a machine's name, but not its processes."""
    try:
        boot = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
        return f'{boot} {os.readlink("/proc/self/ns/pid")}'
    except OSError:
        return ''


def is_suspended(pid: int) -> bool:
    """Whether a process is stopped by a signal or a debugger, rather than short of processor."""
    return process_state(pid) in ('T', 't')


def is_alive(values: Mapping[str, str]) -> bool | None:
    """Whether the process of a message runs, not suspended; None: on another machine."""
    known = values.get('pid', '').isdecimal() and values.get('processes')
    if not known or known != _process_space():
        return None
    pid = int(values['pid'])
    if state := process_state(pid):
        return state in ('R', 'S', 'D')
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's, which /proc may hide
    return True


def process_state(pid: int) -> str:
    """State of a process as proc(5) names it, '' when there is none."""
    try:
        stat = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return ''
    return stat.rpartition(')')[2].split()[0]


def prefer_threads(preferred: bool) -> None:
    """
    Ask for real-time scheduling of this process's threads, or take that back.

    Whoever watches a robot must not wait for a processor behind those who compute. All threads
    share Python's lock and the middleware's. What is started from here is scheduled as usual. Of
    nodes in one process, all must take it back.
    """
    global _preferring
    policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK if preferred else os.SCHED_OTHER
    priority = os.sched_param(WATCHING_PRIORITY if preferred else 0)
    with _PREFERRING_LOCK:
        _preferring += 1 if preferred else -1
        for thread in os.listdir('/proc/self/task') if preferred or not _preferring else ():
            # A thread may have ended by now; the right may be lacking.
            with contextlib.suppress(OSError):
                if not preferred or os.sched_getscheduler(int(thread)) == os.SCHED_OTHER:
                    os.sched_setscheduler(int(thread), policy, priority)


def exit_after(seconds: float) -> None:
    """End this process after a time: Fast DDS was seen to spin for ever as it ends."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=_NOWHERE)


def cancel_exit() -> None:
    """Take `exit_after` back."""
    faulthandler.cancel_dump_traceback_later()
