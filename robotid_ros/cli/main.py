"""
`robotid`: one verb a module, with `add_arguments(parser)` and `run(args)`.

What a verb's module says of itself is its help: a sentence, a description, examples.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import contextlib
from importlib import import_module
import io
import os
import shlex
import signal
import sys
import textwrap
import threading
from typing import Any, NoReturn
import warnings

from .. import __version__
from ..entry import limit_blas_threads
from ..exceptions import reason_of_system, RobotIdError, use_one_of
from .shared_options import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE
from .terminal import print_error, print_json, ProgressBar, WIDTH

VERBS = (
    *('demo', 'design', 'identify', 'validate', 'compare', 'payload', 'report', 'inspect'),
    *('doctor', 'init', 'export', 'rollout', 'fleet', 'live', 'explain'),
)
EXAMPLES = """\
examples:
  robotid demo                               # a session on a simulated robot
  robotid identify arm.csv --urdf arm.urdf   # any log of positions and efforts
  robotid init arm.urdf                      # a configuration for your own arm

Exit codes: 0 success, 1 error, 2 wrong usage, 3 poor design, 4 unusable result or
log (the result is written too), 130 interrupted.

Each command has its own help and examples: 'robotid identify --help'.
Completion of commands and options needs the package argcomplete:
  eval "$(register-python-argcomplete robotid)"
"""

# Options of every verb.
OF_ALL = {
    '--json': 'print the result as JSON only',
    '--quiet': 'show no progress',
    '--debug': 'show the traceback of an error',
}


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with a word, and which one is the nearest."""

    def error(self, message: str) -> NoReturn:
        """Print a sentence and exit with code 2."""
        print_error(f'{message}; {self.prog} --help shows what there is')
        self.exit(EXIT_USAGE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            remedy = use_one_of(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"there is no '{value}': {remedy}")

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse all words, or exit with code 2 and a sentence on the first that is unknown."""
        found, unknown = self.parse_known_args(args, namespace)
        if ':=' in ''.join(unknown[:1]) and hasattr(found, 'arguments'):
            found.arguments += unknown  # of a xacro, behind options
        elif unknown:
            word, parser = unknown[0].split('=')[0], self
            for name in ('verb', 'action'):
                parser = _commands_of(parser).get(getattr(found, name, ''), parser)
            if word.startswith('-'):
                options = [o for o in parser._option_string_actions if o.startswith('--')]
                parser.error(f"there is no option '{word}': {use_one_of(word, options)}")
            parser.error(f"there is no place for '{word}'")
        return found


def _commands_of(parser: argparse.ArgumentParser) -> Mapping[str, Any]:
    """Return the parsers of a parser's own commands by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def build_parser(verbs: Iterable[str] = VERBS) -> argparse.ArgumentParser:
    """Parser of verbs, which import what is heavy inside their `run`: `--help` is quick."""
    parser = Parser(
        prog='robotid',
        description="Identify a robot's dynamic parameters: masses, inertias, friction.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--version', action='version', version=f'robotid {__version__}')
    subparsers = parser.add_subparsers(dest='verb', metavar='COMMAND', required=True)
    for verb in verbs:
        module = import_module(f'.{verb}', __package__)
        paragraphs = (module.__doc__ or '').strip('\n').split('\n\n')
        summary, text, examples, *_ = [*paragraphs, '', '', '']
        subparser = subparsers.add_parser(
            verb,
            help=summary[:1].lower() + summary[1:].removesuffix('.'),
            description=textwrap.fill(text.replace('\n', ' '), WIDTH),
            epilog=f'examples:\n{examples}\n',
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run, json=False, debug=False, quiet=False)
        for each in (subparser, *_commands_of(subparser).values()):
            for name, text in OF_ALL.items():
                each.add_argument(name, action='store_true', default=argparse.SUPPRESS, help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code: `EXAMPLES` says what each means."""
    for name in ('stdout', 'stderr'):
        stream = getattr(sys, name)
        if stream is None:  # closed
            setattr(sys, name, open(os.devnull, 'w', encoding='utf-8'))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')  # no σ and N·m; names that are not UTF-8
    words = sys.argv[1:] if argv is None else argv
    completes = '_ARGCOMPLETE' in os.environ
    # A verb that is asked for needs none of the others.
    parser = build_parser(words[:1] if not completes and {*words[:1]} & {*VERBS} else VERBS)
    if completes:
        with contextlib.suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)
    if not words:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    limit_blas_threads()  # verbs import NumPy
    try:
        if '' in words:
            parser.error('an argument is empty: quote a name, or set the variable that holds it')
        args = parser.parse_args(argv)
    except SystemExit as usage:
        return usage.code if isinstance(usage.code, int) else EXIT_USAGE
    args.command_line, interrupted = shlex.join(['robotid', *words]), threading.Event()

    def interrupt(*_: object) -> None:
        """Do as Python does, and remember it."""
        interrupted.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        return _run(args, interrupted)
    old = signal.signal(signal.SIGINT, interrupt)
    try:
        return _run(args, interrupted)
    finally:
        signal.signal(signal.SIGINT, old)


def _run(args: argparse.Namespace, interrupted: threading.Event) -> int:
    """Run a verb and print its outcome, or one sentence on what went wrong."""
    try:
        if not args.debug:
            # Of sums that overflow on bad data; what comes of them is found and said.
            warnings.simplefilter('ignore', RuntimeWarning)
        with ProgressBar(quiet=args.quiet) as args.progress:
            _expect_output_apart(**vars(args))
            outcome = args.run(args)
        print_json(outcome.data) if args.json else outcome.show()
        sys.stdout.flush()
        for text in outcome.errors:
            print_error(text)
        return int(outcome.code)
    except BrokenPipeError:
        # The reader of our output is gone (a pager, head): nobody would read a message.
        _discard_output()
        return EXIT_ERROR
    except (Exception, KeyboardInterrupt) as error:
        # Libraries turn an interrupt of their import into other errors.
        if isinstance(error, KeyboardInterrupt) or interrupted.is_set():
            print_error('interrupted')
            return EXIT_INTERRUPTED
        if args.debug:
            raise
        print_error(' '.join(_sentence(error, args).split()))
        return EXIT_ERROR


def _sentence(error: Exception, args: argparse.Namespace) -> str:
    """Say what went wrong, with the remedy where it is known."""
    if isinstance(error, RobotIdError):
        return str(error)
    if isinstance(error, OSError) and error.errno:
        where = f"'{error.filename}'" if error.filename else 'the output'
        if not error.filename:
            _discard_output()
        return f'cannot read or write {where}: {reason_of_system(error)}'
    if isinstance(error, MemoryError):
        return 'there is not enough memory: choose a part with --from and --to'
    files = ', '.join(f"'{word}'" for word in _files(vars(args)))
    what = f'{files} is damaged, or this is' if files else 'this is'
    return f'{type(error).__name__}: {error}; {what} a bug: run again with --debug'


def _files(given: Mapping[str, Any]) -> list[str]:
    """Return the files and folders that options and arguments name."""
    values = [value if isinstance(value, list) else [value] for value in given.values()]
    words = [word for each in values for word in each if isinstance(word, str)]
    return [word for word in words if os.path.exists(word)]


def _expect_output_apart(output: str = '', force: bool = False, **others: Any) -> None:
    """Check that what is to be replaced, be it by --force, is nothing that the command reads."""
    if output and force and os.path.isfile(output):
        from ..files.results import REPORT, RESULT_FILES

        folder, name = os.path.split(os.path.abspath(output))
        # Pages may stand beside the results that they show.
        places = [output, *([folder] if name in RESULT_FILES and name != REPORT else [])]
        if any(os.path.samefile(place, read) for read in _files(others) for place in places):
            raise RobotIdError(f"'{output}' is what the command reads: name another output by -o")


def _discard_output() -> None:
    """Forget what cannot be written: the interpreter would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
