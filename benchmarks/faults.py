"""
Faults at random instants of a session on the simulated robot, judged by the robot's own motion.

Each fault happens once while the robot approaches, excites and validates. After it the robot rests
within 1 s, the state says so within 0.3 s more in a true sentence, efforts stay within their
limits, the bag is readable, nothing is identified from it, and the next session works; what must
not end a session does not. Times are the robot's and the publishers' own, and those for which the
machine held up a process that could run come on top. A session that such a machine ended before
its fault, as the guardian must, is counted as not judged.
Usage: `python benchmarks/faults.py [--only WORD] [--check]`.
"""

from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
import random
import sys
import tempfile

from common import command_line, configured, ROOT, verdict
import numpy as np
import yaml

PHASES = ('approaching', 'exciting', 'validating')
# Fewer would not be a campaign, and one of which the machine ended more says too little.
LEAST, MOST_NOT_JUDGED = 120, 0.05


def prepare(folder: Path, rate: float = 500.0) -> tuple[Path, Path, np.ndarray]:
    """
    Write a short session of the SCARA.

    Parameters
    ----------
    folder : of its files
    rate : of the control loop and the joint states [Hz]

    Returns
    -------
    configuration, trajectory, and the effort limits (n,)

    """
    from robotid_ros.core.excitation.design import design
    from robotid_ros.files.configuration import load
    from robotid_ros.files.trajectory_file import write_design

    values = yaml.safe_load((ROOT / 'config' / 'scara.yaml').read_text())
    groups = values['/**']['ros__parameters']
    groups['excitation'].update(period=4.0, periods=2, order=3, starts=1, settle=0.2)
    simulation = {'update_rate': rate, 'state_rate': rate, 'initial_positions': [0.2, -0.2]}
    groups['simulation'].update(simulation)
    config = folder / 'scara.yaml'
    config.write_text(yaml.safe_dump(values))
    robot = configured('scara')[1]
    trajectory = write_design(folder / 'trajectory.yaml', design(robot, load(config).excitation))
    return config, trajectory, robot.limits.effort


def run_share(share: tuple[int, Sequence[tuple[int, str]], Path, Path, np.ndarray, Path]) -> list:
    """Run some of the faults in a process of their own, between two sessions that are whole."""
    from fault_kinds import faults
    from fault_trial import Trial, Verdict

    number, jobs, config, trajectory, limits, folder = share
    kinds = faults()
    trial = Trial(config, trajectory, limits, folder / str(number), seed=number)
    found = []
    try:
        found.append(trial.complete('whole session before'))
        for index, phase in jobs:
            found.append(trial.run(kinds[index], phase))
            one = found[-1]
            print(
                f'{one.fault:34} {one.phase:12} {one.rest:6.3f} {one.said:6.3f}  '
                f'{one.held_up:6.3f}  {"; ".join(one.complaints) or one.not_judged}',
                flush=True,
            )
        found.append(trial.complete('whole session after'))
        wrong = tuple(f'{bag.name} was identified' for bag in trial.identified_though_cut())
        found.append(Verdict('nothing that was cut is identified', '', complaints=wrong))
    finally:
        trial.close()
    return found


def summary(found: Sequence, names: Sequence[str]) -> Iterator[str]:
    """Format one line a fault: longest times, and how many ended as they must."""
    yield f'{"fault":34} {"rest [s]":>9} {"said [s]":>9} {"as it must":>11}'
    for name in names:
        own = [v for v in found if v.fault == name]
        rest, said = (
            max((t for t in times if t == t), default=float('nan'))
            for times in (
                [v.rest for v in own],
                [v.said for v in own],
            )
        )
        good = sum(not (v.complaints or v.not_judged) for v in own)
        yield f'{name:34} {rest:9.3f} {said:9.3f} {good:6} of {len(own)}'


def main() -> int:
    """Break, watch, judge."""
    from fault_kinds import faults

    parser = command_line(__doc__)
    parser.add_argument('--only', default='', help='faults whose name holds this')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--workers', type=int, default=2, help='sessions side by side')
    args = parser.parse_args()
    names = [fault.name for fault in faults()]
    chosen = [k for k, name in enumerate(names) if args.only in name]
    jobs = [(index, phase) for index in chosen for phase in PHASES]
    random.Random(args.seed).shuffle(jobs)
    with tempfile.TemporaryDirectory() as name:
        files = prepare(Path(name))
        shares = [(k, jobs[k :: args.workers], *files, Path(name)) for k in range(args.workers)]
        with get_context('spawn').Pool(args.workers) as pool:
            found = [verdict for share in pool.map(run_share, shares, 1) for verdict in share]
    names = ['whole session before', *(names[k] for k in chosen), 'whole session after']
    names.append('nothing that was cut is identified')
    print('\n'.join(summary(found, names)))
    missed = [f'{v.fault}, {v.phase}: {text}' for v in found for text in v.complaints]
    if not args.only and len(jobs) < LEAST:
        missed.append(f'{len(jobs)} faults: at least {LEAST}')
    ended = [v for v in found if v.not_judged]
    for v in ended:
        print(f'not judged: {v.fault}, {v.phase}: held up for {v.held_up:.1f} s, {v.not_judged}')
    if len(ended) > max(1.0, MOST_NOT_JUDGED * len(found)):
        missed.append(f'{len(ended)} not judged: give this machine less to do')
    good = len(found) - len(ended) - sum(bool(v.complaints) for v in found)
    print(f'{good} of {len(found)} ended as they must, {len(ended)} were not judged')
    return verdict(missed, args.check)


if __name__ == '__main__':
    sys.exit(main())
