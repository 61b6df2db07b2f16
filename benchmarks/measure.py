"""What a piece of work costs: in a process of its own, on one thread."""

from collections.abc import Iterator, Sequence
import contextlib
from dataclasses import dataclass
import os
from pathlib import Path
import subprocess
import sys

from common import ROOT

# Of a robot's control loop, far below what controller_manager takes.
PRIORITY = 10
THREADS = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


@dataclass(frozen=True)
class Cost:
    """CPU time of the whole process [s], its largest resident size [MB], and what it printed."""

    seconds: float
    megabytes: float
    output: str


def measure(arguments: Sequence[str | Path]) -> Cost:
    """
    Run Python with these arguments on one thread.

    Raises
    ------
    RuntimeError : it failed

    """
    paths = [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]
    single = dict.fromkeys(THREADS, '1')
    environment = {**os.environ, **single, 'PYTHONPATH': os.pathsep.join(paths)}
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f'{" ".join(command)} failed: {output}')
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0, output)


@contextlib.contextmanager
def busy(loops: int, *, apart: bool = True) -> Iterator[None]:
    """
    Keep the machine busy.

    Parameters
    ----------
    loops : how many processes that never wait
    apart : each in a session of its own, as that of another user: the scheduler shares the
        processors among sessions, so that with one loop all processes here get half; else each
        loop counts as one process among them

    """
    running = [
        subprocess.Popen([sys.executable, '-c', 'while True: pass'], start_new_session=apart)
        for _ in range(loops)
    ]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def run_in_real_time(pid: int) -> bool:
    """
    Give all threads of a process a real-time priority, as controller_manager asks for.

    Returns
    -------
    Whether this user may.

    """
    try:
        for thread in os.listdir(f'/proc/{pid}/task'):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    return True
