r"""
Write any log as a bag.

Write a log as a rosbag2 bag (MCAP) of joint states in SI. The other commands read the same logs
directly.

  robotid convert arm.csv arm.mcap --urdf arm.urdf
  robotid convert arm.npz arm --urdf arm.urdf --rate 500 --units position=deg
  robotid convert arm.csv arm.mcap \
    --columns 'time=Time position=Enc{i} effort=Trq{i}'
  robotid convert ros1.bag arm.mcap --effort-topic /currents:data[0:6]
"""

import argparse

from . import shared_options as shared
from .terminal import print_findings, print_paragraph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('source', help=f'{shared.LOG}; folder of a LeRobot data set')
    parser.add_argument('output', help='.mcap file, or folder; must not exist')
    shared.add_urdf_option(parser)
    shared.add_joints_option(
        parser, 'names of the columns; default: those of the robot description, or joint_1, …'
    )
    shared.add_log_options(parser)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Write the bag and say what is in it."""
    from ..files.convert import convert

    args.progress.step('converting')
    options = shared.read_options(args, described=True)
    found = convert(args.source, args.output, options, args.progress.share)

    def show() -> None:
        print_findings(found.notes)
        print_paragraph(
            f'{found.path}, {found.count} joint states of {", ".join(found.joints)} '
            f'in {found.duration:.2f} s',
            'written',
        )

    return shared.Outcome(found, show)
