"""The process that started this one, where it is `ros2 launch` or `ros2 run`."""

import os
from pathlib import Path


class Launcher:
    """
    Notices when the program that started this process, and could have ended it, is gone.

    A process that was started by anything else, a shell or a service manager, goes on without it.
    """

    def __init__(self) -> None:
        self._pid = os.getppid()
        self._watched = is_ros2(self._pid)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended: then this process has got another parent."""
        return self._watched and os.getppid() != self._pid


def is_ros2(pid: int) -> bool:
    """Whether a process is the command `ros2`, a script of some interpreter."""
    try:
        words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
    except OSError:
        return False
    return any(Path(os.fsdecode(word)).name == 'ros2' for word in words[:2])
