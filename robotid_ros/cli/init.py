"""`robotid init URDF`: a configuration that runs, from a robot description."""

import argparse
from pathlib import Path
import sys

from .shared_options import parse_names

HELP = 'write a configuration for a robot description'
DESCRIPTION = (
    'Write a commented configuration for the arm of a URDF or xacro: joints, limits, start pose, '
    'workspace, and a simulated robot to try them on.'
)
EXAMPLES = """\
examples:
  robotid init my_robot.urdf            # writes my_robot.yaml
  robotid demo my_robot.yaml            # a whole session on the simulated robot
  robotid init two_arms.urdf.xacro -o left.yaml --tip left_tool0
  robotid init --keys                   # every key of a configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('urdf', nargs='?', metavar='URDF', help='URDF, or xacro')
    parser.add_argument(
        '-o', '--output', metavar='FILE', help="default: the robot's name with .yaml, here"
    )
    parser.add_argument(
        '--joints',
        type=parse_names,
        metavar='A,B,…',
        default=(),
        help='identify these; default: the longest chain of driven joints',
    )
    parser.add_argument('--tip', metavar='LINK', help='link that the arm moves, of several arms')
    parser.add_argument('--force', action='store_true', help='replace an existing configuration')
    parser.add_argument('--keys', action='store_true', help='explain every key, and write nothing')


def run(args: argparse.Namespace) -> int:
    """Write the configuration, and say what was chosen."""
    from ..exceptions import FileError

    if args.keys:
        from ..files.setup.settings_reference import settings_reference

        sys.stdout.write(settings_reference())
        return 0
    if args.urdf is None:
        raise FileError("no robot description is given: 'robotid init my_robot.urdf'")
    from ..core.setup.arm_choice import left_out_sentences
    from ..core.setup.robot_setup import set_up_robot
    from ..files.atomic import expect_writable, write_text
    from ..files.configuration import load, mesh_folders
    from ..files.robot_description import read_description
    from ..files.setup.configuration_text import configuration_text, urdf_setting

    source = Path(args.urdf)
    output = Path(args.output or f'{source.name.split(".")[0]}.yaml')
    if output.exists() and not args.force:
        raise FileError(f"'{output}' exists already: name another file or add --force")
    expect_writable(output.parent)
    setup = set_up_robot(
        read_description(source),
        args.joints,
        args.tip or '',
        mesh_folders=mesh_folders(source.absolute()),
    )
    text = configuration_text(setup, urdf_setting(source, output))
    write_text(output, text, overwrite=args.force)
    load(output)
    print(f'{len(setup.arm.joints)} joints: {", ".join(setup.arm.joints)}; tool {setup.arm.tip}')
    for sentence in (*left_out_sentences(setup.arm), *setup.rules.values(), *setup.notes):
        print(sentence)
    print(f'\nwritten: {output}')
    return 0
