"""`robotid identify BAG …`: from recordings to identified parameters."""

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import UnknownNameError
from .shared_options import (
    add_log_options,
    add_part_options,
    add_robot_options,
    default_output,
    LOG,
    make_part,
    open_logs,
    parse_part,
    selected_part,
)
from .terminal import format_number, format_table, ProgressBar

if TYPE_CHECKING:
    from ..core.identification_settings import IdentificationSettings
    from ..files.identification_input import AnyRecording, Session
    from ..files.results import Results

# Steps of the progress bar: reading, those that `identify` reports, writing.
STEPS = 7
HELP = 'identify the dynamic parameters from a recording'
DESCRIPTION = (
    'Identify dynamic parameters from a recording; write parameters.yaml, '
    'torques.npz, identified.urdf and report.html. Without options the phases of the session '
    'are used: identification on the excitation, validation on the other trajectory.'
)
EXAMPLES = """\
examples:
  robotid identify recordings/tx40_2025-01-31
  robotid identify arm.mcap -c config/arm.yaml -o identified --method didim
  robotid identify ur10.db3 -c config/ur10.yaml --part 0:0.5
  robotid identify arm.csv --urdf arm.urdf
  robotid identify monday.mcap tuesday.mcap --urdf arm.urdf
  robotid identify arm.mat --urdf arm.urdf --columns 'position=q effort=I' --units 'effort=A*0.1'
  robotid identify tx40 -c config/tx40.yaml --to 3.65 --validation-part 3.65s:7.3s
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'bag', nargs='+', help=f'{LOG}; several of one robot are identified together'
    )
    add_robot_options(parser)
    parser.add_argument(
        '-o', '--output', metavar='DIR', help='default: <BAG>_identified, of the first one'
    )
    parser.add_argument(
        '--method',
        metavar='METHOD',
        help='ols, wls, mle, irls, tls, iv, didim, clie, cloe, oe or both; default: the '
        "configuration's",
    )
    add_part_options(parser)
    parser.add_argument(
        '--validation-part',
        type=parse_part,
        metavar='START:STOP',
        help='validate on this part; default: the validation phase, or what --part leaves',
    )
    parser.add_argument('--validation', metavar='BAG', help='validate on another recording')
    add_log_options(parser)


def run(args: argparse.Namespace) -> int:
    """Identify, write the files, print the tables."""
    with ProgressBar(STEPS) as progress:
        progress.step('reading')
        from ..files.atomic import expect_writable
        from ..files.identification_input import split_session

        folder = Path(args.output or default_output(args.bag[0], 'identified'))
        expect_writable(folder)
        part, validation = selected_part(args), make_part(args.validation_part)
        session = open_logs(args, args.bag, progress)
        fitted, other = split_session(session, part, validation)
        if args.validation:
            other = _read_validation(args, session, progress)
        from ..core.pipeline.identification import identify

        settings = _settings(session, args.method)
        found = identify(fitted, session.robot, settings, other, progress.step)
        progress.step('writing the results')
        from ..files.save_results import save

        results = save(found, fitted, folder, session.settings)
    print(_format_results(results))
    print(f'\nwritten to {folder}: {", ".join(sorted(f.name for f in folder.iterdir()))}')
    return 0


def _settings(session: 'Session', method: str | None) -> 'IdentificationSettings':
    from ..core.identification_settings import METHODS

    settings = session.configuration.identification
    if method is None:
        return settings
    if method not in METHODS:
        raise UnknownNameError('method', method, METHODS)
    return dataclasses.replace(settings, method=method)


def _read_validation(
    args: argparse.Namespace, session: 'Session', progress: ProgressBar
) -> 'AnyRecording':
    from ..files.bags import open_recording

    recording = open_recording(
        args.validation,
        session.robot.recorded_joints,
        options=session.options,
        progress=progress.share,
    )
    part = make_part(args.validation_part)
    return recording if part is None else part.of(recording)


def _format_results(results: 'Results') -> str:
    from ..files.results import prediction_text

    sections = [base_table(results), residual_table(results)]
    if text := prediction_text(results):
        sections.append(text)
    if results.compared:
        sections.append(comparison_table(results))
    if results.selection:
        sections.append(str(results.selection['summary']))
    sections += [f'warning: {text}' for text in results.warnings]
    return '\n\n'.join(sections)


def comparison_table(results: 'Results') -> str:
    """Lay out the base parameters of two methods side by side."""
    from ..files.report.convergence_section import normalised_difference

    other = results.compared
    assert other is not None
    first, second = results.method.upper(), other.method.upper()
    rows = [
        [
            a.name,
            format_number(a.value, 5),
            format_number(b.value, 5),
            format_number(normalised_difference(a, b), 3),
            a.unit,
        ]
        for a, b in zip(results.base, other.base, strict=True)
    ]
    return format_table(['parameter', first, second, 'difference/σ', 'unit'], rows, '<>>><')


def base_table(results: 'Results') -> str:
    """Lay out the base parameters, with the true values where there are any."""
    known = any(entry.true is not None for entry in results.base)
    headers = ['parameter', 'value', 'σ', '%σ', *(['true', 'error/σ'] if known else []), 'unit']
    rows = []
    for entry in results.base:
        row = [entry.name, format_number(entry.value, 5), format_number(entry.sigma, 3)]
        row.append(format_number(entry.percent, 3))
        if known:
            row.append(format_number(float('nan') if entry.true is None else entry.true, 5))
            row.append(format_number(entry.error, 3))
        rows.append([*row, entry.unit])
    return format_table(headers, rows, '<' + '>' * (len(headers) - 2) + '<')


def residual_table(results: 'Results') -> str:
    """Lay out the residuals of each joint and of all together."""
    from ..files.results import total_residual

    groups = [group for group in (results.identification, results.validation) if group]
    rows = []
    for same in zip(*groups, strict=True):
        cells = []
        for row in same:
            cells += [f'{100 * row.relative:.2f}', f'{100 * row.moving:.2f}']
            cells += [f'{row.r2:.4f}', format_number(row.rms, 3)]
        rows.append([same[0].joint, *cells, same[0].unit])
    if len(rows) > 1:
        sums = [cell for g in groups for cell in (f'{100 * total_residual(g):.2f}', '', '', '')]
        rows.append(['all', *sums, ''])
    columns = ('moving', 'R²', 'RMS')
    names = ['fit [%]', 'validation [%]'][: len(groups)]
    headers = ['joint', *(h for name in names for h in (name, *columns)), 'unit']
    return format_table(headers, rows, '<' + '>' * (len(headers) - 2) + '<')
