"""
Run a whole session on the simulated robot.

Start a simulated robot and identify it: four nodes run as processes, and services and topics
control them as on a real robot. The output has the residuals on the validation trajectory,
identified beside true parameters, and tracking errors with and without feed-forward and with the
proposed gains.

  robotid demo                         # the TX-40
  robotid demo scara -o tried          # or ur10, arm3, planar_2r_elastic, …
  robotid demo my_robot.yaml --all     # what robotid init has written
"""

import argparse
from dataclasses import replace
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import RobotIdError, UnknownNameError
from .shared_options import add_output_option, ALL, EXIT_ERROR, judged, option, Outcome
from .terminal import format_number, print_paragraph, print_table, print_written

if TYPE_CHECKING:
    from ..files.results import Results
    from ..files.verification import Verification
    from ..nodes.demo.demo import AtWork

# Longest session [s]: several times what one takes on a machine with other work.
TIME_LIMIT = 900.0
LAST_DOMAIN = 232  # that has ports


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'robot', nargs='?', default='tx40', help='a robot of config/, or a configuration file'
    )
    add_output_option(parser, 'folder of the recording and results', 'DIR', 'demo')
    option(parser, '--verbose', 'show all messages of the nodes, not only warnings')
    option(parser, *ALL)


def run(args: argparse.Namespace) -> Outcome:
    """Run the session; success only if the robot was found again."""
    config = find_config(args.robot)
    expect_ros('the demo')
    from ..core.model import build_robot
    from ..files.atomic import expect_writable
    from ..files.configuration import load, read_urdf
    from ..files.report.page import page_beside
    from ..files.results import REPORT
    from ..nodes.demo.demo import Demo, VERIFICATIONS

    configuration = load(config)  # what is wrong about it is said before any node starts
    build_robot(read_urdf(configuration) or '', configuration.robot)
    expect_writable(Path(args.output))
    log_level = 'info' if args.verbose else 'warn'
    with Demo(config, Path(args.output), log_level, tuple(VERIFICATIONS)) as demo:
        args.progress.step('starting the nodes')
        results = demo.run(args.progress.share, TIME_LIMIT)
    paths = {'report': demo.folder / REPORT, 'motion': page_beside(demo.design)}
    pages = {name: path for name, path in paths.items() if path.is_file()}
    return report(results, demo.folder, pages, demo.unverified, demo.at_work, every=args.all)


def expect_ros(what: str) -> None:
    """Check that ROS 2 can be imported, which `what` needs; RobotIdError: it cannot."""
    try:
        import rclpy  # noqa: F401
    except ImportError as error:
        raise RobotIdError(
            f'{what} needs ROS 2 ({error}): source its setup.bash, or run make demo'
        ) from error
    domain = os.environ.get('ROS_DOMAIN_ID', '')
    if domain.isdigit() and int(domain) > LAST_DOMAIN:  # Fast DDS would end this process
        raise RobotIdError(f'ROS_DOMAIN_ID is {domain}: set one from 0 to {LAST_DOMAIN}')


def find_config(name: str) -> Path:
    """Find a robot's configuration by name or path; RobotIdError: there is none."""
    from ..files.configuration import resolve

    if name.endswith('.yaml') or Path(name).is_file():
        return Path(name).absolute()
    known = {p.stem: p for p in sorted(resolve('package://robotid_ros/config').glob('*.yaml'))}
    UnknownNameError.check('robot', (name,), known)
    return known[name]


def report(
    results: 'Results',
    folder: Path,
    pages: dict[str, Path],
    unverified: str = '',
    at_work: 'AtWork | None' = None,
    *,
    every: bool = False,
) -> Outcome:
    """Return what a session found; `unverified`, as on a busy machine, is no reason for a code."""
    from ..files.results import MAX_RESIDUAL, MIN_SHARE_WITHIN, recovery_of
    from .results_text import print_found, print_verdict, results_data

    recovery = recovery_of(results)

    def show() -> None:
        print_found(results, every=every)
        if results.verification is not None:
            print_verification(results.verification)
        if work := at_work:  # the tracking errors of one motion through the node `feedforward`
            body = [f'{work.mass:g} kg, unknown', f'{work.mass:g} kg, set'] if work.mass else []
            head = ('one more motion, RMS error', 'without', 'with feed-forward', *body, 'unit')
            errors = zip(work.joints, work.rms.T, work.units, strict=True)
            cells = [(j, *(format_number(1e3 * x, 3) for x in e), f'm{u}') for j, e, u in errors]
            print_table(head, cells, '<' + '>' * len(work.rms) + '<')
        print_verdict(results, folder)
        print_written({'written': folder, **pages})
        print_paragraph(f'{recovery}.', style='good' if recovery.passed else 'bad')

    data = {**results_data(results), 'verification': results.verification}
    data |= {'passed': recovery.passed, 'recovery': str(recovery), 'unverified': unverified}
    data |= {'at_work': at_work and at_work._asdict(), 'folder': folder, 'pages': pages}
    notes = [f'identified, but not verified on the robot: {unverified}'] if unverified else []
    outcome = judged(data, show, results)
    if recovery.passed:
        return replace(outcome, errors=(*notes, *outcome.errors))
    error = (
        f'the robot was not found again: at least {MIN_SHARE_WITHIN:.0%} within ±3σ and '
        f'at most {MAX_RESIDUAL:.0%} residual are asked for'
    )
    return Outcome(data, show, (*notes, error), EXIT_ERROR)


def print_verification(found: 'Verification') -> None:
    """Print tracking errors without and with what was identified."""
    tracking, sentence = (found.gains.tracking, found.gains.sentence) if found.gains else ((), '')
    for name, rows in (('feed-forward', found.tracking), ('proposed gains', tracking)):
        head = ('tracking error, RMS', 'before', f'with {name}', 'times smaller', 'unit')
        cells = []
        for row in rows:
            before, after = (format_number(1e3 * x, 3) for x in (row.rms_before, row.rms_after))
            cells.append((row.joint, before, after, f'{row.ratio:.1f}', f'm{row.unit}'))
        if cells:
            print_table(head, cells, '<>>><')
    for text in filter(None, (found.reason, sentence)):
        print_paragraph(text)
