"""`robotid export RESULTS --format FORMAT`: what was identified, for other programs."""

import argparse
from pathlib import Path
import re

from ..files.export.export import FORMATS
from .shared_options import add_output_option, expect_new, Outcome
from .terminal import print_paragraph, show

HELP = 'write what was identified for other programs'
DESCRIPTION = (
    'Write an identified robot for simulators and controllers (mjcf, sdf, urdf, srdf, inertials '
    'for a xacro), or its parameters as a table (csv, mat, npz). In mjcf, sdf and urdf viscous '
    'and Coulomb friction stand for other laws, with their residual at the recorded speeds. What '
    'a format cannot hold is said here, and in the file.'
)
EXAMPLES = """\
examples:
  robotid export tx40_identified --format mjcf
  robotid export results --format mjcf -o arm.xml --mesh-folder ~/ws/src
  robotid export results --format inertials --like physical_parameters.yaml
  robotid export results --format csv -o parameters.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('results', help='parameters.yaml, or the folder that holds it')
    parser.add_argument('--format', required=True, choices=tuple(FORMATS))
    text = "default: the robot's name, beside the results"
    add_output_option(parser, text, replaces='existing files')
    parser.add_argument(
        '--mesh-folder',
        action='append',
        default=[],
        metavar='DIR',
        help='of mjcf: where the packages of package:// meshes are; may be repeated',
    )
    parser.add_argument(
        '--like',
        metavar='FILE',
        default='',
        help="of inertials: a file of the robot's description package to follow: inertials.yaml "
        'as in franka_description, physical_parameters.yaml as in ur_description',
    )


def run(args: argparse.Namespace) -> Outcome:
    """Write the files, and say what they lack."""
    from ..files.atomic import write_bytes
    from ..files.export.export import write
    from ..files.export.identified_model import read_identified_model
    from ..files.results_file import read_results, results_folder
    from ..files.verdict_text import unusable_note

    model = read_identified_model(args.results)
    name = re.sub(r'[^\w.-]+', '_', model.robot.name).lstrip('.') or 'robot'
    beside = results_folder(args.results) / f'{name}{FORMATS[args.format].suffix}'
    output = Path(args.output) if args.output else beside
    expect_new([output], args.force)
    marked = unusable_note(read_results(args.results))
    content, notes = write(args.format, model, folders=args.mesh_folder, like=args.like)
    write_bytes(output, content, overwrite=args.force)

    def print_all() -> None:
        if marked:
            print_paragraph(marked, 'warning')
        for text in notes:
            print_paragraph(text, 'note')
        show(f'written: {output}')

    return Outcome({'written': [output], 'notes': [*filter(None, [marked]), *notes]}, print_all)
