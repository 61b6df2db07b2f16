"""
Watch a session in a browser, and stop it there.

Serve a page with the session's state, its joints and its messages until Ctrl-C. Only who has the
address that is printed can open it. The button that stops is no emergency stop. Its port, and
whether other machines may open it, are `live.port` and `live.allow` of the configuration.

  robotid live my_robot.yaml
  robotid live my_robot.yaml --namespace /arm1
"""

import argparse

from .demo import expect_ros
from .shared_options import option, Outcome

STEPS = 0  # it runs until it is ended: there is no progress to show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument('config', help="the robot's configuration")
    option(parser, '--namespace NS', 'of the robot, as /arm1', default='/')


def run(args: argparse.Namespace) -> Outcome:
    """Serve the page until the process is ended."""
    expect_ros('the page')
    from ..files.configuration import load
    from ..nodes.live.live_node import main

    load(args.config)
    options = ['--params-file', args.config, '-r', f'__ns:=/{args.namespace.strip("/")}']
    return Outcome({}, lambda: None, code=main(['--ros-args', *options]))
