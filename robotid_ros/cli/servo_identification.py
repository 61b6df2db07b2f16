"""`robotid identify --method commands`: servos from commanded and measured positions."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any, TYPE_CHECKING

from ..exceptions import ConfigurationError
from . import shared_options as shared
from .terminal import (
    format_measured,
    format_number,
    format_percent,
    print_findings,
    print_paragraph,
    print_table,
)

if TYPE_CHECKING:
    from ..core.replay.commanded import Commanded, KnownMass, ServoParameter
    from ..files.formats.read_options import ReadOptions

COMMANDS = 'commands'
# Steps with the share of the time that each takes.
STEPS = (
    ('reading', 2.0), ('reading commands', 1.0), ('simulating the servos', 60.0),
    ('judging what is determined', 1.0), ('writing the results', 1.0),
)  # fmt: skip
KNOWN_MASS = 'KG@LINK[:X,Y,Z]'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of this method alone."""
    group = parser.add_argument_group('--method commands')
    group.add_argument(
        '--known-mass',
        metavar=KNOWN_MASS,
        type=parse_known_mass,
        help='that the last of several logs carries, at X,Y,Z [m] in the frame of a link: it '
        'fixes the scale of all torques',
    )
    group.add_argument(
        '--free-bodies',
        action='store_true',
        help='a scale of each body, near 1 as identification.prior_spread says',
    )
    add_calibration_option(group)


def add_calibration_option(parser: argparse._ActionsContainer) -> None:
    """Add `--calibration`."""
    parser.add_argument(
        '--calibration', metavar='FILE', help='of LeRobot, where positions are normalised'
    )


def refuse_options(args: argparse.Namespace) -> None:
    """Raise a ConfigurationError where another method is given options of this one."""
    if args.known_mass or args.free_bodies or args.calibration:
        raise ConfigurationError(
            '--known-mass, --free-bodies and --calibration are options of --method commands: add '
            'it, or leave them out'
        )


def parse_known_mass(text: str) -> 'KnownMass':
    """Read '0.2@gripper:0,0,0.05'."""
    from ..core.replay.commanded import KnownMass

    mass, _, rest = text.partition('@')
    link, _, place = rest.partition(':')
    try:
        x, y, z = map(float, (place or '0,0,0').split(','))
        found = KnownMass(shared.above_zero(mass), link, (x, y, z))
    except (ValueError, argparse.ArgumentTypeError):
        link = ''
    if not link:
        raise argparse.ArgumentTypeError(f"'{text}' is no mass on a link: write {KNOWN_MASS}")
    return found


def run(args: argparse.Namespace) -> shared.Outcome:
    """Identify and write the files."""
    from ..core.findings import in_order
    from ..core.replay.commanded import identify_commanded
    from ..files.identification_input import open_input, split
    from ..files.servo_results import save_servos, SERVO_FILES

    args.progress.plan(STEPS)
    args.progress.step('reading')
    folder = Path(args.output or shared.default_output(args.bag[0], 'identified'))
    shared.expect_new([folder / name for name in SERVO_FILES], args.force)
    if args.validation or args.validation_part:
        raise ConfigurationError(
            'an identification from commands is not validated on torques: leave out --validation '
            'and --validation-part'
        )
    options, share = read_command_options(args), args.progress.share
    given = open_input(
        args.bag, args.config, shared.description(args), options=options, progress=share
    )
    part = shared.selected_part(args)
    recordings = [shared.in_memory(split(each, part)[0]) for each in given.recordings]
    found = identify_commanded(
        recordings,
        given.robot,
        prior_spread=given.configuration.identification.prior_spread,
        free_bodies=args.free_bodies,
        known_mass=args.known_mass,
        progress=args.progress.step,
    )
    args.progress.step('writing the results')
    notes = (*given.robot.warnings, *(note for each in recordings for note in each.notes))
    data = save_servos(found, recordings, folder, notes, args.command_line)
    every = in_order((*found.findings, *notes))
    files = ', '.join(SERVO_FILES)
    return shared.Outcome(
        {**data, 'findings': every, 'folder': folder, 'files': list(SERVO_FILES)},
        lambda: _show(found, every, f'{folder}: {files}', args.all),
    )


def read_command_options(args: argparse.Namespace) -> 'ReadOptions':
    """Return what the user says of a log of commands."""
    options = dataclasses.replace(shared.read_options(args), commands=True)
    if not args.calibration:
        return options
    from ..files.formats.arrays import read_calibration
    from ..files.formats.units import canonical

    degrees = canonical(dict(options.units).get('position', '')) == 'deg'
    return dataclasses.replace(options, calibration=read_calibration(args.calibration, degrees))


def _show(found: 'Commanded', findings: Any, written: str, every: bool) -> None:
    print_paragraph(f'{found.robot.name}: {len(found.robot.joints)} joints, from commands')
    rows = [[p.joint or 'all', p.symbol, *_cells(p)] for p in found.parameters]
    print_table(('joint', 'parameter', 'value', '± σ', 'unit', '/ stiffness', '± σ'), rows)
    errors = zip(found.robot.joints, found.residual, found.tracking, strict=True)
    print_table(
        ('joint', 'left of positions', 'of the tracking error'),
        [
            (joint, format_number(rest, 3), format_percent(rest / tracking))
            for joint, rest, tracking in errors
        ],
    )
    print_findings(findings, every=every)
    print_paragraph(written, 'written')


def _cells(p: 'ServoParameter') -> tuple[str, ...]:
    value = ('—', '—') if p.value is None else format_measured(p.value, p.sigma or 0.0)
    ratio = ('', '') if p.ratio is None else format_measured(p.ratio, p.ratio_sigma or 0.0)
    return (*value, p.unit, *ratio)
