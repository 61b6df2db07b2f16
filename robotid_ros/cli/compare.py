"""
Compare the results of several identifications.

Compare the base parameters of several identifications with those of the first one. The table has
differences, also in units of σ: noise alone rarely exceeds ±3 σ. One result of --method both is
enough: it has the parameters of two methods. The exit code is 4 if one of the results is marked as
unusable.

  robotid compare monday_identified friday_identified
  robotid compare tx40_identified --all
"""

import argparse
import dataclasses
from pathlib import Path

from ..exceptions import ConfigurationError
from . import shared_options as shared
from .terminal import format_number, print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'parameters', nargs='+', help='parameters.yaml of each identification, or its folder'
    )
    shared.option(parser, *shared.ALL)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Compute the differences."""
    from ..files.results import (
        differences,
        read_results,
        results_folder,
        total_residual,
        verdict_of,
    )
    from ..files.verdict_text import unusable_note, verdict_data
    from .results_text import print_differences

    args.progress.step('reading')
    results = {}
    for given in args.parameters:
        path = Path(given).absolute()
        each, name = read_results(path), results_folder(path).name
        name = given if name in results else name
        results[name] = each
        if other := each.compared:
            own = dataclasses.replace(each, **vars(other), verdict=None)
            results[f'{name}, {other.method.upper()}'] = own
    if len(results) < 2:
        raise ConfigurationError(
            f"'{args.parameters[0]}' has one result: give another one, or identify with "
            '--method both'
        )
    first, *others = results

    def show() -> None:
        for name in others:
            both = results[first].base, results[name].base
            print_differences((first, name), *both, every=args.all)
        rows = []
        for name, each in results.items():
            fits = (total_residual(part) for part in (each.identification, each.validation))
            level = verdict_of(each).level
            rows.append((name, *(format_number(100 * fit, 3) for fit in fits), level))
        print_table(('residual, all joints', 'fit [%]', 'validation [%]', 'verdict'), rows, '<>><')

    notes = {name: unusable_note(each) for name, each in results.items()}
    errors = [f'{name}: {note}' for name, note in notes.items() if note]
    data = {
        'first': first,
        'differences': {n: differences(results[first].base, results[n].base) for n in others},
        'verdicts': {name: verdict_data(each) for name, each in results.items()},
    }
    return shared.Outcome(data, show, errors, shared.EXIT_UNUSABLE if errors else 0)
