"""`robotid payload EMPTY LOADED`: the body that a robot carries, from two sessions."""

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from .shared_options import add_log_options, add_robot_options, default_output, open_logs
from .terminal import format_number, format_table, ProgressBar

if TYPE_CHECKING:
    from ..core.payload.payload import Payload

# Reading and identifying each recording, writing.
STEPS = 5
HELP = 'identify a payload from two recordings, without and with it'
DESCRIPTION = (
    'Identify the mass, centre of mass and inertia of a body at the last link, '
    'from what it changes between two recordings of the same robot; write them to a file. '
    'Friction may have changed meanwhile.'
)
EXAMPLES = """\
examples:
  robotid payload recordings/empty recordings/with_gripper
  robotid payload empty.mcap loaded.mcap -c config/arm.yaml -o gripper.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('empty', help='recording without the payload')
    parser.add_argument('loaded', help='recording with it')
    add_robot_options(parser, 'EMPTY')
    parser.add_argument('-o', '--output', metavar='FILE', help='default: <LOADED>_payload.yaml')
    add_log_options(parser)


def run(args: argparse.Namespace) -> int:
    """Identify both, write the file, print the table."""
    with ProgressBar(STEPS) as progress:
        progress.step('reading, empty')
        from ..core.payload.payload import payload_from_recordings
        from ..files.atomic import expect_writable
        from ..files.bags import open_recording
        from ..files.export.payload_file import write_payload
        from ..files.identification_input import split

        output = Path(args.output or default_output(args.loaded, 'payload.yaml'))
        expect_writable(output.parent)
        session = open_logs(args, [args.empty], progress)
        robot, empty = session.robot, split(session.recording)[0]
        progress.step('reading, loaded')
        recording = open_recording(
            args.loaded, robot.recorded_joints, options=session.options, progress=progress.share
        )
        settings = dataclasses.replace(session.configuration.identification, leave_one_out=False)
        payload, warnings = payload_from_recordings(
            empty, split(recording)[0], robot, settings, progress.step
        )
        progress.step('writing the result')
        facts = {
            'robot': robot.name,
            'frame': robot.links[-1],
            'empty': args.empty,
            'loaded': args.loaded,
        }
        path = write_payload(output, payload, facts, warnings)
    print(_format_payload(payload, robot.links[-1]))
    print('\n'.join(['', *(f'warning: {text}' for text in warnings), f'written: {path}']))
    return 0


def _format_payload(payload: 'Payload', joint: str) -> str:
    columns = (payload.names, payload.value, payload.sigma, payload.relative_sigma, payload.units)
    rows = [
        (name, format_number(value, 5), format_number(sigma, 3), format_number(percent, 3), unit)
        for name, value, sigma, percent, unit in zip(*columns, strict=True)
    ]
    centre = ', '.join(f'{x:.4g}' for x in payload.centre_of_mass)
    return '\n'.join(
        [
            format_table(('parameter', 'value', 'σ', '%σ', 'unit'), rows, '<>>><'),
            '',
            f'mass {payload.mass:.4g} ± {payload.sigma[9]:.2g} kg, centre of mass ({centre}) m',
            f'at the frame of {joint}',
        ]
    )
