"""
Write the report of an identification again.

Write report.html from parameters.yaml and, for the figures of torques, from torques.npz in the
same folder.

  robotid report tx40_identified
  robotid report parameters.yaml -o tx40.html
"""

import argparse
from functools import partial
from pathlib import Path

from .shared_options import add_output_option, Outcome
from .terminal import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('parameters', help='parameters.yaml, or its folder')
    add_output_option(parser, 'default: report.html in the same folder')


def run(args: argparse.Namespace) -> Outcome:
    """Write the page."""
    from ..files.report.page import save_page
    from ..files.results import read_results, REPORT, results_folder

    args.progress.step('reading')
    path = Path(args.parameters)
    results, folder = read_results(path), results_folder(path).absolute()
    args.progress.step('writing the page')
    page = save_page('identification', args.output or folder / REPORT, results, folder)
    return Outcome({'report': page}, partial(show, str(page)))
