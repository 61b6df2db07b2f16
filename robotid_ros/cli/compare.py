"""
Set the results of several identifications side by side.

Compare the base parameters of several identifications: differences from the first one, and over
their σ; beyond ±3 they are none of noise. Of a result of two methods, as --method both leaves
them, one is enough. Writes a page with the same. The exit code is 4 where one of the results is
marked unusable.

  robotid compare monday_identified friday_identified
  robotid compare tx40_identified -o methods.html
"""

import argparse
from pathlib import Path

from ..exceptions import ConfigurationError
from .shared_options import (
    add_all_option,
    add_output_option,
    EXIT_UNUSABLE,
    expect_new,
    Outcome,
    page_written,
)
from .terminal import format_number, print_table, print_written

# Width of the names of results in the tables.
NAME_WIDTH = 12
# Steps with the share of the time that each takes.
STEPS = (('reading', 1.0), ('writing the page', 4.0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'parameters', nargs='+', help='parameters.yaml of each, or the folder that holds it'
    )
    add_output_option(
        parser, 'default: %(default)s', default='comparison.html', replaces='an existing page'
    )
    add_all_option(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Compute the differences, write the page."""
    from ..files.results import differences, of_other_method, total_residual, verdict_of
    from ..files.results_file import read_results, results_folder
    from ..files.verdict_text import unusable_note, verdict_data
    from .results_text import print_differences

    args.progress.step('reading')
    expect_new([Path(args.output)], args.force)
    results = {}
    for given in args.parameters:
        path = Path(given).absolute()
        each, name = read_results(path), results_folder(path).name
        name = given if name in results else name
        results[name] = each
        if other := each.compared:
            results[f'{name}, {other.method.upper()}'] = of_other_method(each, other)
    if len(results) < 2:
        raise ConfigurationError(
            f"'{args.parameters[0]}' has one result: give another one, or identify with "
            '--method both'
        )
    args.progress.step('writing the page')
    written = page_written('comparison', args.output, results, force=args.force)
    first, *others = results

    def show() -> None:
        for name in others:
            names, bases = zip(*((_short(n), results[n].base) for n in (first, name)), strict=True)
            print_differences(names, *bases, every=args.all)
        rows = [
            (
                name,
                format_number(100 * total_residual(each.identification), 3),
                format_number(100 * total_residual(each.validation), 3),
                verdict_of(each).level,
            )
            for name, each in results.items()
        ]
        print_table(('residual, all joints', 'fit [%]', 'validation [%]', 'verdict'), rows, '<>><')
        print_written(written)

    notes = {name: unusable_note(each) for name, each in results.items()}
    errors = [f'{name}: {note}' for name, note in notes.items() if note]
    data = {
        'first': first,
        'differences': {n: differences(results[first].base, results[n].base) for n in others},
        'verdicts': {name: verdict_data(each) for name, each in results.items()},
        **written,
    }
    return Outcome(data, show, errors, EXIT_UNUSABLE if errors else 0)


def _short(name: str) -> str:
    name = name.removesuffix('_identified')
    return name if len(name) <= NAME_WIDTH else f'…{name[1 - NAME_WIDTH :]}'
