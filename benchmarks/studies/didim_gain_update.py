"""
When DIDIM's update of the simulated gains (eq. 59) serves, and when the robot's own gains do.

    python benchmarks/studies/didim_gain_update.py [FOLDER] [--check] [--robot NAME]...

The three settings of `identification.replay.gain_update` on plants that are not the package's: the
SCARA of DIDIM's section V, slow (friction is most of the torque) and fast (inertia is); a TX-40 in
MuJoCo; the real axis EMPS (FOLDER holds `emps/ident.npz`, and the published parameters stand for
the truth). The a-priori inertias J_ap, for which eq. 59 takes the gains to be tuned, are the right
ones, the package's own estimate, and wrong by 0.6 and 1.6, which the paper's eq. 60 calls 0.8 to
1.2 in ω_n. Last, gains that are wrong: half of the robot's.

For each iteration: torque error, and distance of the simulated to the measured position over that
of the reference to it (1: no better than the reference). Then the largest and the root mean square
deviation from the truth of parameters with a %sigma below 3; of the SCARA, whose draws of noise
differ more than the settings, the first draw, and the root mean square of several.
"""

import dataclasses
import itertools
from pathlib import Path
import sys
import time

import _benchmarks  # noqa: F401
from common import command_line, configured, verdict
from didim_emps import KNOWN, replay as emps_replay
from didim_tx40 import session, truth
import numpy as np
from scara import problem
from scara_plant import experiment, NOMINAL, QUICK, SLOW
from scara_tables import PER_PAPER

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.replay.didim import didim, Iteration
from robotid_ros.core.replay.replay_problem import make_replay_problem, ReplayProblem
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.exceptions import DivergenceError

# A robot's replay and its true base parameters.
Draw = tuple[ReplayProblem, np.ndarray]
UPDATES = ('initial', 'every_iteration', 'never')
PRIORS = {'right': 1.0, 'x 0.6': 0.6, 'x 1.6': 1.6, 'estimated': None}
# Gains over the robot's, in the last case.
WRONG_GAINS = 0.5
DRAWS = 5  # of the SCARA's noise
SURE = 3.0  # largest %sigma of a parameter that the deviation counts
MAX_GROWTH = 1.1  # of the default's deviation over that of the better setting, and 0.1 %


def scara(motion: object, duration: float, keep: int) -> list[Draw]:
    """Return the SCARA and its true base parameters."""
    seeds = range(1, 1 + DRAWS)
    return [(problem(experiment(duration, k, motion), keep), NOMINAL / PER_PAPER) for k in seeds]


def tx40() -> list[Draw]:
    """Return ten seconds of a TX-40 in MuJoCo and its true base parameters."""
    configuration, robot = configured('tx40')
    recording = session(robot, configuration.simulation, 10.0)
    base, samples = base_parameters(robot), prepare(recording, robot, SignalSettings())
    case = make_replay_problem(recording, robot, base, ReplaySettings(), samples)
    chi = truth(robot, configuration.simulation)
    return [(dataclasses.replace(case, a_priori_inertia=case.inertia(chi)), base.of(chi))]


def emps(folder: Path) -> list[Draw]:
    """Return the real axis and what is published of it."""
    case = emps_replay(folder / 'emps' / 'ident.npz', ReplaySettings())
    true = np.array([KNOWN[name.rstrip('R').rstrip('1')][0] for name in case.base.names])
    return [(dataclasses.replace(case, a_priori_inertia=np.array([KNOWN['M'][0]])), true)]


def lag_share(case: ReplayProblem, record: Iteration) -> float:
    """Return the worst joint's ‖q_ddm − q‖ over ‖q − q_r‖."""
    q = case.measured[0]
    lag = np.linalg.norm(q - case.desired.q, axis=0)
    distance = record.position_error * np.linalg.norm(q, axis=0)
    return float(np.max(distance / lag))


def run(case: ReplayProblem, true: np.ndarray, update: str, start: str) -> tuple[str, float]:
    """Return one line on a run, and its rms deviation, inf where there is no result."""
    settings = dataclasses.replace(case.settings, gain_update=update)
    case = dataclasses.replace(case, settings=settings)
    begin = time.process_time()
    try:
        found, _, history = didim(case, case.initial_parameters(start))
    except DivergenceError as error:
        return f'none: {str(error)[:90]}', np.inf
    used = time.process_time() - begin
    sure = found.relative_sigma < SURE
    off = np.abs(found.value - true)[sure] / np.abs(true)[sure]
    errors = ' '.join(
        f'{np.sqrt(np.mean(r.torque_error**2)):.3f}/{lag_share(case, r):.2f}'
        + ('' if r.step_length == 1.0 else '*')
        for r in history.iterations
    )
    rms = float(np.sqrt(np.mean(off**2)))
    said = 'warned' if select(history.findings, 'motion_doubtful', 'motion_wrong') else ''
    return (
        f'{history.steps:2d} steps, off by {100 * off.max():5.1f} % at most, {100 * rms:5.2f} % '
        f'rms of {sure.sum()}, {used:4.1f} s {said}  | {errors}',
        rms,
    )


def variants(case: ReplayProblem) -> dict[str, ReplayProblem]:
    """Return a case with each a-priori inertia, and with wrong gains."""
    right = case.a_priori_inertia
    found = {
        f'J_ap {text}': dataclasses.replace(
            case, a_priori_inertia=None if share is None else share * right
        )
        for text, share in PRIORS.items()
    }
    wrong = dataclasses.replace(case, law=case.law.scaled(WRONG_GAINS))
    return {**found, f'gains x {WRONG_GAINS}': wrong}


def study(name: str, draws: list[Draw]) -> list[str]:
    """Print the table of one robot; return where the default is worse than it should be."""
    print(f'\n{name}: torque error/distance per iteration at the right; *: step shortened')
    cases, missed = [(variants(case), true) for case, true in draws], []
    for text, start in itertools.product(cases[0][0], ('regular', 'prior')):
        results = {}
        for update in UPDATES:
            ends = [run(tried[text], true, update, start) for tried, true in cases]
            results[update] = float(np.sqrt(np.mean([rms**2 for _, rms in ends])))
            several = f'{100 * results[update]:5.2f} % of {len(ends)} draws; the first: '
            line = (several if len(ends) > 1 else '') + ends[0][0]
            print(f'  {text:12s} {start:8s} {update:16s} {line}', flush=True)
        best = min(results.values())
        if text.startswith('J_ap') and results['initial'] > MAX_GROWTH * best + 1e-3:
            missed.append(f'{name}, {text}, {start}: rms {results["initial"]:.4f}, {best:.4f}')
    return missed


def main() -> int:
    """Run every robot."""
    parser = command_line(__doc__, datasets=True)
    parser.add_argument('--robot', action='append', help='only this one')
    arguments = parser.parse_args()
    robots = {
        'SCARA, slow': lambda: scara(SLOW, 200.0, 20),
        'SCARA, fast': lambda: scara(QUICK, 60.0, 10),
        'TX-40': tx40,
        'EMPS': lambda: emps(arguments.folder),
    }
    missed: list[str] = []
    for name, make in robots.items():
        if not arguments.robot or name in arguments.robot:
            missed += study(name, make())
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
