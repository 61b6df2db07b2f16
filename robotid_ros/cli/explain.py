"""`robotid explain CODE`: what a finding means, why it matters and what to do."""

import argparse
import dataclasses
from typing import Any, TYPE_CHECKING

from ..exceptions import UnknownNameError
from .shared_options import Outcome
from .terminal import print_paragraph, print_table

if TYPE_CHECKING:
    from ..core.finding_codes import Code

HELP = 'say what a finding means, why it matters and what to do'
DESCRIPTION = (
    'Print the entry of a finding by its code or name, as parameters.yaml, --json and the report '
    'have them. Words in braces stand for its values. Without a code, all findings are listed.'
)
EXAMPLES = """\
examples:
  robotid explain F401
  robotid explain effort_sign
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('code', nargs='?', default='', help='code or name of a finding')


def run(args: argparse.Namespace) -> Outcome:
    """Look the code up."""
    from ..core.finding_codes import CODES, NAMES

    if not args.code:
        return Outcome([_data(code) for code in CODES.values()], _print_all)
    found = CODES.get(args.code.upper()) or NAMES.get(args.code)
    if found is None:
        known = NAMES if '_' in args.code or args.code.islower() else CODES
        raise UnknownNameError('finding', args.code, tuple(known))
    return Outcome(_data(found), lambda: _print(found))


def _data(code: 'Code') -> dict[str, Any]:
    return {**dataclasses.asdict(code), **code.texts(), 'severity': code.severity.word}


def _print_all() -> None:
    from ..core.finding_codes import CODES

    rows = [(c.code, c.severity.word, c.name, c.texts()['seen']) for c in CODES.values()]
    print_table(('code', 'severity', 'name', 'what was seen'), rows)


def _print(code: 'Code') -> None:
    print_paragraph(f'{code.code} {code.name}, {code.severity.word}')
    labels = {'seen': 'seen', 'means': 'means', 'why': 'why it matters', 'remedy': 'what to do'}
    for name, text in code.texts().items():
        if text:
            print_paragraph(text, labels[name])
