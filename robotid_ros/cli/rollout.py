"""
Simulate a recording with the identified robot.

Simulate the motion of a recording in MuJoCo and compare the positions for three kinds of robots:
as described, as identified, and drawn from the covariance of the result. The recorded reference
drives the robot by the law of the recorded controller, in one run; without a controller the
measured efforts do, restarted every second. Servos that were identified from commands follow the
recorded commands. Without a part, the validation phase of a session is used, else the whole
recording.

  robotid rollout recordings/tx40 tx40_identified
  robotid rollout arm.csv arm_identified --by efforts --from 30
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace
import math

from ..exceptions import ConfigurationError
from . import shared_options as shared
from .terminal import format_number, print_paragraph, print_table

DRIVERS = ('auto', 'controller', 'efforts')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('bag', help=shared.LOG)
    parser.add_argument('results', help='parameters.yaml, or its folder')
    text = 'input of the simulation; auto: the controller if the log has it, else efforts'
    shared.option(parser, '--by', text, choices=DRIVERS, default='auto')
    text = 'number of robots drawn from the covariance; default: %(default)s'
    shared.option(parser, '--draws N', text, type=int, default=30)
    text = 'bound of position errors, as a share of the travel; default: %(default)g'
    shared.option(parser, '--bound PERCENT', text, type=shared.above_zero, default=5.0)
    shared.add_part_options(parser)
    shared.add_log_options(parser)
    shared.option(parser, *shared.CALIBRATION)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Simulate."""
    from ..core.signals.recording import Recording
    from ..files.bags import open_recording
    from ..files.collect_results import without_delay
    from ..files.configuration import from_mapping
    from ..files.export.servos import read_model
    from ..files.rollouts import AT_ONCE, CONTROLLER, DESCRIBED, IDENTIFIED, rms, roll_out, SERVOS

    draws, bound, share = args.draws, 0.01 * args.bound, args.progress.share
    if draws < 0:
        raise ConfigurationError(f'--draws {draws}: give 0 or more')
    model = read_model(args.results)
    settings = from_mapping(model.results.settings).identification
    options = shared.read_command_options(args) if model.estimate else None
    args.progress.step('reading')
    reading = replace(options or shared.read_options(args), urdf=model.robot.urdf)
    whole = open_recording(args.bag, model.robot.recorded_joints, options=reading, progress=share)
    part = shared.in_memory(shared.part_to_predict(whole, args))
    log = part if options else without_delay(part, model.results, settings.signals.stamps)
    assert isinstance(log, Recording)
    law = '' if args.by == 'auto' else args.by
    args.progress.step('simulating')
    found = roll_out(model, log, settings, draws=draws, bound=bound, driven_by=law, progress=share)
    last, always = float(found.time[-1]), f'for all of {found.time[-1]:.2f} s'
    ends = {name: float(found.horizon(error)[-1]) for name, error in found.errors.items()}
    times = {name: f'for {end:.2f} s' if end <= last else always for name, end in ends.items()}
    driven = {
        CONTROLLER: "by the recorded controller's law along its reference, in one run",
        SERVOS: f'by servos along the recorded commands, with {found.starts} starts',
    }.get(found.driven_by, f'by the measured efforts, with {found.starts} starts')
    text = (
        f'RMS errors of positions, driven {driven}. All joints stay within '
        f'{100 * found.bound:g} % of their travel {times[IDENTIFIED]}'
    )
    text += f', those of the robot as described {times[DESCRIBED]}' if DESCRIBED in times else ''
    text += f', the commanded positions {times[AT_ONCE]}.' if AT_ONCE in times else '.'
    text += f' Efforts drive it, because {found.reason}.' if found.reason else ''

    def show() -> None:
        travels = [format_number(x, 3) for x in found.travel]
        columns: dict[str, Iterable[str]] = {
            'joint': found.robot.joints,
            'travel': map('{} {}'.format, travels, found.units),
            **{name: map(format_number, 1e3 * rms(e)) for name, e in found.errors.items()},
        }
        if len(found.draws):
            low, high = ([format_number(1e3 * x, 3) for x in end] for end in found.band)
            columns['possible robots'] = map('{} to {}'.format, low, high)
        columns['unit'] = map('m{}'.format, found.units)
        align = '<' + '>' * (len(columns) - 2) + '<'
        print_table([*columns], zip(*columns.values(), strict=True), align)
        print_paragraph(text)

    data = {
        **{'driven_by': found.driven_by, 'reason': found.reason or None, 'starts': found.starts},
        **{'seconds': float(found.time[-1]), 'joints': found.robot.joints},
        'rms': {key: rms(error) for key, error in found.errors.items()},
        'band': found.band if len(found.draws) else None,
        'horizon': {key: found.horizon(error) for key, error in found.errors.items()},
    }
    if math.isfinite(float(rms(found.errors[IDENTIFIED]).max())):
        return shared.Outcome(data, show)
    error = 'the simulation of the identified robot diverges: look at the findings of the results'
    return shared.Outcome(data, show, [error], shared.EXIT_UNUSABLE)
