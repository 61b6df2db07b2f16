"""
Check a running robot: controller, joint states, efforts, network, disk.

Listen to the ROS graph for some seconds, ask its nodes, and say what is in the way of a session
and what to do about it. Nothing is moved or set. The exit code is 1 when there is an error.

  robotid doctor
  robotid doctor --config my_robot.yaml --duration 10
  robotid doctor --namespace /arm1 --controller arm_controller --json
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .demo import expect_ros
from .shared_options import above_zero, EXIT_ERROR, option, Outcome
from .terminal import LABELS, print_paragraph

if TYPE_CHECKING:
    from ..core.findings import Finding

# Longest wait for what is not discovered, or does not answer [s]: DDS announces every 3 s.
TIMEOUT = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    option(parser, '-c, --config FILE', "the robot's configuration")
    text = "joint_trajectory_controller; default: the configuration's, or the only one"
    option(parser, '--controller NAME', text, default='')
    option(parser, '--namespace NS', 'of the robot, as /arm1', default='/')
    option(parser, '--duration SECONDS', 'how long to listen', type=above_zero, default=5.0)


def run(args: argparse.Namespace) -> Outcome:
    """Find what is in the way, the worst first; fail when one finding is an error."""
    expect_ros('the doctor')
    from ..core.finding_codes import as_data
    from ..core.findings import Severity
    from ..files.configuration import Configuration, load
    from ..nodes.doctor.diagnose import diagnose, subject_of
    from ..nodes.doctor.graph_snapshot import snapshot_of_graph

    configuration = load(args.config) if args.config else Configuration()
    controller = args.controller
    if args.config and not controller:
        controller = configuration.excitation.controller
    args.progress.step('listening to the ROS graph')
    args.progress.expect(args.duration)
    snapshot = snapshot_of_graph(
        configuration,
        controller=controller,
        namespace=f'/{args.namespace.strip("/")}',
        duration=args.duration,
        timeout=TIMEOUT,
    )
    findings = diagnose(snapshot)
    failed = any(finding.severity == Severity.ERROR for finding in findings)
    data = [{**as_data(found), 'subject': subject_of(found)} for found in findings]
    return Outcome(data, partial(print_findings, findings), code=EXIT_ERROR if failed else 0)


def print_findings(findings: Sequence['Finding']) -> None:
    """Print a paragraph for each finding, then what is fine, then how many there are of each."""
    from ..core.finding_codes import render
    from ..core.findings import Severity
    from ..nodes.doctor.diagnose import subject_of

    for found in findings:
        if found.severity != Severity.OK:
            print_paragraph(f'{subject_of(found)}: {render(found)}', found.severity.word)
    fine = [found for found in findings if found.severity == Severity.OK]
    if fine:
        texts = (f'{subject_of(found)}: {render(found).rstrip(".")}' for found in fine)
        print_paragraph('; '.join(texts), 'ok')
    counts = Counter(finding.severity for finding in findings)
    words = {Severity.ERROR: 'errors', Severity.WARNING: 'warnings', Severity.INFO: 'info'}
    text = ', '.join(
        f'{counts[each]} {word.removesuffix("s") if counts[each] == 1 else word}'
        for each, word in words.items()
    )
    worst = max((finding.severity for finding in findings), default=Severity.OK)
    print_paragraph(text, style=LABELS[worst.word if worst >= Severity.WARNING else 'ok'])
