"""Work handed to the workers of a Dask scheduler, a bounded number of tasks at a time."""

from collections.abc import Callable, Hashable, Iterator
import dataclasses
import itertools
import time
from typing import Any

from ..exceptions import RobotIdError
from .settings import FleetSettings

# Seconds between two looks at how many workers there are; longest waits for the first of them and
# for a scheduler that is started again.
WORKERS_EVERY, FIRST_WORKER, RECONNECT = 5.0, 120.0, 300.0
# Times that a job is handed out again when the scheduler forgets it.
RESTARTS = 100
# Of Dask on this machine: workers that may have children; and nothing that looks every few
# milliseconds how the time is spent, which on two cores is a tenth of it.
LOCAL = {
    'distributed.worker.daemon': False,
    'distributed.worker.profile.enabled': False,
    'distributed.admin.tick.interval': '1s',
}


class EngineError(RobotIdError, RuntimeError):
    """Dask is not installed, or its scheduler is gone."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A call of a pure function, and a key by which its outcome is known."""

    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Lost:
    """What a job has instead of a value: why there is none."""

    reason: str


class Engine:
    """
    Workers of this machine, or of the scheduler at an address.

    A scheduler that is started again finds its work handed out again; workers that die are
    replaced by whoever started them (here: Dask's nannies), and their tasks go to others.
    """

    def __init__(self, settings: FleetSettings, scheduler: str = ''):
        self.settings, self._cluster = settings, None
        self._capacity, self._looked = 1, -WORKERS_EVERY
        try:
            import dask
            import distributed
        except ImportError as error:
            raise EngineError(
                f"a fleet needs Dask ({error}): pip install 'robotid_ros[fleet]'"
            ) from error
        self._distributed = distributed
        target: Any = scheduler
        try:
            if not scheduler:
                dask.config.set(LOCAL)
                target = self._cluster = distributed.LocalCluster(
                    n_workers=settings.workers or None,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=int(settings.memory * 1e9),
                    dashboard_address=':0',
                    silence_logs=50,
                )
            # Workers here can be reached: what they found need not go through the scheduler.
            direct = None if scheduler else True
            self.client = distributed.Client(
                target, set_as_default=False, timeout=FIRST_WORKER, direct_to_workers=direct
            )
            self.client._timeout = RECONNECT
            self.client.wait_for_workers(1, timeout=FIRST_WORKER)
        except (OSError, TimeoutError, RuntimeError) as error:
            self.close()
            where = f"scheduler at '{scheduler}'" if scheduler else 'cluster on this machine'
            raise EngineError(f'no {where} with workers answers ({error}): start one') from error

    @property
    def dashboard(self) -> str:
        """Address of Dask's page."""
        return str(self.client.dashboard_link)

    def run(self, jobs: Iterator[Job]) -> Iterator[tuple[Job, Any]]:
        """
        Yield each job with its value, or `Lost`, as they are done.

        Jobs are taken from the iterator no faster than workers need them; it may be fed with more
        of them while it runs. It ends with an `EngineError` where the scheduler is gone for good.
        """
        waiting: dict[Hashable, tuple[Job, int]] = {}
        done = self._distributed.as_completed(loop=self.client.loop, raise_errors=False)
        while True:
            for job in itertools.islice(jobs, max(0, self._room() - len(waiting))):
                self._submit(job, 0, waiting, done)
            if not waiting:
                return
            future = next(done)
            job, attempt = waiting.pop(future.key)
            outcome = self._outcome(future)
            if outcome is None:
                if attempt == RESTARTS or self.client.status in ('closing', 'closed'):
                    raise EngineError(
                        'the scheduler is gone: start it and run again, what is done is kept'
                    )
                self._submit(job, attempt + 1, waiting, done)
                continue
            yield job, outcome

    def _submit(self, job: Job, attempt: int, waiting: dict[Hashable, Any], done: Any) -> None:
        # A scheduler that forgot a key remembers its failure by this name.
        key = f'{job.function.__name__}-{job.key}-{attempt}'
        future = self.client.submit(job.function, *job.arguments, key=key)
        waiting[future.key] = job, attempt
        done.add(future)

    def _outcome(self, future: Any) -> Any:
        """Return the value of a future, `Lost` without one, None where it was forgotten."""
        if future.status == 'finished':
            try:
                return future.result()
            except (self._distributed.client.FutureCancelledError, OSError, TimeoutError):
                return None
        if future.status == 'error':
            error = future.exception()
            if isinstance(error, self._distributed.scheduler.KilledWorker):
                return Lost('its workers died: it may need more memory than fleet.memory')
            return Lost(f'{type(error).__name__}: {error}')
        return None

    def _room(self) -> int:
        """Return how many jobs may be in flight."""
        now = time.monotonic()
        if now - self._looked >= WORKERS_EVERY and self.client.status == 'running':
            self._looked = now
            try:
                threads = sum(self.client.nthreads().values())
            except (OSError, TimeoutError, RuntimeError):
                return self._capacity  # between two schedulers
            self._capacity = max(1, threads) * self.settings.waiting
        return self._capacity

    def close(self) -> None:
        """Let go of the scheduler, and end the workers that were started here."""
        if getattr(self, 'client', None) is not None:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> 'Engine':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
