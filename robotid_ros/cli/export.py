"""
Write what was identified for other programs.

Write an identified robot for simulators and controllers (mjcf, sdf, urdf, srdf, inertials for a
xacro), how far it may be off (ranges), a controller of ros2_control for it (a package in C++), or
its parameters as a table (csv, mat, npz). In mjcf, sdf, urdf and the controller viscous and
Coulomb friction stand for other laws, with their residual at the recorded speeds. What a format
cannot hold is said here, and in the file.

  robotid export tx40_identified --format mjcf
  robotid export results --format mjcf -o arm.xml --mesh-folder ~/ws/src
  robotid export results --format inertials --like physical_parameters.yaml
  robotid export results --format ros2_controller -o src/arm_dynamics
  robotid export results --format csv -o parameters.csv
  robotid export results --format npz --regressor recordings/tx40 --part 0:0.5
"""

import argparse
from pathlib import Path
import re
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError
from ..files.export.export import FORMATS
from . import shared_options as shared
from .terminal import print_paragraph

if TYPE_CHECKING:
    from ..files.export.identified_model import IdentifiedModel


RANGES = 'ranges'
# Formats of servos that were identified from commands.
OF_SERVOS = ('mjcf', 'sdf', 'urdf', 'isaaclab', RANGES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('results', help='parameters.yaml, or the folder that holds it')
    names = ', '.join(FORMATS)
    shared.option(parser, '--format NAME', names, required=True, choices=(*FORMATS,))
    text = "default: the robot's name, beside the results"
    shared.add_output_option(parser, text, replaces='existing files')
    text = 'of mjcf: where the packages of package:// meshes are; may be repeated'
    shared.option(parser, '--mesh-folder DIR', text, action='append', default=[])
    text = (
        "of inertials: a file of the robot's description package to follow: inertials.yaml "
        'as in franka_description, physical_parameters.yaml as in ur_description'
    )
    shared.option(parser, '--like FILE', text, default='')
    text = f'of csv, mat, npz: observation matrix W and torques Y of this log too: {shared.LOG}'
    shared.option(parser, '--regressor LOG', text)
    shared.add_part_options(parser)
    shared.add_log_options(parser)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Write the files, and say what they lack."""
    if args.regressor and not FORMATS[args.format].table:
        tables = ', '.join(name for name, each in FORMATS.items() if each.table)
        raise ConfigurationError(f'--regressor is for tables: choose one of {tables}')
    from ..files.atomic import write_bytes
    from ..files.export.export import write
    from ..files.export.identified_model import read_identified_model
    from ..files.results_file import read_results, results_folder
    from ..files.servo_results import read_servos, servo_model, servo_ranges
    from ..files.verdict_text import unusable_note

    servos = read_servos(args.results)
    if servos is not None and args.format not in OF_SERVOS:
        raise ConfigurationError(
            f'servos from commands are exported as {", ".join(OF_SERVOS)}: choose one of these'
        )
    model = (
        read_identified_model(args.results)
        if servos is None
        else servo_model(servos.robot, servos.parameters)
    )
    name = re.sub(r'[^\w.-]+', '_', model.robot.name).lstrip('.') or 'robot'
    beside = results_folder(args.results) / f'{name}{FORMATS[args.format].suffix}'
    output = Path(args.output) if args.output else beside
    table = output.with_name(f'{output.stem}_regressor{output.suffix}')
    written = [output, table] if args.regressor else [output]
    shared.expect_new(written, args.force)
    marked = '' if servos else unusable_note(read_results(args.results))
    if servos is not None and args.format == RANGES:
        files, notes = servo_ranges(servos)
    else:
        files, notes = write(args.format, model, folders=args.mesh_folder, like=args.like)
    if args.regressor:
        notes = [*notes, *_write_regressor(args, model, table)]
    for path, content in files.items():
        write_bytes(output / path, content, overwrite=args.force)

    def print_all() -> None:
        if marked:
            print_paragraph(marked, 'warning')
        for text in notes:
            print_paragraph(text, 'note')
        for path in written:
            print_paragraph(str(path), 'written')

    return shared.Outcome(
        {'written': written, 'notes': [*filter(None, [marked]), *notes]}, print_all
    )


def _write_regressor(args: argparse.Namespace, model: 'IdentifiedModel', path: Path) -> list[str]:
    """Write W and Y of a log; return notes on it."""
    from ..files.export.tables import write_regressor
    from ..files.identification_input import split

    args.progress.step('reading')
    log = shared.open_log_of(args, args.regressor, model.robot)
    args.progress.step('writing')
    part = split(log, shared.selected_part(args))[0]
    return write_regressor(path, part, model, overwrite=args.force)
