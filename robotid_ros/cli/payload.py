"""`robotid payload EMPTY LOADED`: the body that a robot carries, from two sessions."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from . import shared_options as shared
from .terminal import format_measured, print_findings, print_table, print_written, show

if TYPE_CHECKING:
    from ..core.payload import Payload

# Reading and identifying each recording, writing.
STEPS = 5
HELP = 'identify a payload from two recordings, without and with it'
DESCRIPTION = (
    'Identify the mass, centre of mass and inertia of a body that the arm carries, from what it '
    'changes between two recordings of the same robot, or between an identification and a '
    "recording; write them to a file, with the lines that robots' controllers take. Friction may "
    'have changed meanwhile. The exit code is 4 where the mass does not stand out of its σ.'
)
EXAMPLES = """\
examples:
  robotid payload recordings/empty recordings/with_gripper --frame tool0
  robotid payload recordings/arm_identified recordings/with_gripper
  robotid payload empty.mcap loaded.mcap -c config/arm.yaml -o gripper.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'empty', help='recording without the payload, or the folder of what was identified'
    )
    parser.add_argument('loaded', help='recording with it')
    parser.add_argument(
        '--frame',
        default='',
        help="frame of the result; default: the configuration's workspace.frame, else tool0, else "
        "the last joint's",
    )
    shared.add_robot_options(parser, 'EMPTY')
    shared.add_output_option(parser, 'default: <LOADED>_payload.yaml', replaces='an existing file')
    shared.add_log_options(parser)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Identify both, and write the file."""
    args.progress.step('reading')
    from ..core.payload import payload_from_recordings
    from ..core.payload.payload import stands_out
    from ..files.export.payload import maker_lines, write_payload
    from ..files.payload_input import open_payload

    output = Path(args.output or shared.default_output(args.loaded, 'payload.yaml'))
    shared.expect_new([output], args.force)
    given = open_payload(
        args.empty,
        args.loaded,
        args.frame,
        args.config,
        args.progress.share,
        urdf=shared.description(args),
        options=shared.read_options(args),
    )
    payload, findings = payload_from_recordings(
        given.empty,
        given.loaded,
        given.robot,
        given.settings,
        args.progress.step,
        given.frame.name,
    )
    args.progress.step('writing the result')
    facts = {'robot': given.robot.name, 'empty': args.empty, 'loaded': args.loaded}
    path = write_payload(output, payload, facts, findings, given.frame.body, overwrite=args.force)
    rows, lines, usable = _parameters(payload), maker_lines(payload), stands_out(payload)

    def print_all() -> None:
        show(f'in {payload.frame}: mass, centre, inertia at the centre; then moments at the frame')
        show()
        cells = [
            (name, *format_measured(value, sigma), unit)
            for name, value, sigma, unit in rows
            if math.isfinite(sigma)  # a finding names the others
        ]
        print_table(('parameter', 'value', 'σ', 'unit'), cells, '<>><')
        show(f"to paste, if {payload.frame} is the maker's flange frame:")
        for maker, line in lines.items():
            show(f'{maker}: {line or "wants what the motion does not tell"}')
        show()
        print_findings(findings)
        print_written({'written': path})

    data = {
        'frame': payload.frame,
        'parameters': [
            dict(zip(('name', 'value', 'sigma', 'unit'), row, strict=True)) for row in rows
        ],
        'controllers': lines,
        'verdict': {'usable': usable, 'reason': None if usable else 'mass_within_sigma'},
        'findings': findings,
        'written': path,
    }
    if usable:
        return shared.Outcome(data, print_all)
    error = 'the payload is unusable: its mass does not stand out of its σ'
    return shared.Outcome(data, print_all, [error], shared.EXIT_UNUSABLE)


def _parameters(payload: 'Payload') -> list[tuple[str, float, float, str]]:
    """Return name, value, σ and unit: at the centre of mass, then at the frame."""
    from ..core.payload.payload import CENTRAL, CENTRAL_UNITS

    return [
        *zip(CENTRAL, payload.central, payload.central_sigma, CENTRAL_UNITS, strict=True),
        *zip(payload.names, payload.value, payload.sigma, payload.units, strict=True),
    ]
