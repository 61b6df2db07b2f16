"""
What a piece of work costs: in a process of its own, on one thread.

    python benchmarks/measure.py

prints the yardstick, see `yardstick`, and the CPU time of the imports that no identification can
do without.
"""

from collections.abc import Iterator, Sequence
import contextlib
from dataclasses import dataclass
import os
from pathlib import Path
import subprocess
import sys
import time

from common import ROOT

# Calls of the yardstick, and how often a tenth of them is measured: 0.5 to 1 s, by machine.
CALLS, TIMES = 200_000, 3
IMPORTS = 'import numpy, scipy.linalg, scipy.ndimage, scipy.optimize, scipy.special, pinocchio'
# Of a robot's control loop, far below what controller_manager takes.
PRIORITY = 10
THREADS = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


@dataclass(frozen=True)
class Cost:
    """CPU time of the whole process [s], its largest resident size [MB], what it printed, wall."""

    seconds: float
    megabytes: float
    output: str
    wall: float


def measure(arguments: Sequence[str | Path]) -> Cost:
    """
    Run Python with these arguments on one thread, its modules compiled as an installed one's are.

    Raises
    ------
    RuntimeError : it failed

    """
    paths = [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]
    single = dict.fromkeys(THREADS, '1')
    environment = {**os.environ, **single, 'PYTHONPATH': os.pathsep.join(paths)}
    environment.pop('PYTHONDONTWRITEBYTECODE', None)
    command, begin = [sys.executable, *map(str, arguments)], time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f'{" ".join(command)} failed: {output}')
    wall = time.monotonic() - begin
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0, output, wall)


def yardstick() -> float:
    """
    Return the CPU time of `CALLS` calls of Pinocchio's joint torque regressor, here and now [s].

    Bounds of time are multiples of it: it is from half a second to a second on most machines, and
    longer on one that is slow that day.
    """
    import numpy as np
    import pinocchio

    model = pinocchio.buildModelFromXML((ROOT / 'urdf/ur10.urdf').read_text())
    data, calls, costs = model.createData(), CALLS // 10, []
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (calls, 3, model.nv))
    for _ in range(TIMES):
        begin = time.process_time()
        for q, dq, ddq in states:
            pinocchio.computeJointTorqueRegressor(model, data, q, dq, ddq)
        costs.append(time.process_time() - begin)
    return min(costs) * CALLS / calls


def imports() -> float:
    """Return the CPU time of a process that imports what no identification can do without [s]."""
    return min(measure(['-c', IMPORTS]).seconds for _ in range(TIMES))


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


if __name__ == '__main__':
    print(f'yardstick {yardstick():.3f} s, imports {imports():.3f} s')
