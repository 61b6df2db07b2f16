"""
Identify a payload from two recordings, without and with it, or set a payload at the robot.

Identify the mass, centre of mass and inertia of a body that the arm carries, from two recordings
of the same robot, or from an identification and a recording. The file of the result has the lines
for the robots' controllers. Friction may differ between the recordings. The exit code is 4 if the
mass is below 3 σ, or if signs or units of a recording are wrong. --set sends the payload to the
robot's driver and to the node feedforward. The driver then holds the arm with other torques: let
the robot rest, and keep away.

  robotid payload recordings/empty recordings/with_gripper --frame tool0
  robotid payload recordings/arm_identified recordings/with_gripper
  robotid payload empty.mcap loaded.mcap -c config/arm.yaml -o gripper.yaml
  robotid payload gripper.yaml --set universal_robots
  robotid payload gripper_before.yaml --restore
"""

import argparse
import math
from pathlib import Path

from ..exceptions import ConfigurationError, RecordingError, RobotIdError
from . import shared_options as shared, terminal
from .demo import expect_ros
from .terminal import print_paragraph, show

# Longest wait for a service that is not there, or does not answer [s]: UR's checks for seconds.
TIMEOUT = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    text = 'recording without the payload, or the folder of an identification; without LOADED '
    parser.add_argument('empty', help=f'{text}the file of a payload to set')
    parser.add_argument('loaded', nargs='?', help='recording with the payload')
    group = parser.add_argument_group('the robot, at rest')
    text = (
        'set the payload at the driver and at the node feedforward: universal_robots, franka, '
        'ufactory; feedforward: only at this node'
    )
    shared.option(group, '--set MAKER', text)
    text = 'set the earlier payload again, from the file that --set wrote'
    shared.option(group, '--restore', text)
    shared.option(group, '--service NAME', 'of the driver; default: by the maker', default='')
    shared.option(group, '--namespace NS', 'namespace of the robot, such as /arm1', default='/')
    text = (
        "frame of the result; default: the configuration's workspace.frame, else tool0, else "
        "the last joint's"
    )
    shared.option(parser, '--frame FRAME', text, default='')
    shared.add_robot_options(parser, 'EMPTY')
    shared.add_output_option(parser, 'default: <LOADED>_payload.yaml', replaces='an existing file')
    shared.add_log_options(parser)
    shared.option(parser, *shared.ALL)


def run(args: argparse.Namespace) -> shared.Outcome:
    """Identify both and write the file, or set what was identified."""
    if args.loaded is None:
        text = _set(args, Path(args.empty))
        return shared.Outcome({'set': text}, lambda: print_paragraph(text))
    if Path(args.empty).resolve() == Path(args.loaded).resolve():
        raise RecordingError(
            f"'{args.loaded}' is given twice: give a recording without the body, and one with it"
        )
    args.progress.step('reading')
    from ..core.parameters.carried_body import CENTRAL, CENTRAL_UNITS
    from ..core.payload.payload import obstacle, payload_from_recordings
    from ..files.atomic import beside_recording
    from ..files.payload.inputs import open_payload
    from ..files.payload.makers import maker_lines
    from ..files.payload.payload_file import determined, write_payload

    output = Path(args.output or beside_recording(args.loaded, 'payload.yaml'))
    shared.expect_new([output], args.force)
    robot, options = shared.description(args), shared.read_options(args)
    logs = args.empty, args.loaded, args.frame, args.config
    given = open_payload(*logs, args.progress.share, urdf=robot, options=options)
    subject = given.empty, given.loaded, given.robot, given.settings
    payload, findings = payload_from_recordings(*subject, args.progress.step, given.frame.name)
    args.progress.step('writing the result')
    facts = {'robot': given.robot.name, 'empty': args.empty, 'loaded': args.loaded}
    path = write_payload(output, payload, facts, findings, overwrite=args.force)
    reason = obstacle(payload, findings)
    lines = {} if reason else maker_lines(determined(payload))
    rows = [  # at the centre of mass, then at the frame
        *zip(CENTRAL, payload.central, payload.central_sigma, CENTRAL_UNITS, strict=True),
        *zip(payload.names, payload.value, payload.sigma, payload.units, strict=True),
    ]
    done, error = '', f'the payload is unusable: {reason}'
    if args.set and not reason:
        try:
            done = _set(args, path)
        except RobotIdError as refusal:  # what was identified is shown all the same
            error = str(refusal)

    def print_all() -> None:
        show(f'in {payload.frame}: mass, centre, inertia at the centre; then moments at the frame')
        show()
        known = [row for row in rows if math.isfinite(row[2])]  # a finding names the others
        cells = [(name, *terminal.format_measured(*of), unit) for name, *of, unit in known]
        terminal.print_table(('parameter', 'value', 'σ', 'unit'), cells, '<>><')
        if any(lines.values()):
            show(f"to paste, if {payload.frame} is the maker's flange frame:")
            for maker, line in lines.items():
                show(f'{maker}: {line or "needs what the motion does not determine"}')
            show()
        terminal.print_findings(findings, every=args.all)
        terminal.print_written({'written': path})
        if done:
            print_paragraph(done)

    keys = ('name', 'value', 'sigma', 'unit')
    data = {
        'frame': payload.frame,
        'parameters': [dict(zip(keys, row, strict=True)) for row in rows],
        'controllers': lines,
        'verdict': {'usable': not reason, 'reason': reason or None},
        'findings': findings,
        'written': path,
        'set': done,
    }
    if not reason and bool(done) == bool(args.set):
        return shared.Outcome(data, print_all)
    code = shared.EXIT_UNUSABLE if reason else shared.EXIT_ERROR
    return shared.Outcome(data, print_all, [error], code)


def _set(args: argparse.Namespace, path: Path) -> str:
    """Set the payload of a file, or what was set before; return a sentence."""
    if not (args.set or args.restore):
        raise ConfigurationError(
            'these are required: loaded, or --set with the maker whose driver gets the payload'
        )
    from ..files.payload.makers import find_driver, RELAY
    from ..files.payload.payload_file import read_body

    frame, body, _ = read_body(path)
    if args.set and args.set != RELAY:
        find_driver(args.set, frame, body, args.service)  # needs no ROS to say what to type
    expect_ros('setting a payload')
    from ..files.configuration import load
    from ..nodes.common.runtime import lone_node
    from ..nodes.identification.payload_setting import PayloadSetter

    joints = args.joints or (load(args.config).robot.joints if args.config else ())
    args.progress.step('setting it')
    with lone_node('robotid_payload', f'/{args.namespace.strip("/")}', None) as node:
        setter = PayloadSetter(node, TIMEOUT, joints)
        if args.restore:
            return setter.restore(str(path))
        before = path.with_name(f'{path.stem}_before.yaml')
        return setter.set(args.set, frame, body, before, args.service)
