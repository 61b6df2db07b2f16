"""`robotid`: one verb a module, each with its texts, `add_arguments(parser)` and `run(args)`."""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
from importlib import import_module
import io
import os
import signal
import sys
import threading

from ..exceptions import RobotIdError
from ..threads import limit_blas_threads
from .terminal import HelpFormatter, printable, PrintableStream

VERBS = (
    *('demo', 'design', 'identify', 'validate', 'payload', 'report', 'inspect'),
    *('convert', 'doctor', 'init', 'export'),
)
EXIT_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """
    Parser of the whole command line, a subparser per verb.

    A verb's module imports what is heavy inside its `run`, so that `--help` is quick.
    """
    parser = argparse.ArgumentParser(
        prog='robotid',
        description="Identify a robot's dynamic parameters: masses, inertias, friction.",
        epilog="Each command has its own help: 'robotid identify --help'.",
    )
    subparsers = parser.add_subparsers(dest='verb', metavar='COMMAND', required=True)
    for verb in VERBS:
        module = import_module(f'.{verb}', __package__)
        subparser = subparsers.add_parser(
            verb,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=getattr(module, 'EXAMPLES', None),
            formatter_class=HelpFormatter,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
        subparser.add_argument(
            '--debug', action='store_true', help='show the traceback of an error'
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Returns
    -------
    0 on success, 1 on an error, 2 on wrong usage, 3 for a poor design, 130 after Ctrl-C.

    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')  # no σ and N·m; names that are not UTF-8
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as usage:
        return usage.code if isinstance(usage.code, int) else 2
    with _interruptible() as interrupted, contextlib.redirect_stdout(PrintableStream(sys.stdout)):
        return _run(args, interrupted)


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Raise KeyboardInterrupt on SIGINT, as Python does, and remember it."""
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    old = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, old)


def _run(args: argparse.Namespace, interrupted: threading.Event) -> int:
    limit_blas_threads()  # verbs import NumPy
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail('interrupted', EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output is gone (a pager, head): nobody would read a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except RobotIdError as error:
        if args.debug:
            raise
        return _fail(str(error), 1)
    except Exception as error:
        if interrupted.is_set():  # libraries turn an interrupt of their import into other errors
            return _fail('interrupted', EXIT_INTERRUPTED)
        if args.debug:
            raise
        if isinstance(error, OSError) and error.errno:
            where = f" '{error.filename}'" if error.filename else ' the output'
            return _fail(
                f'cannot read or write{where}: {(error.strerror or str(error)).lower()}', 1
            )
        if isinstance(error, MemoryError):
            return _fail('there is not enough memory: choose a part with --from and --to', 1)
        files = ', '.join(f"'{path}'" for path in _inputs(args))
        what = f'{files} is damaged, or this is' if files else 'this is'
        text = f'{type(error).__name__}: {error}; {what} a bug: run again with --debug'
        return _fail(text, 1)


def _inputs(args: argparse.Namespace) -> list[str]:
    """Return the files and folders among the arguments, which an unforeseen error may be of."""
    values = (
        v for value in vars(args).values() for v in (value if isinstance(value, list) else [value])
    )
    return [value for value in values if isinstance(value, str) and os.path.exists(value)]


def _fail(text: str, code: int) -> int:
    print(printable(f'robotid: {" ".join(text.split())}'), file=sys.stderr)
    return code
