"""A node's parameters are the configuration's settings: same file, same checks, same names."""

from collections.abc import Iterator
from pathlib import Path
import subprocess
import sys

from parameter_overrides import parameter_overrides
import pytest
from rcl_interfaces.msg import ParameterType
import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from waiting import PATIENCE

from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.configuration import load, read_mapping
from robotid_ros.nodes.common.ros_parameters import configuration_from_overrides
from robotid_ros.nodes.common.runtime import ConfiguredNode

CONFIGS = sorted((Path(__file__).resolve().parents[3] / 'config').glob('*.yaml'))
GROUPS = ('robot', 'excitation', 'recorder', 'identification', 'simulation')


@pytest.fixture
def context(domain: int) -> Iterator[Context]:
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    yield context
    rclpy.try_shutdown(context=context)


def node_of(context: Context, *extra: Parameter, values: dict | None = None) -> ConfiguredNode:
    given = [*parameter_overrides(values or {}), *extra]
    return ConfiguredNode(
        'node', GROUPS, context=context, parameter_overrides=given, use_global_arguments=False
    )


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_a_node_reads_a_file_as_the_command_line_does(path: Path, context: Context):
    node = node_of(context, values=read_mapping(path))
    assert node.configuration == load(path)


def test_fields_are_declared_with_their_meaning(context: Context):
    node = node_of(context)
    descriptor = node.describe_parameter('excitation.stale_after')
    assert descriptor.read_only
    assert descriptor.type == ParameterType.PARAMETER_DOUBLE
    assert 'stops the robot' in descriptor.description
    assert 'unit: s' in descriptor.additional_constraints
    (limits,) = descriptor.floating_point_range
    assert (limits.from_value, limits.to_value) == (0.02, 2.0)
    assert (
        'one of auto, ols, wls'
        in node.describe_parameter('identification.method').additional_constraints
    )
    periods = node.describe_parameter('excitation.periods')
    assert 'at least 1' in periods.additional_constraints
    # Of an empty list ROS keeps the type.
    assert node.describe_parameter('robot.lower').type == ParameterType.PARAMETER_DOUBLE_ARRAY


def test_parameters_cannot_be_changed_behind_a_sessions_back(context: Context):
    node = node_of(context)
    (result,) = node.set_parameters([Parameter('excitation.stale_after', value=1.0)])
    assert not result.successful
    assert 'read-only' in result.reason


@pytest.mark.parametrize(
    ('name', 'value', 'says'),
    [
        ('excitation.stale', 0.1, "unknown key 'excitation.stale'"),
        ('excitaton.period', 0.1, "unknown key 'excitaton'"),
        ('excitation.period', 'long', "'excitation.period' must be of type float"),
        ('excitation.stale_after', 9.0, 'at most 2'),
        ('identification.method', 'magic', 'use one of'),
    ],
)
def test_wrong_parameters_are_named(name: str, value: object, says: str, context: Context):
    with pytest.raises(ConfigurationError, match=says):
        node_of(context, Parameter(name, value=value))


def test_what_ros_makes_of_yaml_is_undone():
    configuration, values = configuration_from_overrides(
        {
            'robot.joints': None,
            'robot.friction.default': ['viscous'],
            'robot.friction.joint_2': None,
            'excitation.workspace.ground': 'null',
            'excitation.period': 5,
            'use_sim_time': True,
        }
    )
    assert configuration.robot.joints == ()
    assert configuration.robot.friction == {'default': ('viscous',), 'joint_2': ()}
    assert configuration.excitation.workspace.ground is None
    assert configuration.excitation.period == 5.0
    assert values['robot']['friction']['joint_2'] == []


@pytest.mark.ros
def test_a_wrong_file_is_one_sentence_and_exit_code_1(tmp_path: Path):
    path = tmp_path / 'wrong.yaml'
    path.write_text('/**:\n  ros__parameters:\n    recorder:\n      foldr: here\n')
    result = subprocess.run(
        [
            *(sys.executable, '-m', 'robotid_ros.nodes', 'recorder'),
            *('--ros-args', '--params-file', str(path)),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 1
    assert "unknown key 'recorder.foldr'" in result.stderr
    assert 'Traceback' not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
