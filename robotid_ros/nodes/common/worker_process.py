"""Long computations in a process of their own: the node stays responsive and can stop them."""

from collections.abc import Callable
from concurrent.futures import Future
import contextlib
from functools import partial
import multiprocessing
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
import os
import signal
import threading
import time
import traceback
from typing import Any

from ...entry import limit_blas_threads
from ...exceptions import RobotIdError
from .messages import one_line

# How soon a request to stop is seen, and how long a killed process may take to end [s].
POLL_PERIOD, KILL_TIMEOUT = 0.05, 1.0
# How what computes while a robot moves gives way to it and its guards: by three to one. At the
# lowest priority of all it would never run on a machine that has something else to do.
LOW_PRIORITY = 5

ProgressCallback = Callable[[Any], None]


class UnforeseenError(RobotIdError):
    """Another error than a `RobotIdError` in a process; its cause has the traceback."""


def run_in_process(
    function: Callable[..., Any],
    *arguments: Any,
    progress: ProgressCallback | None = None,
    stop: threading.Event,
    time_limit: float,
) -> Any:
    """
    Call `function(*arguments)` in a process; wait for its result in a worker thread.

    It is a module's function, whose `RobotIdError` is raised here, of values that can be pickled.
    What it reports, to one more argument that it then has, `progress` is called with here. `stop`
    ends the process when set, and so does `time_limit` [s].
    """
    limit_blas_threads()
    context = multiprocessing.get_context('spawn')
    receiver, sender = context.Pipe(duplex=False)
    given = (sender, function, arguments, progress is not None)
    process = context.Process(target=_child_main, args=given, daemon=True)
    # It is started with the first process, and would allow SIGINT again.
    resource_tracker.ensure_running()
    # A Ctrl-C in the terminal is for the node, which then ends the computation.
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    sender.close()
    deadline = time.monotonic() + time_limit
    try:
        while True:
            if stop.is_set():
                raise RobotIdError('stopped by request')
            if time.monotonic() > deadline:
                why = f'not finished within {time_limit:g} s'
                raise RobotIdError(f'{why}: simplify, or allow more')
            if not receiver.poll(POLL_PERIOD):
                continue
            try:
                kind, value = receiver.recv()
            except (EOFError, OSError) as error:
                message = 'the computation was killed: is there enough memory?'
                raise RobotIdError(message) from error
            if kind == 'progress' and progress is not None:
                progress(value)
            elif kind == 'result':
                return value
            elif kind == 'error':
                raise RobotIdError(value)
            else:
                text, trace = value
                raise UnforeseenError(text) from RuntimeError(trace)
    finally:
        receiver.close()
        # One that has processes of its own ends them first.
        process.terminate()
        process.join(KILL_TIMEOUT)
        process.kill()


def start_in_process(
    function: Callable[..., Any], *arguments: Any, stop: threading.Event, time_limit: float
) -> Future[Any]:
    """Begin `run_in_process` beside a robot that moves, at low priority; return its future."""
    future = Future[Any]()

    def work() -> None:
        job = _call_gently, function, *arguments
        try:
            future.set_result(run_in_process(*job, stop=stop, time_limit=time_limit))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def describe_bug(error: BaseException) -> str:
    """Return the traceback of an error that nobody foresaw, '' of one that says all itself."""
    if isinstance(error, RobotIdError) and not isinstance(error, UnforeseenError):
        return ''
    return ''.join(traceback.format_exception(error))


def _call_gently(function: Callable[..., Any], *arguments: Any) -> Any:
    os.nice(LOW_PRIORITY)
    return function(*arguments)


def _child_main(
    connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], reports: bool
) -> None:
    # Not ignored, nor blocked any more: programs that are started from here would inherit that.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    assert parent is not None
    end = [parent.sentinel]
    threading.Thread(target=lambda: wait(end) and os._exit(1), daemon=True).start()

    def send(kind: str, value: Any) -> None:
        try:
            connection.send((kind, value))
        except BrokenPipeError as error:
            raise KeyboardInterrupt from error  # Nobody waits any more.

    # What has children of its own takes SIGTERM for this: it is no error, and has no traceback.
    with contextlib.suppress(KeyboardInterrupt):
        try:
            if reports:
                arguments = (*arguments, partial(send, 'progress'))
            send('result', function(*arguments))
        except RobotIdError as error:
            # Its text only: an error's own arguments do not survive pickling.
            send('error', str(error))
        except Exception as error:
            text = f'{one_line(error)} (a bug: please report it)'
            send('bug', (text, traceback.format_exc()))
            raise
