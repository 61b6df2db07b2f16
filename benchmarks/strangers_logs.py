"""
What goes wrong with logs of strangers' robots: before, now, and whether it is detected or handled.

    python benchmarks/strangers_logs.py [--only WORD …] [--check]

Every log is of a simulated arm by MuJoCo, written as a bag and identified as `robotid identify BAG
--urdf URDF` does, with nothing configured. Printed of each: what was seen when this was not
handled; how much of the exact torque of moving joints on another motion is predicted wrongly,
beside a plain baseline (that of `foreign.py`); how many true base parameters lie inside ±3 σ; the
sentence that names what is wrong. Other benchmarks hold what needs many logs or robots:
`assumptions.py` false alarms, `coverage.py` σ where the model is wrong,
`studies/didim_poor_motion.py` DIDIM on arms of others, `urdf_export.py` their descriptions.
"""

import contextlib
import dataclasses
from functools import partial
import io
from pathlib import Path
import re
import sys
from tempfile import TemporaryDirectory
import textwrap

from common import command_line, verdict
from foreign import Baseline, predicted
from log_effects import Case, case, write
from log_rows import Row, ROWS
import numpy as np

from robotid_ros.cli.main import main as robotid
from robotid_ros.core.findings import render
from robotid_ros.core.pipeline.identification import Identification, identify
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.identification_input import open_input, split_all

NEGLIGIBLE = 0.1  # difference to the baseline [% of the torque]


@dataclasses.dataclass
class Finding:
    """What a log gave, in words, and what falls short."""

    now: list[str] = dataclasses.field(default_factory=list)
    short: list[str] = dataclasses.field(default_factory=list)

    def expect(self, good: bool, text: str) -> None:
        """Tell a figure, and whether it is as it has to be."""
        self.now.append(text)
        if not good:
            self.short.append(text)


def look(row: Row, folder: Path) -> Finding:
    """Identify the logs of a row and judge."""
    found, made = Finding(), row.make()
    try:
        result = identified(made, folder)
    except RobotIdError as error:
        said = row.says and re.search(row.says, str(error))
        found.expect(bool(said), f'refused: {error}')
        return found
    if row.most is not None:
        own, plain = beside_baseline(made, result, folder)
        good = own <= row.most * plain + NEGLIGIBLE
        found.expect(good, f'{own:.2f} % left, baseline {plain:.2f} ({own / plain:.2f} ×)')
    if row.inside is not None:
        share = made.share_inside(result)
        count = len(result.estimate.value)
        found.expect(share >= row.inside, f'{round(share * count)} of {count} inside ±3 σ')
    if row.check:
        text = row.check(made, result)
        found.expect(not text.startswith('not '), text)
    _hear(row, result, found)
    return found


def _hear(row: Row, result: Identification, found: Finding) -> None:
    """Look for what has to be said, and for what may not."""
    texts = list(map(render, result.findings))
    if row.says:
        told = [text for text in texts if re.search(row.says, text)]
        others = f'only: {" | ".join(texts) or "nothing"}'
        found.expect(bool(told), f'"{(told or [others])[0]}"')
    for text in texts:
        if row.silent and re.search(row.silent, text):
            found.expect(False, f'false alarm: {text}')


def identified(made: Case, folder: Path) -> Identification:
    """Write the logs, identify."""
    urdf = folder / 'robot.urdf'
    urdf.write_text(made.urdf)
    bags = [str(write(folder, 'log', log, made.clock)) for log in made.logs]
    session = open_input(bags, urdf=made.urdf)
    fitted, other = split_all(session.recordings)
    return identify(fitted, session.robot, session.configuration.identification, other)


def beside_baseline(made: Case, result: Identification, folder: Path) -> tuple[float, float]:
    """Return how far both are from the exact torque of moving joints on another motion [%]."""
    plain = Baseline(folder / 'robot.urdf', made.logs[0], result.robot.joints)
    fitted = plain.fitted([plain.signals(made.logs[0]), made.exact])[1]
    own = predicted(result, made.exact, plain.joints)[0]
    squares = (made.exact.squares(x, moving=True).sum(axis=1) for x in (own, fitted))
    first, second = (100.0 * float(np.sqrt(error / torque)) for error, torque in squares)
    return first, second


def command_line_tells(folder: Path) -> Finding:
    """Run `inspect` and `validate` on a bag with a robot description."""
    made, found, told = case(), Finding(), {}
    log = made.logs[0]
    wrong = dataclasses.replace(log, effort=log.effort * [1.0, 1.5, 1.0])
    good, bad = (
        str(write(folder, name, each, urdf=made.urdf))
        for name, each in (('good', log), ('bad', wrong))
    )
    for name, *arguments in (
        ('inspect', good),
        ('identify', good, '-o', str(folder / 'out')),
        ('validate', bad, '--parameters', str(folder / 'out')),
    ):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            robotid([name, *arguments])
        told[name] = out.getvalue().splitlines()
    expected = ('inspect', 'robot description'), ('validate', 'all '), ('validate', 'warning')
    for verb, word in expected:
        line = next((line for line in told[verb] if line.startswith(word)), f'{word}: nothing')
        found.expect('nothing' not in line and 'none' not in line, f'{verb}: {line}')
    return found


def main() -> int:
    """Print the table."""
    parser = command_line(__doc__)
    parser.add_argument('--only', nargs='+', default=(), help='rows with one of these words')
    arguments = parser.parse_args()
    table = [(row.what, row.before, partial(look, row)) for row in ROWS]
    no = '"no robot description" with one in the bag; no total, no warning'
    table.append(('inspect and validate', no, command_line_tells))
    missed = []
    for what, before, judge in table:
        if arguments.only and not any(word in what for word in arguments.only):
            continue
        with TemporaryDirectory() as name:
            found = judge(Path(name))
        missed += [f'{what}: {text}' for text in found.short]
        print(f'{what}: {"NOT handled" if found.short else "handled"}\n  before: {before}')
        print(textwrap.fill(f'now: {"; ".join(found.now)}', 99, initial_indent='  ',
                            subsequent_indent='    '), flush=True)  # fmt: skip
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
