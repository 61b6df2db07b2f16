"""`robotid compare A B …`: results of several sessions or methods, with σ of the difference."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import ConfigurationError, MissingPackageError
from .shared_options import add_force_option, add_output_options, expect_new, judged
from .terminal import format_number, format_table, print_error, print_json, print_paragraph

if TYPE_CHECKING:
    from ..files.results import Results

# Width of the names of results in the tables.
NAME_WIDTH = 12
HELP = 'set the results of several identifications side by side'
DESCRIPTION = (
    'Compare the base parameters of several identifications: differences from the first one, and '
    'over their σ; beyond ±3 they are none of noise. Of a result of two methods, as --method '
    'both leaves them, one is enough. Writes a page with the same. The exit code is 4 where one '
    'of the results is marked unusable.'
)
EXAMPLES = """\
examples:
  robotid compare monday_identified friday_identified
  robotid compare tx40_identified -o methods.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'parameters', nargs='+', help='parameters.yaml of each, or the folder that holds it'
    )
    parser.add_argument(
        '-o', '--output', metavar='FILE', default='comparison.html', help='default: %(default)s'
    )
    add_force_option(parser, 'an existing page')
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the differences, write the page."""
    from ..files.comparison import differences
    from ..files.report.page import write_comparison
    from ..files.verdict_text import unusable_note, verdict_data

    expect_new(Path(args.output), args.force)
    results = _read(args.parameters)
    if len(results) < 2:
        raise ConfigurationError(
            f"'{args.parameters[0]}' has one result: give another one, or identify with "
            '--method both'
        )
    try:
        written, label = (
            str(write_comparison(results, args.output, overwrite=args.force)),
            'written',
        )
    except MissingPackageError as error:
        written, label = str(error), 'warning'
    first, *others = results
    if args.json:
        found = {name: differences(results[first].base, results[name].base) for name in others}
        verdicts = {name: verdict_data(each) for name, each in results.items()}
        data = {'first': first, 'differences': found, 'verdicts': verdicts}
        print_json({**data, label: written})
    else:
        for name in others:
            print(f'{_table(first, name, results)}\n')
        print(f'{_residuals(results)}\n')
        print_paragraph(written, label)
    for name, each in results.items():
        if text := unusable_note(each):
            print_error(f'robotid: {name}: {text}')
    return max(judged(each, quiet=True) for each in results.values())


def _read(paths: list[str]) -> dict[str, 'Results']:
    """Read results by the names of their folders, and what other methods found beside them."""
    from ..files.results import of_other_method
    from ..files.results_file import read_results, results_folder

    found = dict[str, 'Results']()
    for given in paths:
        path = Path(given).absolute()
        results = read_results(path)
        name = results_folder(path).name
        name = name if name not in found else str(given)
        found[name] = results
        if results.compared is not None:
            found[f'{name}, {results.compared.method.upper()}'] = of_other_method(results)
    return found


def _table(first: str, second: str, results: dict[str, 'Results']) -> str:
    from ..files.comparison import differences

    found = differences(results[first].base, results[second].base)
    if not found:
        return f'{first} and {second} have no base parameter in common'
    rows = [
        (
            *(each.name, format_number(each.first, 5), format_number(each.second, 5)),
            format_number(each.difference, 3),
            '' if each.normalised is None else f'{each.normalised:+.2f}',
            each.unit,
        )
        for each in found
    ]
    names = (_short(first), _short(second))
    head = ('parameter', *names, 'difference', 'over its σ', 'unit')
    return format_table(head, rows, '<>>>><')


def _residuals(results: dict[str, 'Results']) -> str:
    from ..files.results import total_residual, verdict_of

    rows = [
        (
            name,
            format_number(100 * total_residual(each.identification), 3),
            format_number(100 * total_residual(each.validation), 3),
            verdict_of(each).level,
        )
        for name, each in results.items()
    ]
    head = ('residual, all joints', 'fit [%]', 'validation [%]', 'verdict')
    return format_table(head, rows, '<>><')


def _short(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else f'…{name[1 - NAME_WIDTH :]}'
