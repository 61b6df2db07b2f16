"""
Write a configuration for a robot description or a running robot.

Write a commented configuration for the arm of a URDF or xacro: joints, limits, start pose,
workspace, and a simulated robot for tests. Without a description, the command reads description,
controller, rate, gains and the kind of efforts from the running robot.

  robotid init my_robot.urdf            # writes my_robot.yaml
  robotid demo my_robot.yaml            # a whole session on the simulated robot
  robotid init m10ia.urdf --mass 130    # its URDF has no inertials
  robotid init ur.urdf.xacro name:=ur ur_type:=ur10e -o ur10e.yaml
  robotid init two_arms.urdf.xacro -o left.yaml --tip left_tool0
  robotid init my_robot.urdf --repair inertias   # and a corrected copy
  robotid init --controller arm_controller   # the running robot
  robotid init --keys                   # every key of a configuration
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
import re

from ..exceptions import ConfigurationError, ModelError
from .demo import expect_ros
from .shared_options import above_zero, add_output_option, expect_new, option, Outcome, parse_names
from .terminal import print_paragraph, show

# How long a running robot is listened to [s]: DDS announces participants every 3 s.
LISTENING = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        'urdf', nargs='?', metavar='URDF', help='URDF or xacro; default: the running robot'
    )
    parser.add_argument(
        'arguments', nargs='*', metavar='NAME:=VALUE', default=[], help='arguments of a xacro'
    )
    text = 'controller of the running robot; default: its only one'
    option(parser, '--controller NAME', text, default='')
    option(parser, '--namespace NS', 'namespace of the running robot, such as /arm1', default='/')
    text = "default: the robot's name with .yaml, in this folder"
    add_output_option(parser, text, replaces='an existing configuration')
    text = 'identify these; default: the longest chain of driven joints'
    option(parser, '--joints A,B,…', text, type=parse_names, default=())
    option(parser, '--tip LINK', 'link at the end of the arm, for a choice between arms')
    text = 'mass of the robot by its data sheet, for a description without inertials'
    option(parser, '--mass KG', text, type=above_zero, default=0.0)
    text = 'write a copy of the description with the nearest physically possible inertias'
    option(parser, '--repair', text, choices=('inertias',))
    option(parser, '--keys', 'print every key with its explanation, and write nothing')


def run(args: argparse.Namespace) -> Outcome:
    """Write the configuration, and say what was chosen."""
    if args.keys:
        from ..files.configuration_text import settings_reference
        from ..files.yaml import parse_yaml

        text = settings_reference()
        return Outcome(parse_yaml(text, 'the settings'), partial(show, text.rstrip()))
    from ..core.findings import render, select
    from ..core.model import RobotSettings
    from ..core.model.assumed_inertials import lacks_inertials
    from ..core.model.urdf_parsing import check_tree, parse_urdf
    from ..core.setup.joint_choice import choose_arm, JointTree, left_out_sentences
    from ..core.setup.robot_setup import KnownFacts, set_up_robot
    from ..files.atomic import write_text
    from ..files.configuration import Configuration, load, mesh_folders
    from ..files.configuration_text import configuration_text, urdf_setting
    from ..files.robot_description import read_description, repair_inertials

    progress = args.progress
    facts, folders, tip = None, tuple[str, ...](), args.tip or ''
    copied = bool(args.urdf is None or args.arguments or args.repair)
    if args.urdf is None:
        progress.step('asking the robot')
        expect_ros('a configuration for the running robot')
        from ..nodes.doctor.diagnose import known_facts
        from ..nodes.doctor.graph_snapshot import snapshot_of_graph

        snapshot = snapshot_of_graph(
            Configuration(robot=RobotSettings(mass=args.mass)),
            controller=args.controller,
            namespace=f'/{args.namespace.strip("/")}',
            duration=LISTENING,
        )
        description, facts = known_facts(snapshot)
        # Whoever publishes the description chooses its name, but no folder.
        name = re.sub(r'[^\w-]', '_', parse_urdf(description).get('name') or 'robot')
        output = Path(args.output or f'{name}.yaml')
        source = output.with_suffix('.urdf')
    else:
        source, arguments = Path(args.urdf), dict[str, str]()
        for word in args.arguments:
            name, mark, value = word.partition(':=')
            if not (name and mark):
                raise ConfigurationError(
                    f"'{word}' is no argument of a xacro: write NAME:=VALUE; joints are named by "
                    '--joints, the end of the arm by --tip'
                )
            arguments[name] = value
        description = read_description(source, arguments)
        output = Path(args.output or f'{source.name.split(".")[0]}.yaml')
        if copied:
            folders = mesh_folders(source.absolute())
            source = output.with_name(f'{output.stem}_description.urdf')
            if source.exists() and source.samefile(args.urdf):
                raise ConfigurationError(
                    f"the copy would replace '{args.urdf}': name another configuration by -o"
                )
    progress.step('reading the description')
    written = (output, source) if copied else (output,)
    if output.suffix != '.yaml':
        raise ConfigurationError(f"'{output}' will be a YAML file: let its name end in .yaml")
    if args.mass and not lacks_inertials(description):
        raise ConfigurationError('the description has masses: leave out --mass')
    known = replace(facts or KnownFacts(), mass=args.mass)
    check_tree(parse_urdf(description))
    tree = JointTree(description)
    arm = choose_arm(tree, args.joints or known.joints, tip)
    expect_new(written, args.force)
    last = [tree.joints[name].child for name in arm.joints if not tree.carried_mass(name)]
    repaired, impossible = repair_inertials(description, () if known.mass else last)
    if args.repair:
        description = repaired
    meshes = folders or mesh_folders(source.absolute())
    setup = set_up_robot(description, args.joints, tip, mesh_folders=meshes, facts=known)
    if wrong := select(setup.robot.warnings, 'masses_in_grams', 'inertias_in_other_unit'):
        raise ModelError(render(wrong[0]))
    if copied:
        write_text(source, description, overwrite=args.force)
    text = configuration_text(setup, urdf_setting(source, output), folders)
    write_text(output, text, overwrite=args.force)
    load(output)
    begin = 'repaired' if args.repair else 'no body has the inertial of'
    bodies = [f'{begin} {link}: {text}' for link, text in impossible.items()]
    if bodies and not args.repair:
        bodies.append(
            'Simulators refuse such inertials: correct them, or add --repair inertias, which '
            'writes a copy with the possible ones.'
        )
    notes = map(render, setup.notes)
    sentences = (*left_out_sentences(setup.arm), *bodies, *setup.rules.values(), *notes)
    arm, unchecked = setup.arm, setup.unchecked

    def print_all() -> None:
        print_paragraph(f'{len(arm.joints)} joints: {", ".join(arm.joints)}; tool {arm.tip}')
        for sentence in sentences:
            print_paragraph(sentence)
        if unchecked:
            show('\nBefore a real robot moves, make these checkable, or accept them:')
            for found in unchecked.values():
                print_paragraph(f'- {render(found)}')
            show(f'  excitation.accept_unchecked: [{", ".join(unchecked)}]')
        show()
        print_paragraph(', '.join(map(str, written)), 'written')

    data = {'joints': arm.joints, 'tool': arm.tip, 'notes': sentences, 'unchecked': unchecked}
    return Outcome({**data, 'written': written}, print_all)
