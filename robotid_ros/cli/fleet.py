"""
Identify many robots from all their recordings.

Identify many recordings of many robots on all cores or a Dask cluster. The results are in a store
of Parquet files; a later run computes only what is missing. The report has common parameters of
the robots of a type, outliers and changes.

  robotid fleet run recordings -c config/ur10.yaml -o store
  robotid fleet run --manifest bags.csv -c ur10.yaml -c scara=arm.yaml -o store
  robotid fleet run bags -c ur10.yaml -o store --scheduler tcp://host:8786
  robotid fleet report store
"""

import argparse
import dataclasses
from pathlib import Path
import shlex
import sys

from . import terminal
from .shared_options import add_output_option, LOG, option, Outcome
from .terminal import print_findings, print_paragraph, print_table, ProgressBar

MOST_REASONS = 10  # failed bags that are named after a run; the store has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of each action."""
    actions = parser.add_subparsers(dest='action', metavar='ACTION', required=True)
    run_parser = actions.add_parser('run', help='identify recordings that the store lacks')
    run_parser.add_argument(
        'sources', nargs='*', metavar='SOURCE', help=f'{LOG}; folders of them, patterns'
    )
    text = 'CSV with source, robot, type, time and tags of recordings'
    option(run_parser, '--manifest FILE', text)
    text = 'configuration of a type of robots; may be repeated. The first one sets `fleet`'
    option(run_parser, '-c, --config [TYPE=]FILE', text, action='append', required=True)
    option(run_parser, '-o, --output STORE', 'folder of the store', required=True)
    option(run_parser, '--scheduler ADDRESS', 'Dask scheduler; default: this machine', default='')
    text = 'processes on this machine; default: fleet.workers'
    option(run_parser, '--workers N', text, type=int)
    report = actions.add_parser('report', help='write one page about a store')
    report.add_argument('store', metavar='STORE', help='folder of the store')
    add_output_option(report, 'default: report.html in the store')


def run(args: argparse.Namespace) -> Outcome:
    """Add sessions to a store, or report on one."""
    if args.action == 'report':
        return _report(args)
    from ..fleet.pooling import pool
    from ..fleet.run import Engine, find_sources, Run
    from ..fleet.session import load_models
    from ..fleet.store import Store

    sources = find_sources(args.sources, args.manifest)
    progress: ProgressBar = args.progress
    progress.step('identifying')
    models, settings = load_models(args.config)
    if args.workers is not None:
        settings = dataclasses.replace(settings, workers=max(0, args.workers))

    def show(done: int, total: int, failed: int) -> None:
        text = f'{done} of {total} bags' + f', {failed} failed' * bool(failed)
        progress.share(done / max(total, 1), text)

    work = Run(Store.open(args.output, create=True), models, show)
    with Engine(settings, args.scheduler) as engine:
        if progress.shown:
            terminal.show(f'dashboard: {engine.client.dashboard_link}', stream=sys.stderr)
        work.work(sources, engine)
    pooled = len(pool(work.store))

    def print_all() -> None:
        counts = [(status, str(count)) for status, count in sorted(work.counts.items())]
        print_table(('bags', 'count'), counts, '<>')
        for location, reason in sorted(work.reasons.items())[:MOST_REASONS]:
            print_paragraph(reason, location)
        if (more := len(work.reasons) - MOST_REASONS) > 0:
            print_paragraph(f'… and {more} more: see status and reason in the store')
        text = f'{args.output}: {pooled} pooled estimates of robots and types'
        print_paragraph(text, 'written')
        print_paragraph(f'robotid fleet report {shlex.quote(args.output)}', 'next')

    data = {'counts': work.counts, 'reasons': work.reasons, 'pooled': pooled, 'store': args.output}
    return Outcome(data, print_all)


def _report(args: argparse.Namespace) -> Outcome:
    from ..fleet.report import write_fleet_report

    target = Path(args.output or Path(args.store) / 'report.html')
    args.progress.step('writing the pages')
    findings = write_fleet_report(args.store, target)

    def print_all() -> None:
        print_findings(f.of(f'{f.values["type"]} {f.values["robot"]}') for f in findings)
        print_paragraph(str(target), 'written')

    return Outcome({'findings': findings, 'written': target}, print_all)
