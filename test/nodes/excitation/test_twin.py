"""The twin's configuration has what the robot says, and is one that can be loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotid_ros.core.excitation.design import Design, design
from robotid_ros.core.model import build_robot
from robotid_ros.core.setup.robot_setup import SimulatedDrives
from robotid_ros.files.configuration import load, read_mapping, read_urdf
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.controller import ControllerDescription
from robotid_ros.nodes.excitation.rehearsal import write_twin

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'


@pytest.fixture(scope='module')
def values() -> dict[str, Any]:
    values = read_mapping(CONFIG)
    values['robot']['urdf'] = 'relative/to/another/folder.urdf'
    values['simulation'] |= {'viscous': [1.5, 2.5], 'joints': ['joint_2', 'joint_1']}
    return values


@pytest.fixture(scope='module')
def plan() -> Design:
    configuration = load(CONFIG)
    settings = configuration.excitation.__class__(period=2.0, order=2, starts=1, iterations=2)
    return design(build_robot(read_urdf(configuration) or '', configuration.robot), settings)


def controller(*commands: str) -> ControllerDescription:
    """One whose joints are in another order than the configuration's."""
    parameters = {
        'gains.joint_1.p': 11.0,
        'gains.joint_1.antiwindup_strategy': 'none',
        'gains.joint_1.unknown_to_the_twin': 3.0,
        'gains.joint_2.p': 12.0,
        'constraints.goal_time': 0.7,
        'constraints.joint_2.trajectory': 0.3,
        'update_rate': 250,
    }
    gains = {'joint_1': {'p': 11.0}, 'joint_2': {'p': 12.0}}
    return ControllerDescription(
        name='my_controller',
        rate=250.0,
        joints=('joint_2', 'joint_1'),
        command_interfaces=commands,
        gains=gains,
        state_interfaces=('position', 'velocity'),
        values=parameters,
    )


def test_a_twin_has_gains_tolerances_rate_and_place_of_the_robot(
    values: dict[str, Any], plan: Design, tmp_path: Path
):
    urdf = read_urdf(load(CONFIG)) or ''
    path = write_twin(
        tmp_path, values, urdf, plan, controller('effort'), {'joint_1': 0.1, 'joint_2': -0.2}
    )
    twin = load(path)
    assert read_urdf(twin) == urdf
    assert read_design(twin.excitation.trajectory).trajectory.hash == plan.trajectory.hash
    assert twin.excitation.controller == twin.simulation.controller == 'my_controller'
    simulation = twin.simulation
    # Its arrays are in the order of the configuration's.
    assert simulation.joints == ('joint_2', 'joint_1')
    assert simulation.initial_positions == (-0.2, 0.1)
    assert simulation.viscous == (1.5, 2.5)
    assert (simulation.gains['joint_1'].p, simulation.gains['joint_2'].p) == (11.0, 12.0)
    assert simulation.gains['joint_1'].antiwindup_strategy == 'none'
    assert simulation.constraints.goal_time == 0.7
    assert simulation.constraints.joints['joint_2'].trajectory == 0.3
    assert (simulation.update_rate, simulation.state_rate) == (250.0, 250.0)
    assert simulation.command_interface == 'effort'
    # What is found again must not be what was known before.
    assert simulation.inertial_error > 0.0
    assert simulation.real_time_factor == 1.0 and not simulation.fault.kind
    assert twin.recorder.folder == str(tmp_path)
    # The parser of rcl would take what follows a group without keys for its content.
    assert '{}' not in path.read_text()


def test_the_drives_of_a_twin_follow_what_the_robots_do(
    values: dict[str, Any], plan: Design, tmp_path: Path
):
    urdf, place = read_urdf(load(CONFIG)) or '', {'joint_1': 0.0, 'joint_2': 0.0}
    for commands in (('position',), ('velocity',), ('position', 'velocity')):
        path = write_twin(tmp_path, values, urdf, plan, controller(*commands), place)
        assert load(path).simulation.command_interface == commands[0]


def test_drives_are_guessed_where_the_configuration_says_nothing(
    values: dict[str, Any], plan: Design, tmp_path: Path
):
    urdf, place = read_urdf(load(CONFIG)) or '', {'joint_1': 0.0, 'joint_2': 0.0}
    a = np.array([0.5, 0.25])
    guess = SimulatedDrives(a, a, a, 2 * a, 3 * a, 4 * a, 5 * a, 0.1)
    given = (urdf, plan, controller('effort'), place, guess)
    configured = load(write_twin(tmp_path, values, *given)).simulation
    assert configured.viscous == (1.5, 2.5)
    bare = {key: value for key, value in values.items() if key != 'simulation'}
    twin = load(write_twin(tmp_path, bare, *given)).simulation
    assert twin.joints == ('joint_1', 'joint_2')
    assert (twin.rotor_inertia, twin.viscous) == ((0.5, 0.25), (1.0, 0.5))
    assert (twin.coulomb, twin.offset) == ((1.5, 0.75), (2.0, 1.0))
