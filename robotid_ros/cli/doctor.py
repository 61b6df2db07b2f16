"""
Check a running robot: controller, joint states, efforts, network, disk.

Listen to the ROS graph for some seconds, query its nodes, and list the problems that prevent a
session, each with a remedy. Nothing is moved or set. The exit code is 1 if there is an error.

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
    option(parser, '--namespace NS', 'namespace of the robot, such as /arm1', default='/')
    text = 'listening time; default: %(default)g'
    option(parser, '--duration SECONDS', text, type=above_zero, default=5.0)


def run(args: argparse.Namespace) -> Outcome:
    """Find what is in the way, the worst first; fail when one finding is an error."""
    expect_ros('the doctor')
    from ..core.findings import as_data, Severity
    from ..files.configuration import Configuration, load
    from ..nodes.doctor.diagnose import diagnose, subject_of
    from ..nodes.doctor.graph_snapshot import snapshot_of_graph

    configuration = load(args.config) if args.config else Configuration()
    own = configuration.excitation.controller if args.config else ''
    args.progress.step(f'listening to the ROS graph for {args.duration:g} s')
    snapshot = snapshot_of_graph(
        configuration,
        controller=args.controller or own,
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
    from ..core.findings import render, Severity
    from ..nodes.doctor.diagnose import subject_of

    fine = []
    for found in findings:
        text = f'{subject_of(found)}: {render(found)}'
        if found.severity == Severity.OK:
            fine.append(text.rstrip('.'))
        else:
            print_paragraph(text, found.severity.word)
    if fine:
        print_paragraph('; '.join(fine), 'ok')
    counts = Counter(finding.severity for finding in findings)
    errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
    worst = 'error' if errors else 'warning' if warnings else 'ok'
    text = f'{errors} error{"s" * (errors != 1)}, {warnings} warning{"s" * (warnings != 1)}'
    print_paragraph(f'{text}, {counts[Severity.INFO]} info', style=LABELS[worst])
