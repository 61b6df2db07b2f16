r"""
Identify the dynamic parameters from a recording.

Identify dynamic parameters from a recording; write parameters.yaml, torques.npz, identified.urdf
and report.html. Without options the phases of the session are used: identification on the
excitation, validation on the other trajectory. The exit code is 4 where the result is unusable for
other motions, which is written all the same.

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
import dataclasses
from functools import partial
from pathlib import Path

from ..exceptions import UnknownNameError
from . import servo_identification, shared_options as shared
from .terminal import ProgressBar

# Labels of the steps with the share of the time that each takes, of 8 s of a six-axis arm at
# 5 kHz; along a simulation the estimation takes nearly all.
STEPS = (
    ('reading', 2.0),
    ('choosing filters, rows and friction', 9.0),
    ('preparing signals', 2.0),
    ('estimating', 2.0),
    ('finding the essential parameters', 1.0),
    ('finding standard parameters', 2.0),
    ('validating', 1.0),
    ('writing the results', 2.0),
)
SIMULATING = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'bag', nargs='+', help=f'{shared.LOG}; several of one robot are identified together'
    )
    shared.add_robot_options(parser)
    shared.add_output_option(
        parser,
        'default: <BAG>_identified, of the first one',
        'DIR',
        replaces='existing results',
    )
    text = (
        'ols, wls, mle, irls, tls, iv, didim, clie, cloe, oe or both; commands: servos, from '
        "logs without efforts; default: the configuration's"
    )
    shared.option(parser, '--method METHOD', text)
    shared.add_part_options(parser)
    text = 'validate on this part; default: the validation phase, or what --part leaves'
    shared.option(parser, '--validation-part START:STOP', text, type=shared.parse_part)
    shared.option(parser, '--validation BAG', 'validate on another recording')
    shared.add_log_options(parser)
    servo_identification.add_arguments(parser)
    shared.add_all_option(parser)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Identify and write the files."""
    if args.method == servo_identification.COMMANDS:
        return servo_identification.run(args)
    servo_identification.refuse_options(args)
    progress: ProgressBar = args.progress
    progress.step('reading')
    from ..files.identification_input import open_input, split_all
    from ..files.results_file import RESULT_FILES

    folder = Path(args.output or shared.default_output(args.bag[0], 'identified'))
    shared.expect_new([folder / name for name in RESULT_FILES], args.force)
    options, urdf, share = shared.read_options(args), shared.description(args), progress.share
    session = open_input(args.bag, args.config, urdf, options=options, progress=share)
    validation = args.validation_part
    fitted, other = split_all(session.recordings, shared.selected_part(args), validation)
    if args.validation:
        other = session.read(args.validation, share)
        other = validation.of(other) if validation else other
    from ..core.identification_settings import METHODS
    from ..core.pipeline.identification import identify

    settings = session.configuration.identification
    if args.method is not None:
        if args.method not in METHODS:
            known = (*METHODS, servo_identification.COMMANDS)
            raise UnknownNameError('method', args.method, known)
        settings = dataclasses.replace(settings, method=args.method)
    progress.plan(steps(settings.method))
    found = identify(fitted, session.robot, settings, other, progress.step)
    progress.step('writing the results')
    from ..files.collect_results import save
    from .results_text import print_results, results_data

    results = save(found, fitted, folder, session.settings, args.command_line)
    files = sorted(file.name for file in folder.iterdir())
    data = {**results_data(results), 'folder': folder, 'files': files}
    show = partial(print_results, results, folder, files, every=args.all)
    return shared.judged(data, show, results)


def steps(method: str) -> list[tuple[str, float]]:
    """Return `STEPS` as they are for a method; 'both' does all but reading and writing twice."""
    from ..core.identification_settings import SIMULATED

    simulated = method in SIMULATED or method == 'both'
    plan = [
        (label, SIMULATING if simulated and label == 'estimating' else t) for label, t in STEPS
    ]
    return [*STEPS[:-1], *plan[1:]] if method == 'both' else plan
