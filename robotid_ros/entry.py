"""The executables: Ctrl-C ends them without a traceback, also while they are still importing."""

from importlib import import_module
import signal


def robotid() -> int:
    """Run the command line."""
    return _run('cli.main')


def simulated_robot() -> int:
    """Run the node of this name."""
    return run_node('simulated_robot')


def excitation() -> int:
    """Run the node of this name."""
    return run_node('excitation')


def recorder() -> int:
    """Run the node of this name."""
    return run_node('recorder')


def identification() -> int:
    """Run the node of this name."""
    return run_node('identification')


def run_node(name: str, *args: list[str]) -> int:
    """Run a node; without arguments those of the process are its own."""
    return _run(f'nodes.{name}.{name}_node', *args)


def _run(module: str, *args: list[str]) -> int:
    # Until `main` sets its own handlers nothing is open that needs a clean end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return int(import_module(f'.{module}', __package__).main(*args))
