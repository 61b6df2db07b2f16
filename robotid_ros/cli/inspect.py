"""`robotid inspect BAG`: what a recording holds and whether it is usable."""

import argparse
from typing import TYPE_CHECKING

from .shared_options import add_log_options, add_urdf_option, LOG, read_options
from .terminal import format_number, format_table

if TYPE_CHECKING:
    from ..files.bags.read.summary import BagSummary

HELP = 'show what a recording holds and whether it is usable'
DESCRIPTION = (
    'Show topics, rates, gaps, joints and phases of a recording, and its use. '
    'The exit code is 1 when no identification can be made from it.'
)
EXAMPLES = """\
examples:
  robotid inspect session/tx40_2025-01-31
  robotid inspect cut_short.mcap --repair
  robotid inspect arm.csv --urdf arm.urdf
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('bag', help=LOG)
    parser.add_argument(
        '--repair',
        action='store_true',
        help='first give a recording that was cut short or damaged its index and metadata.yaml',
    )
    add_urdf_option(parser)
    add_log_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the summary."""
    from ..files.bags import repair_bag
    from ..files.bags.read.summary import summarise

    lost = repair_bag(args.bag) if args.repair else ()
    summary = summarise(args.bag, read_options(args, described=True))
    print('\n\n'.join(_sections(summary)))
    for note in lost:
        print(f'repaired: {note}')
    return 0 if summary.usable else 1


def _sections(summary: 'BagSummary') -> list[str]:
    timing = summary.timing
    head = (
        f'{summary.path}: {summary.duration:.2f} s, joint states at {timing.rate:.1f} Hz, '
        f'jitter {timing.jitter * 1e3:.3f} ms, {timing.lost} lost in {timing.gaps} gaps, '
        f'longest {timing.longest_gap * 1e3:.1f} ms at {timing.longest_gap_start:.2f} s'
    )
    topics = [(t.name, t.type, str(t.count), f'{t.rate:.1f}') for t in summary.topics]
    channels = [
        (c.joint, format_number(c.travel), c.position, c.velocity, c.effort)
        for c in summary.channels
    ]
    sections = [
        f'{head}\nrobot description: {summary.description or "none recorded"}',
        format_table(('topic', 'type', 'messages', 'rate [Hz]'), topics),
        format_table(('joint', 'travel', 'position', 'velocity', 'effort'), channels, '<><<<'),
    ]
    if summary.phases:
        phases = [(p.name, f'{p.start:.2f}', f'{p.stop:.2f}') for p in summary.phases]
        sections.append(format_table(('phase', 'from [s]', 'to [s]'), phases))
    uses = [(u.purpose, 'yes' if u.possible else 'no', u.reason) for u in summary.suitability]
    sections.append(format_table(('usable for', '', 'why not'), uses))
    if summary.notes:
        sections.append('\n'.join(f'note: {note}' for note in summary.notes))
    return sections
