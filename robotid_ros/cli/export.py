"""
Export identified parameters for other programs.

Write an identified robot for simulators and controllers (mjcf, sdf, urdf, isaaclab), ranges of its
parameters (ranges), a ros2_control controller (ros2_controller, a C++ package), MoveIt's
controllers (moveit), or a table of the parameters (csv). mjcf, sdf, urdf and the controller
replace other friction by viscous and Coulomb friction; the output has the residual at the recorded
speeds. Terminal and file list everything that the format cannot represent.

  robotid export tx40_identified --format mjcf
  robotid export results --format mjcf -o arm.xml --mesh-folder ~/ws/src
  robotid export results --format ros2_controller -o src/arm_dynamics
  robotid export results --format csv -o parameters.csv
"""

import argparse
from pathlib import Path
import re

from ..exceptions import ConfigurationError
from ..files.export.export import EXPORT_FORMATS
from . import shared_options as shared
from .terminal import print_paragraph

# Formats of servos that were identified from commands.
OF_SERVOS = ('mjcf', 'sdf', 'urdf', 'isaaclab', 'ranges')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('results', help='parameters.yaml, or its folder')
    names = ', '.join(EXPORT_FORMATS)
    shared.option(parser, '--format NAME', names, required=True, choices=(*EXPORT_FORMATS,))
    text = "default: the robot's name, beside the results"
    shared.add_output_option(parser, text, replaces='existing files')
    text = 'mjcf: folder with the packages of package:// meshes; may be repeated'
    shared.option(parser, '--mesh-folder DIR', text, action='append', default=[])


def run(args: argparse.Namespace) -> shared.Outcome:
    """Write the files, and say what they lack."""
    from ..files.atomic import write_bytes
    from ..files.export.export import write
    from ..files.export.servos import read_model
    from ..files.results import results_folder
    from ..files.verdict_text import unusable_note

    model = read_model(args.results)
    if model.estimate is not None and args.format not in OF_SERVOS:
        raise ConfigurationError(
            f'servos from commands are exported as {", ".join(OF_SERVOS)}: choose one of these'
        )
    name = re.sub(r'[^\w.-]+', '_', model.robot.name).lstrip('.') or 'robot'
    beside = results_folder(args.results) / f'{name}{EXPORT_FORMATS[args.format].suffix}'
    output = Path(args.output) if args.output else beside
    shared.expect_new([output], args.force)
    marked = '' if model.estimate else unusable_note(model.results)
    files, notes = write(args.format, model, folders=args.mesh_folder)
    for path, content in files.items():
        write_bytes(output / path, content, overwrite=args.force)

    said = [(marked, 'warning')] if marked else []
    said += [(text, 'note') for text in notes]

    def print_all() -> None:
        for text, label in (*said, (str(output), 'written')):
            print_paragraph(text, label)

    return shared.Outcome({'written': [output], 'notes': [text for text, _ in said]}, print_all)
