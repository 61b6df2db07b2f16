"""`robotid`: one verb a module, each with its texts, `add_arguments(parser)` and `run(args)`."""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
from importlib import import_module
import io
import os
import shlex
import signal
import sys
import threading
from typing import Any, NoReturn

from .. import __version__
from ..exceptions import RobotIdError, use_one_of
from ..threads import limit_blas_threads
from .terminal import HelpFormatter, print_error, PrintableStream

VERBS = (
    *('demo', 'design', 'identify', 'validate', 'compare', 'payload', 'report', 'inspect'),
    *('convert', 'doctor', 'init', 'export', 'fleet'),
)
EXIT_USAGE, EXIT_INTERRUPTED = 2, 130
EXAMPLES = """\
examples:
  robotid demo                               # a session on a simulated robot
  robotid identify arm.csv --urdf arm.urdf   # any log of positions and efforts
  robotid init arm.urdf                      # a configuration for your own arm

Exit codes: 0 success, 1 error, 2 wrong usage, 3 poor design, 4 unusable result or
log (what was found is written all the same), 130 interrupted.

Each command has its own help and examples: 'robotid identify --help'.
Completion of commands and options, where the package argcomplete is installed:
  eval "$(register-python-argcomplete robotid)"
"""


WELCOME = """\
{description} A log of a moving robot and its URDF are enough.

  robotid demo                               # a session on a simulated robot
  robotid identify arm.csv --urdf arm.urdf   # any log of positions and efforts
  robotid init arm.urdf                      # a configuration for your own arm

All commands: robotid --help. Of one: robotid identify --help.
"""


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with a word, and which one is the nearest."""

    def error(self, message: str) -> NoReturn:
        """Print a sentence and exit with code 2."""
        print_error(f'robotid: {message}; {self.prog} --help shows what there is')
        self.exit(EXIT_USAGE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            remedy = use_one_of(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"there is no '{value}': {remedy}")

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse all words, or exit with code 2 and a sentence on the first that is unknown."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            word, parser = unknown[0].split('=')[0], self
            while parser._subparsers:  # that of the command
                actions: Any = parser._subparsers._group_actions[0]
                parser = actions.choices[getattr(found, actions.dest)]
            if word.startswith('-'):
                options = [o for o in parser._option_string_actions if o.startswith('--')]
                parser.error(f"there is no option '{word}': {use_one_of(word, options)}")
            parser.error(f"there is no place for '{word}'")
        return found


def build_parser() -> argparse.ArgumentParser:
    """
    Parser of the whole command line, a subparser per verb.

    A verb's module imports what is heavy inside its `run`, so that `--help` is quick.
    """
    parser = Parser(
        prog='robotid',
        description="Identify a robot's dynamic parameters: masses, inertias, friction.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument('--version', action='version', version=f'robotid {__version__}')
    subparsers = parser.add_subparsers(dest='verb', metavar='COMMAND', required=True)
    for verb in VERBS:
        module = import_module(f'.{verb}', __package__)
        subparser = subparsers.add_parser(
            verb,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
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
    0 on success, 1 on an error, 2 on wrong usage, 3 for a poor design, 4 where a result or a log
    is unusable, 130 after Ctrl-C.

    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')  # no σ and N·m; names that are not UTF-8
    parser = build_parser()
    if '_ARGCOMPLETE' in os.environ:
        _complete(parser)
    words = sys.argv[1:] if argv is None else argv
    if not words:
        sys.stderr.write(WELCOME.format(description=parser.description))
        return EXIT_USAGE
    try:
        args = parser.parse_args(argv)
        args.command_line = shlex.join(['robotid', *words])
    except SystemExit as usage:
        return usage.code if isinstance(usage.code, int) else EXIT_USAGE
    with _interruptible() as interrupted, contextlib.redirect_stdout(PrintableStream(sys.stdout)):
        return _run(args, interrupted)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks how a line goes on, and end; not where argcomplete is missing."""
    with contextlib.suppress(ImportError):
        import argcomplete

        argcomplete.autocomplete(parser)


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
        _discard_output()
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
            if not error.filename:
                _discard_output()
            return _fail(
                f'cannot read or write{where}: {(error.strerror or str(error)).lower()}', 1
            )
        if isinstance(error, MemoryError):
            return _fail('there is not enough memory: choose a part with --from and --to', 1)
        files = ', '.join(f"'{path}'" for path in _inputs(args))
        what = f'{files} is damaged, or this is' if files else 'this is'
        text = f'{type(error).__name__}: {error}; {what} a bug: run again with --debug'
        return _fail(text, 1)


def _discard_output() -> None:
    """Forget what cannot be written: the interpreter would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _inputs(args: argparse.Namespace) -> list[str]:
    """Return the files and folders among the arguments, which an unforeseen error may be of."""
    values = (
        v for value in vars(args).values() for v in (value if isinstance(value, list) else [value])
    )
    return [value for value in values if isinstance(value, str) and os.path.exists(value)]


def _fail(text: str, code: int) -> int:
    print_error(f'robotid: {" ".join(text.split())}')
    return code
