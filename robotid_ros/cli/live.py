"""
Watch and stop a session in a browser.

Serve a page with the session's state, joints and messages until Ctrl-C. The printed address has a
token; without it nobody can open the page. The stop button is no emergency stop.

  robotid live my_robot.yaml
  robotid live my_robot.yaml --port 9000 --namespace /arm1
"""

import argparse

from .demo import expect_ros
from .shared_options import option, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('config', help="the robot's configuration")
    option(parser, '--port N', 'port of the page; 0: any free port', type=int)
    option(parser, '--allow', 'allow other machines: see docs/security.md')
    option(parser, '--namespace NS', 'namespace of the robot, such as /arm1', default='/')


def run(args: argparse.Namespace) -> Outcome:
    """Serve the page until the process is ended."""
    expect_ros('the page')
    from ..files.configuration import load
    from ..nodes.live.live_node import main

    load(args.config)
    options = ['--params-file', args.config, '-r', f'__ns:=/{args.namespace.strip("/")}']
    if args.port is not None:
        options += ['-p', f'live.port:={args.port}']
    if args.allow:
        options += ['-p', 'live.allow:=true']
    return Outcome({}, lambda: None, code=main(['--ros-args', *options]))
