"""`robotid doctor`: what on a live ROS graph is in the way of a session."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
import json
import textwrap
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError
from .demo import expect_ros

if TYPE_CHECKING:
    from ..nodes.doctor.findings import Finding

HELP = 'check a running robot: controller, joint states, efforts, network, disk'
DESCRIPTION = (
    'Listen to the ROS graph for some seconds, ask its nodes, and say what is in the way of a '
    'session and what to do about it. Nothing is moved or set. The exit code is 1 when there is '
    'an error.'
)
EXAMPLES = """\
examples:
  robotid doctor
  robotid doctor --config my_robot.yaml --duration 10
  robotid doctor --namespace /arm1 --controller arm_controller --json
"""
# Columns of the output, and of the severity in front.
WIDTH, MARGIN = 99, 9
MAX_DURATION = 600.0
# Longest wait for what is not discovered, or does not answer [s]: DDS announces every 3 s.
TIMEOUT = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('-c', '--config', metavar='FILE', help="the robot's configuration")
    parser.add_argument(
        '--controller',
        metavar='NAME',
        default='',
        help="joint_trajectory_controller; default: the configuration's, or the only one",
    )
    parser.add_argument('--namespace', metavar='NS', default='/', help='of the robot, as /arm1')
    parser.add_argument(
        '--duration', metavar='SECONDS', type=float, default=5.0, help='how long to listen'
    )
    parser.add_argument('--json', action='store_true', help='print the findings as JSON')


def run(args: argparse.Namespace) -> int:
    """Print the findings, the worst first; fail when one is an error."""
    if not 0.0 < args.duration <= MAX_DURATION:
        raise ConfigurationError(
            f'--duration is {args.duration:g} s: give more than 0 and at most {MAX_DURATION:g}'
        )
    expect_ros('the doctor')
    from ..files.configuration import Configuration, load
    from ..nodes.doctor.diagnose import diagnose
    from ..nodes.doctor.findings import Severity
    from ..nodes.doctor.take_snapshot import snapshot_of_graph

    configuration = load(args.config) if args.config else Configuration()
    controller = args.controller
    if args.config and not controller:
        controller = configuration.excitation.controller
    snapshot = snapshot_of_graph(
        configuration,
        controller=controller,
        namespace=f'/{args.namespace.strip("/")}',
        duration=args.duration,
        timeout=TIMEOUT,
    )
    findings = diagnose(snapshot)
    if args.json:
        print(json.dumps([finding.to_dict() for finding in findings], indent=2))
    else:
        print('\n'.join(lines(findings)))
    return int(any(finding.severity == Severity.ERROR for finding in findings))


def lines(findings: Sequence['Finding']) -> Iterator[str]:
    """Give a paragraph for each finding, then what is fine, then how many there are of each."""
    from ..nodes.doctor.findings import Severity

    for finding in findings:
        if finding.severity != Severity.OK:
            yield _paragraph(finding.severity.word, f'{finding.subject}: {finding.text}')
    fine = [finding for finding in findings if finding.severity == Severity.OK]
    if fine:
        yield _paragraph('ok', '; '.join(f'{each.subject}: {each.text}' for each in fine))
    counts = Counter(finding.severity for finding in findings)
    yield ', '.join(
        f'{counts[severity]} {severity.word}{"s" if counts[severity] != 1 else ""}'
        for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    )


def _paragraph(word: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f'{word:<{MARGIN}}',
        subsequent_indent=' ' * MARGIN,
        break_long_words=False,
        break_on_hyphens=False,
    )
