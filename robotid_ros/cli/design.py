"""
Design the trajectory that excites the parameters.

Design a trajectory that keeps all limits of a robot and excites its parameters as well as
possible, and another trajectory for validation. Ctrl-C ends the search and keeps the best
trajectory so far. A page beside the trajectory shows the moving arm. The exit code is 3 if the
design is poor; a poor design is written too.

  robotid design config/tx40.yaml -o trajectory.yaml
  robotid design arm.yaml -o payload_motion.yaml --payload 5
  robotid design arm.yaml -o other.yaml --seed 3
  robotid design arm.yaml -o next.yaml --known log_identified
"""

import argparse
import dataclasses
from pathlib import Path
import time
from typing import Any, TYPE_CHECKING

from ..exceptions import ConfigurationError
from . import shared_options as shared, terminal
from .terminal import format_number, print_paragraph

if TYPE_CHECKING:
    from ..core.excitation.design import Progress

# Of a design, as JSON.
FIGURES = (
    *('criterion', 'value', 'condition_numbers', 'usage', 'limits', 'seed'),
    *('evaluations', 'elapsed', 'verdict', 'notes', 'unchecked', 'shortcomings'),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('config', help="the robot's configuration file")
    text = 'default: %(default)s; the page has the same name with .html'
    shared.add_output_option(parser, text, 'FILE', 'trajectory.yaml', 'existing files')
    text = "of random numbers; default: the configuration's"
    shared.option(parser, '--seed N', text, type=int)
    text = "of the whole search; default: the configuration's"
    shared.option(parser, '--time-limit SECONDS', text, type=shared.above_zero)
    text = 'design a short motion for payloads up to this mass'
    shared.option(parser, '--payload KG', text, type=shared.above_zero)
    text = 'excite the uncertain parameters of these results of `robotid identify`'
    shared.option(parser, '--known RESULTS', text)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Design and write; what is imported for it takes its time, too."""
    begin = time.monotonic()
    from ..core.excitation.design import design
    from ..core.findings import render
    from ..core.model import build_robot
    from ..files.configuration import load, read_urdf
    from ..files.report.page import page_beside
    from ..files.results import known_of, read_results
    from ..files.trajectory_file import write_design

    page = page_beside(args.output)
    shared.expect_new((Path(args.output), page), args.force)
    configuration = load(args.config)
    urdf = read_urdf(configuration)
    if urdf is None:
        raise ConfigurationError(f"'{args.config}' names no URDF: set robot.urdf")
    robot = build_robot(urdf, configuration.robot)
    asked = configuration.excitation
    given: dict[str, Any] = {'seed': args.seed, 'time_limit': args.time_limit}
    if args.payload is not None:
        given['payload'] = dataclasses.replace(asked.payload, mass=args.payload)
    if args.known and given.get('payload', asked.payload).mass:
        raise ConfigurationError(
            '--known is for a motion of the arm, not for a payload: leave out one of the two'
        )
    if args.seed is not None and args.seed < 0:
        raise ConfigurationError('--seed must be zero or more')
    chosen = {key: value for key, value in given.items() if value is not None}
    settings = dataclasses.replace(asked, **chosen)
    known = known_of(read_results(args.known)) if args.known else None
    used = dataclasses.replace(configuration, excitation=settings)
    remaining = max(0.0, begin + settings.time_limit - time.monotonic())
    settings = dataclasses.replace(settings, time_limit=remaining)
    args.progress.step('designing')

    def tell(at: 'Progress') -> None:
        best = '' if at.criterion is None else f', best {format_number(at.criterion)}'
        args.progress.share(at.fraction, f'{at.phase}{best}, {at.evaluations} evaluations')

    result = design(robot, settings, tell, known)
    write_design(args.output, result, overwrite=args.force)
    args.progress.step('writing the page')
    subject = result, robot, used, args.command_line
    shown = shared.page_written('design', page, *subject, force=args.force, label='page')
    written = {'written': args.output, **shown}
    data = {**{name: getattr(result, name) for name in FIGURES}, **written}
    names = ('family', 'hash', 'period', 'order', 'joints')
    data['trajectory'] = {name: getattr(result.trajectory, name) for name in names}
    poor = result.shortcomings

    def show_all() -> None:
        trajectory, numbers = result.trajectory, result.condition_numbers
        print_paragraph(
            f'{trajectory.family} {trajectory.hash}: period {trajectory.period:g} s, '
            f'order {trajectory.order}, seed {result.seed}, '
            f'{result.evaluations} evaluations in {result.elapsed:.1f} s'
        )
        print_paragraph(
            f'{result.criterion.replace("_", " ")}: {format_number(result.value)}; condition '
            f'numbers of {len(result.columns)} columns: '
            + ', '.join(f'{name} {format_number(value)}' for name, value in numbers.items())
        )
        if result.usage.distance is not None:
            print_paragraph(f'smallest distance between bodies: {result.usage.distance:.3f} m')
        names = ('position', 'velocity', 'acceleration', 'jerk', 'effort')
        rows = [
            (joint, *(f'{100 * getattr(result.usage, name)[j]:.0f} %' for name in names))
            for j, joint in enumerate(robot.joints)
        ]
        terminal.show()
        terminal.print_table(('share of limit', *names), rows, '<>>>>>')
        terminal.print_findings((*result.notes, *result.unchecked))
        terminal.print_written(written)
        number = format_number(numbers['normalised'])
        style = 'doubtful' if poor or result.unchecked else 'good'
        print_paragraph(f'The design is {result.verdict}: condition number {number}.', style=style)

    errors = [f'the design is poor: {" ".join(map(render, poor))}'] if poor else []
    return shared.Outcome(data, show_all, errors, shared.EXIT_POOR if poor else 0)
