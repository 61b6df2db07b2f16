"""Computations in a process: results, progress and errors come back, and it can be ended."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from waiting import PATIENCE, wait_until

from robotid_ros.exceptions import LimitError, RobotIdError
from robotid_ros.nodes.common.worker_process import describe_bug, run_in_process, start_in_process


def double(value, progress):
    for k in range(3):
        progress(k)
    return 2 * value, os.getpid()


def leave_a_limit(progress):
    raise LimitError('elbow', 'velocity', 1.0, 3.0, 2.0)


def fail(progress):
    raise ZeroDivisionError('oh')


def threads(progress):
    return [os.environ.get(name) for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS')]


def sleep(progress):
    progress(os.getpid())
    time.sleep(2.0 * PATIENCE)


def end_like_a_demo(progress):
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress(os.getpid())
    time.sleep(2.0 * PATIENCE)


def report_for_ever(progress):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        progress(os.getpid())
        time.sleep(0.01)


def interrupt(progress):
    """Interrupt the computation, as a terminal does; return what its children block."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    show = 'import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))'
    return subprocess.run([sys.executable, '-c', show], capture_output=True, text=True).stdout


def die(progress):
    os._exit(9)


def run(function, *arguments, stop=None, progress=lambda value: None, time_limit=PATIENCE):
    stop = stop or threading.Event()
    return run_in_process(
        function, *arguments, progress=progress, stop=stop, time_limit=time_limit
    )


def test_result_and_progress_come_back_from_another_process():
    seen = []
    result, pid = run(double, 21, progress=seen.append)
    assert (result, seen) == (42, [0, 1, 2])
    assert pid != os.getpid()


def test_it_sums_in_one_thread(monkeypatch):
    """Other sums would make another trajectory of the same seed."""
    monkeypatch.setenv('OPENBLAS_NUM_THREADS', '4')
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    assert run(threads) == ['1', '1']


def test_errors_come_back_as_their_sentence():
    with pytest.raises(RobotIdError, match='velocity of elbow'):
        run(leave_a_limit)
    with pytest.raises(RobotIdError, match='ZeroDivisionError: oh'):
        run(fail)
    with pytest.raises(RobotIdError, match='killed'):
        run(die)


def ask(function, *arguments):
    return start_in_process(function, *arguments, stop=threading.Event(), time_limit=PATIENCE)


def test_what_nobody_foresaw_has_a_traceback():
    assert describe_bug(ask(leave_a_limit, None).exception()) == ''
    here = describe_bug(ask(lambda: None).exception())  # which cannot be pickled
    assert 'Traceback' in here and "Can't pickle" in here
    there = describe_bug(ask(fail, None).exception())
    assert "raise ZeroDivisionError('oh')" in there and '(a bug: please report it)' in there


def test_it_ends_when_asked_or_late():
    stop, pids = threading.Event(), []

    def progress(pid):
        pids.append(pid)
        stop.set()

    with pytest.raises(RobotIdError, match='stopped by request'):
        run(sleep, stop=stop, progress=progress)
    # Asking for them also takes leave of those that have ended.
    wait_until(
        lambda: pids[0] not in [child.pid for child in multiprocessing.active_children()],
        'the process ends',
    )
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    with pytest.raises(RobotIdError, match='not finished within'):
        run(sleep, time_limit=0.5)


@pytest.mark.parametrize('work', [end_like_a_demo, report_for_ever])
def test_work_that_is_stopped_leaves_no_traceback(work, capfd):
    stop = threading.Event()
    with pytest.raises(RobotIdError, match='stopped by request'):
        run(work, stop=stop, progress=lambda _: stop.set())
    assert capfd.readouterr().err == ''


def test_an_interrupt_from_the_terminal_is_for_the_node_alone(capfd):
    for _ in range(2):
        assert run(interrupt) == 'set()\n'
    assert 'Traceback' not in capfd.readouterr().err
