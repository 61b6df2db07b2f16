"""
Show the contents of a recording and its possible uses.

Show topics, rates, gaps, joints and phases of a recording, and its possible uses. The exit code is
4 if the recording does not allow an identification.

  robotid inspect session/tx40_2025-01-31
  robotid inspect arm.csv --urdf arm.urdf
"""

import argparse
import dataclasses

from . import shared_options as shared
from .terminal import format_number, print_findings, print_paragraph, print_table, SHORT, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('bag', help=shared.LOG)
    shared.option(parser, '--urdf FILE', 'description: names, order and limits of joints')
    shared.add_log_options(parser)
    shared.option(parser, '--all', 'show every topic with its type')


def run(args: argparse.Namespace) -> shared.Outcome:
    """Summarise."""
    from ..files.bags.summary import summarise

    args.progress.step('reading')
    urdf = shared.description(args) or ''
    summary = summarise(args.bag, dataclasses.replace(shared.read_options(args), urdf=urdf))
    timing = summary.timing

    def print_all() -> None:
        print_paragraph(
            f'{summary.path}: {summary.duration:.2f} s, joint states at {timing.rate:.1f} Hz, '
            f'jitter {timing.jitter * 1e3:.3f} ms, {timing.lost} lost in {timing.gaps} gaps, '
            f'longest {timing.longest_gap * 1e3:.1f} ms at {timing.longest_gap_start:.2f} s; '
            f'{timing.repeated} stamps repeat, {timing.backward} jump back'
        )
        print_paragraph(f'robot description: {summary.description or "none recorded"}')
        topics = [(t.name, str(t.count), f'{t.rate:.1f}', t.type) for t in summary.topics]
        columns, most = (4, len(topics)) if args.all else (3, SHORT)
        head = ('topic', 'messages', 'rate [Hz]', 'type')[:columns]
        show()
        print_table(head, [row[:columns] for row in topics[:most]], '<>><'[:columns])
        if most < len(topics):
            show(f'… and {len(topics) - most} more: --all shows them\n')
        names = ('position', 'velocity', 'effort')
        channels = [
            (c.joint, format_number(c.travel), *(getattr(c, name) for name in names))
            for c in summary.channels
        ]
        print_table(('joint', 'travel', *names), channels, '<><<<')
        if summary.phases:
            phases = [(p.name, f'{p.start:.2f}', f'{p.stop:.2f}') for p in summary.phases]
            print_table(('phase', 'from [s]', 'to [s]'), phases, '<>>')
        print_findings(summary.notes)
        for use, reason in summary.obstacles.items():
            word = f'{use}: {f"no, {reason}" if reason else "yes"}'
            print_paragraph(word, style='doubtful' if reason else 'good')

    data, usable = dict(vars(summary)), summary.usable
    reason = summary.obstacles['identification'] or None
    data |= {'usable': usable, 'verdict': {'usable': usable, 'reason': reason}}
    return shared.Outcome(data, print_all, code=0 if usable else shared.EXIT_UNUSABLE)
