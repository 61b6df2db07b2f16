"""A Dask scheduler and its workers, each a process of its own that can be killed."""

import os
from pathlib import Path
import signal
import socket
import subprocess
import sys
import tempfile


class Cluster:
    """Processes as `dask scheduler` and `dask worker` start them; ended with the context."""

    def __init__(self) -> None:
        with socket.socket() as found:
            found.bind(('127.0.0.1', 0))
            self.port = found.getsockname()[1]
        self.address = f'tcp://127.0.0.1:{self.port}'
        self._folder = tempfile.TemporaryDirectory()
        self._scheduler: subprocess.Popen | None = None
        self._workers: list[subprocess.Popen] = []

    def _start(self, module: str, *options: str) -> subprocess.Popen:
        one = dict.fromkeys(('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS'), '1')
        path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *sys.path])
        return subprocess.Popen(
            [sys.executable, '-m', f'distributed.cli.{module}', *options, '--no-dashboard'],
            cwd=self._folder.name,
            env={**os.environ, **one, 'PYTHONPATH': path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start(self, workers: int) -> 'Cluster':
        """Start a scheduler, at the address of the last one, and workers."""
        here = ('--host', '127.0.0.1', '--port', str(self.port))
        self._scheduler = self._start('dask_scheduler', *here)
        for _ in range(workers):
            self.add_worker()
        return self

    def add_worker(self) -> None:
        """Start a worker of one thread."""
        self._workers.append(
            self._start('dask_worker', self.address, '--nthreads', '1', '--no-nanny')
        )

    def kill_worker(self) -> None:
        """Kill the oldest worker by SIGKILL."""
        _kill(self._workers.pop(0))

    def kill_all(self) -> None:
        """Kill scheduler and workers by SIGKILL."""
        while self._workers:
            self.kill_worker()
        if self._scheduler is not None:
            _kill(self._scheduler)
            self._scheduler = None

    def __enter__(self) -> 'Cluster':
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self._folder.cleanup()


def _kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
