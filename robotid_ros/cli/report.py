"""`robotid report DIR`: the report of an identification, anew."""

import argparse
from pathlib import Path

from .terminal import HelpFormatter, Subparsers

EXAMPLES = """\
examples:
  robotid report tx40_identified
  robotid report parameters.yaml -o tx40.html
"""


def register(subparsers: Subparsers) -> argparse.ArgumentParser:
    """Describe the arguments."""
    parser = subparsers.add_parser(
        'report',
        help='write the report of an identification anew',
        description='Write report.html from parameters.yaml and, for the figures of torques, the '
        'torques.npz beside it.',
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument('parameters', help='parameters.yaml, or the folder that holds it')
    parser.add_argument('-o', '--output', metavar='FILE', help='default: report.html beside it')
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from ..files.report.page import write_report
    from ..files.results import read_results, REPORT

    path = Path(args.parameters)
    results = read_results(path)
    folder = path if path.is_dir() else path.parent
    print(write_report(results, args.output or folder / REPORT))
    return 0
