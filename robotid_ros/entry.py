"""The executables: Ctrl-C ends them without a traceback, also while they are still importing."""

from functools import partial
import gc
from importlib import import_module
import os
import signal
import sys

# Not feedforward: over UDP, clients of its action lose answers when they send many goals at once.
MOVES_ROBOT = ('excitation', 'gravity_compensation')


def robotid() -> int:
    """Run the command line."""
    # Modules make objects that stay: to look for garbage among them takes a tenth of the time.
    gc.set_threshold(200_000)
    code = _run('cli.main')
    gc.freeze()  # at its end the interpreter looks for garbage among all modules: half a second
    return code


def run_node(name: str, *args: list[str]) -> int:
    """Run a node; without arguments those of the process are its own."""
    # No node draws: MuJoCo need not look for a display.
    os.environ.setdefault('MUJOCO_GL', 'disable')
    limit_blas_threads()
    gc.set_threshold(20_000)  # as above; each search is short, as a robot may wait for it
    # A launch that ends while the rest is imported is noticed, too.
    processes = import_module('.nodes.common.processes', __package__)
    if name in MOVES_ROBOT:
        # So that its death holds up nobody who stops the robot then.
        os.environ.update(processes.udp_alone())
    code = _run(f'nodes.{name}.{name}_node', *args)
    # All is closed by now. The interpreter's own end takes seconds where others need the
    # processor, and a signal that arrives meanwhile passes for the node's death.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


simulated_robot = partial(run_node, 'simulated_robot')
excitation = partial(run_node, 'excitation')
recorder = partial(run_node, 'recorder')
identification = partial(run_node, 'identification')
feedforward = partial(run_node, 'feedforward')
force_torque = partial(run_node, 'force_torque')
live = partial(run_node, 'live')
gravity_compensation = partial(run_node, 'gravity_compensation')


def _run(module: str, *args: list[str]) -> int:
    # Until `main` sets its own handlers nothing is open that needs a clean end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return int(import_module(f'.{module}', __package__).main(*args))


def limit_blas_threads() -> None:
    """
    Let this process and its children use one thread, if NumPy is not imported there yet.

    Sums of several threads differ in the last bit, and an optimiser then finds another trajectory;
    its matrices are too small to gain from threads, which wait for each other with the processor
    busy: the node `identification` takes twice as much of it while it follows a session.
    """
    os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')
