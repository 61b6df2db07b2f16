"""Whether a process runs, is suspended or dead; no ROS here, for the guardian starts quickly."""

from collections.abc import Mapping
import os
from pathlib import Path
import socket


def own_process() -> dict[str, str | int]:
    """Values by which others on this machine find this process: `is_here`."""
    return {'host': socket.gethostname(), 'pid': os.getpid()}


def is_here(values: Mapping[str, str]) -> bool:
    """Whether the values of a message name a process of this machine, dead or alive."""
    return values.get('host') == socket.gethostname() and values.get('pid', '').isdecimal()


def is_suspended(pid: int) -> bool:
    """Whether a process is stopped by a signal or a debugger, rather than short of processor."""
    return process_state(pid) in ('T', 't')


def is_active(pid: int) -> bool:
    """Whether a process runs or waits: it is neither suspended nor dead."""
    return process_state(pid) in ('R', 'S', 'D')


def process_state(pid: int) -> str:
    """State of a process as proc(5) names it, '' when there is none."""
    try:
        stat = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return ''
    return stat.rpartition(')')[2].split()[0]
