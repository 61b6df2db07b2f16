r"""
Identify the dynamic parameters from a recording.

Identify dynamic parameters from a recording; write parameters.yaml, torques.npz, identified.urdf
and report.html. Without options, the phases of a session are used: the excitation for
identification, the other trajectory for validation. The exit code is 4 if the result is unusable
for other motions; an unusable result is written too.

  robotid identify recordings/tx40_2025-01-31
  robotid identify arm.mcap -c config/arm.yaml -o identified --method didim
  robotid identify ur10.db3 -c config/ur10.yaml --part 0:0.5
  robotid identify arm.csv --urdf arm.urdf
  robotid identify monday.mcap tuesday.mcap --urdf arm.urdf
  robotid identify arm.mat --urdf arm.urdf --columns 'position=q effort=I' \
    --units 'effort=A*0.1'
  robotid identify tx40 -c config/tx40.yaml --to 3.6 --validation-part 3.6s:7.3s
  robotid identify my_dataset --urdf so101.urdf --method commands
"""

import argparse
import contextlib
import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError, UnknownNameError
from . import shared_options as shared, terminal
from .terminal import format_measured, format_number, format_percent, print_paragraph

if TYPE_CHECKING:
    from ..core.replay.commanded import KnownMass
    from ..files.identification_input import Input

COMMANDS = 'commands'  # the method that finds servos from commanded and measured positions
KNOWN_MASS = 'KG@LINK[:X,Y,Z]'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'bag', nargs='+', help=f'{shared.LOG}; several logs of one robot give one result'
    )
    shared.add_robot_options(parser)
    text = 'default: <BAG>_identified, by the first BAG'
    shared.add_output_option(parser, text, 'DIR', replaces='existing results')
    text = (
        'ols, wls, mle, irls, tls, iv, didim, clie, cloe, oe or both; commands: servos, from '
        "logs without efforts; default: the configuration's"
    )
    shared.option(parser, '--method METHOD', text)
    shared.add_part_options(parser)
    text = 'validate on this part; default: the validation phase, else the rest of --part'
    shared.option(parser, '--validation-part START:STOP', text, type=shared.parse_part)
    shared.option(parser, '--validation BAG', 'validate on another recording')
    shared.add_log_options(parser)
    group = parser.add_argument_group('--method commands')
    text = (
        'mass that the arm carries in the last of several logs, at X,Y,Z [m] in the frame of a '
        'link; it fixes the scale of all torques'
    )
    shared.option(group, f'--known-mass {KNOWN_MASS}', text, type=parse_known_mass)
    shared.option(group, *shared.CALIBRATION)
    shared.option(parser, *shared.ALL)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Identify and write the files."""
    commanded, progress = args.method == COMMANDS, args.progress
    if not commanded and (args.known_mass or args.calibration):
        raise ConfigurationError(
            '--known-mass and --calibration are options of --method commands: add it, or leave '
            'them out'
        )
    if commanded and (args.validation or args.validation_part):
        raise ConfigurationError(
            'an identification from commands is not validated on torques: leave out --validation '
            'and --validation-part'
        )
    progress.step('reading')
    from ..core.identification_settings import METHODS
    from ..files.atomic import beside_recording
    from ..files.identification_input import open_input, split_all
    from ..files.results import RESULT_FILES, SERVO_FILES

    folder = Path(args.output or beside_recording(args.bag[0], 'identified'))
    files = SERVO_FILES if commanded else RESULT_FILES
    shared.expect_new([folder / name for name in files], args.force)
    options = shared.read_command_options(args) if commanded else shared.read_options(args)
    urdf, share = shared.description(args), progress.share
    session = open_input(args.bag, args.config, urdf, options=options, progress=share)
    if commanded:
        return _identify_servos(args, session, folder)
    validation = args.validation_part
    fitted_files = [Path(bag).resolve() for bag in args.bag]
    if args.validation and Path(args.validation).resolve() in fitted_files:
        raise ConfigurationError(
            f"'{args.validation}' cannot validate what is fitted to it: give another recording, "
            'or leave it out and fit a part of it by --part 0:0.7'
        )
    own = None if args.validation else validation
    fitted, other = split_all(session.recordings, shared.selected_part(args), own)
    if args.validation:
        other = session.read(args.validation, share)
        other = validation.of(other) if validation else other
    settings = session.configuration.identification
    if args.method is not None:
        UnknownNameError.check('method', (args.method,), (*METHODS, COMMANDS))
        settings = dataclasses.replace(settings, method=args.method)
    from ..core.pipeline.identification import identify
    from ..files.collect_results import save
    from .results_text import print_results, results_data

    found = identify(fitted, session.robot, settings, other, progress.step)
    progress.step('writing the results')

    results = save(found, fitted, folder, session.settings, args.command_line)
    written = sorted(name for name in files if (folder / name).exists())
    data = {**results_data(results), 'folder': folder, 'files': written}
    show = partial(print_results, results, folder, written, every=args.all)
    return shared.judged(data, show, results)


def parse_known_mass(text: str) -> 'KnownMass':
    """Read '0.2@gripper:0,0,0.05'."""
    from ..core.replay.commanded import KnownMass

    mass, _, rest = text.partition('@')
    link, _, place = rest.partition(':')
    with contextlib.suppress(ValueError, argparse.ArgumentTypeError):
        x, y, z = map(float, (place or '0,0,0').split(','))
        if link:
            return KnownMass(shared.above_zero(mass), link, (x, y, z))
    raise argparse.ArgumentTypeError(f"'{text}' is no mass on a link: write {KNOWN_MASS}")


def _identify_servos(args: argparse.Namespace, given: 'Input', folder: Path) -> shared.Outcome:
    """Identify servos and write the files."""
    from ..core.findings import in_order
    from ..core.replay.commanded import identify_commanded
    from ..files.export.servos import save_servos
    from ..files.identification_input import split
    from ..files.results import SERVO_FILES

    part = shared.selected_part(args)
    recordings = [shared.in_memory(split(each, part)[0]) for each in given.recordings]
    found = identify_commanded(
        recordings, given.robot, known_mass=args.known_mass, progress=args.progress.step
    )
    args.progress.step('writing the results')
    notes = (*given.robot.warnings, *(note for each in recordings for note in each.notes))
    data = save_servos(found, recordings, folder, notes, args.command_line)
    every = in_order((*found.findings, *notes))

    def show() -> None:
        print_paragraph(f'{found.robot.name}: {len(found.robot.joints)} joints, from commands')
        rows = []
        for p in found.parameters:
            value = ('—', '—') if p.value is None else format_measured(p.value, p.sigma or 0.0)
            ratio = ('', '') if p.ratio is None else format_measured(p.ratio, p.ratio_sigma or 0.0)
            rows.append((p.joint or 'all', p.symbol, *value, p.unit, *ratio))
        head = ('joint', 'parameter', 'value', '± σ', 'unit', '/ stiffness', '± σ')
        terminal.print_table(head, rows, '<<>><>>')
        errors = zip(found.robot.joints, found.residual, found.tracking, strict=True)
        cells = [
            (name, format_number(left, 3), format_percent(left / t)) for name, left, t in errors
        ]
        terminal.print_table(('joint', 'left of positions', 'of the tracking error'), cells, '<>>')
        terminal.print_findings(every, every=args.all)
        print_paragraph(f'{folder}: {", ".join(SERVO_FILES)}', 'written')

    data |= {'findings': every, 'folder': folder, 'files': list(SERVO_FILES)}
    return shared.Outcome(data, show)
