"""The process that started this one, where this one shall not outlive it."""

import os
from pathlib import Path

# Its id, set for a child that ends with it, as those of `ros2 launch` and `ros2 run` do.
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
    """
    Whether the program that started this process, and could have ended it, has ended.

    A process that was started by anything else, a shell or a service manager, goes on without it.
    """
    return IS_LAUNCHED and os.getppid() != PARENT
