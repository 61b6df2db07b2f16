"""The command line in a forked child with limits, and what may come of it."""

from dataclasses import dataclass
import gc
import importlib
import os
from pathlib import Path
import re
import resource
import signal
import tempfile
import time
import traceback

# What a damaged file may take: seconds of processor, bytes beyond what the parent has, characters
# of output. Twice the memory is granted before the child is refused any more.
SECONDS, MEMORY, CHARACTERS = 20, 1 << 30, 50_000
# A child that waits for ever uses no processor for so long [s].
PATIENCE = 120
_CONTROL = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ud800-\udfff]')

# Imported before a child is forked, so that it need not.
_COMMON = (
    'core.pipeline.identification',
    'files.collect_results',
    'files.report.page',
)


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code (negative: signal, None: hung), texts, seconds, bytes."""

    code: int | None
    out: str
    err: str
    seconds: float
    memory: int

    @property
    def fault(self) -> str:
        """Why this must not be, '' where it may."""
        if self.code is None or -self.code in (signal.SIGXCPU, signal.SIGKILL):
            return 'hangs'
        if self.code not in (0, 1, 2, 4):  # 4: unusable
            return f'ends with {self.code}: {self.err[-300:]}'
        if 'Traceback' in self.err or 'a bug' in self.err:
            return self.err[-400:]
        if self.memory > MEMORY:
            return f'takes {self.memory >> 20} MB'
        if 'not enough memory' in self.err:
            return 'asks for too much memory'
        if self.code == 1 and not self.out and not re.fullmatch(r'robotid: [^\n]+\n', self.err):
            return f'is no sentence: {self.err[-300:]}'
        if len(self.out) + len(self.err) > CHARACTERS:
            return f'prints {len(self.out) + len(self.err)} characters'
        found = _CONTROL.search(self.out + self.err)
        return f'prints {found.group()!r}' if found else ''


def robotid(*arguments: object) -> Outcome:
    """Run the command line in a child of its own that inherits all that is imported."""
    for module in _COMMON:
        importlib.import_module(f'robotid_ros.{module}')
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder, 'out'), Path(folder, 'err')
        began = time.monotonic()
        child = os.fork()
        if not child:
            _command([str(argument) for argument in arguments], texts)
        code, memory = _wait(child)
        out, err = (path.read_text(errors='replace') for path in texts)
    return Outcome(code, out, err, time.monotonic() - began, memory)


def _command(arguments: list[str], texts: tuple[Path, Path]) -> None:
    """Be the child; never return."""
    code = 99
    gc.freeze()  # what the parent left, as nodes whose threads are not here, is not collected
    try:
        for descriptor, path in zip((1, 2), texts, strict=True):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
        own = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + 3 * MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        import sys

        from robotid_ros.cli.main import main

        sys.stdout = open(1, 'w', encoding='utf-8', closefd=False)
        sys.stderr = open(2, 'w', encoding='utf-8', closefd=False)
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors='replace'))
    finally:
        os._exit(code)


def _wait(child: int) -> tuple[int | None, int]:
    """Return exit code and memory beyond that of the parent."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    used, end = '', 0.0
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), 1024 * max(0, usage.ru_maxrss - before)
        now, last = time.monotonic(), used
        # Ticks of the processor, in user and in system mode.
        used = ' '.join(Path(f'/proc/{child}/stat').read_text().rpartition(')')[2].split()[11:13])
        if used != last:
            end = now + PATIENCE
        elif now > end:
            os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            return None, 0
        time.sleep(0.005)
