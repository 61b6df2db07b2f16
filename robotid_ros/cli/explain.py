"""
Explain a finding or a word of the output.

Print the entry of a finding by its code or name, as parameters.yaml, --json and the report have
them, or explain a word of the output. Words in braces stand for values of a finding. Without a
code, all words and findings are listed.

  robotid explain F401
  robotid explain effort_sign
  robotid explain residual
"""

import argparse
import dataclasses
from functools import partial
from typing import Any, TYPE_CHECKING

from ..exceptions import UnknownNameError
from .shared_options import Outcome
from .terminal import print_paragraph, print_table, show

if TYPE_CHECKING:
    from ..core.findings import Code

# Words of the output, each with one meaning in all of it.
WORDS = {
    'residual': 'Recorded minus predicted effort of a joint, relative: RMS of the difference / '
    'RMS of the effort. "validation" is the residual on a motion that was not fitted. Rows at '
    'rest are included, although dry friction may then have any value; the verdict leaves these '
    'rows out.',
    'error': 'Relative residual of a joint that moves, expected on other motions of this robot. '
    'It has two parts: more motion reduces the error of the parameters, but not that of the '
    'model. The joint with the largest error decides the verdict.',
    'uncertainty': 'σ (sigma) is the standard deviation of a parameter. The true value is within '
    '±2 σ in 95 of 100 cases. "Known to 10 %" means that σ is at most 10 % of the value.',
    'parameters': 'Base parameters are the combinations of masses, first moments, inertias and '
    'friction that determine the efforts. They predict all efforts. The masses and inertias of '
    'single links are one choice of many with the same efforts.',
    'verdict': 'good: error up to 5 %, validated. fair: error up to 15 %, for simulation and '
    'feed-forward. poor: error up to 50 %. unusable: a larger error, or efforts that are no '
    'torques.',
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('code', nargs='?', default='', help='code or name of a finding, or a word')


def run(args: argparse.Namespace) -> Outcome:
    """Look the code up."""
    from ..core.findings import CODES, NAMES

    def data(code: 'Code') -> dict[str, Any]:
        return {**dataclasses.asdict(code), **code.texts(), 'severity': code.severity.word}

    def show_all() -> None:
        for word, meaning in WORDS.items():
            print_paragraph(meaning, word)
        show()
        rows = [(c.code, c.severity.word, c.name, c.texts()['seen']) for c in CODES.values()]
        print_table(('code', 'severity', 'name', 'what was seen'), rows, '<<<<')

    if not args.code:
        return Outcome([data(code) for code in CODES.values()], show_all)
    entries: dict[str, str | Code] = {**WORDS, **NAMES, **CODES}
    key = next((k for k in (args.code.lower(), args.code.upper()) if k in entries), '')
    if not key:
        known = (*WORDS, *(NAMES if args.code.islower() else CODES))
        raise UnknownNameError('finding', args.code, known)
    found = entries[key]
    if isinstance(found, str):
        return Outcome({'word': key, 'means': found}, partial(print_paragraph, found, key))

    def show_one() -> None:
        print_paragraph(f'{found.code} {found.name}, {found.severity.word}')
        for label, text in found.texts().items():
            if text:
                print_paragraph(text, label)

    return Outcome(data(found), show_one)
