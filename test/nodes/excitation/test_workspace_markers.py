"""What RViz shows of a workspace is what the check of collisions measures."""

from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st
import numpy as np
import pinocchio as pin
import pytest
from visualization_msgs.msg import Marker

from robotid_ros.core.excitation.collision_bodies import collision_model
from robotid_ros.core.excitation.settings import Obstacle, Workspace
from robotid_ros.core.model import build_robot
from robotid_ros.core.model.urdf_parsing import root_link
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.nodes.excitation.views import workspace_markers

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
numbers = st.floats(-2.0, 2.0)
triples = st.tuples(numbers, numbers, numbers)
sizes = st.floats(0.01, 2.0)


def obstacles(shape: str, count: int) -> st.SearchStrategy[Obstacle]:
    size = st.tuples(*[sizes] * count)
    return st.builds(Obstacle, shape=st.just(shape), position=triples, rpy=triples, size=size)


def extent(body: Any) -> list[float]:
    """Return the whole size of a collision body along its own axes."""
    shape = body.geometry
    if hasattr(shape, 'halfSide'):
        return [2.0 * half for half in shape.halfSide]
    diameter = 2.0 * shape.radius
    return [
        diameter,
        diameter,
        2.0 * shape.halfLength if hasattr(shape, 'halfLength') else diameter,
    ]


def placement(marker: Marker) -> pin.SE3:
    p, q = marker.pose.position, marker.pose.orientation
    return pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w]))


@given(st.one_of(obstacles('box', 3), obstacles('sphere', 1), obstacles('cylinder', 2)))
def test_obstacles_are_shown_as_they_are_checked(obstacle: Obstacle):
    configuration = load(CONFIG)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    settings = Workspace(obstacles={'table': obstacle})
    geometry, *_ = collision_model(robot, robot.model.copy(), settings)
    body = next(b for b in geometry.geometryObjects if b.name == 'table')
    (marker,) = (m for m in workspace_markers(settings, 'base').markers if m.ns == 'table')
    assert [marker.scale.x, marker.scale.y, marker.scale.z] == pytest.approx(extent(body))
    assert placement(marker).isApprox(body.placement, 1e-9)
    assert marker.header.frame_id == 'base'


def test_ground_and_box_of_the_tool():
    settings = Workspace(ground=-0.1, lower=(-1.0, -2.0, 0.0), upper=(1.0, 2.0, 0.5))
    clear, ground, box = workspace_markers(settings, 'base').markers
    assert clear.action == Marker.DELETEALL
    assert ground.pose.position.z + 0.5 * ground.scale.z == pytest.approx(-0.1)
    ends = np.array([(p.x, p.y, p.z) for p in box.points]).reshape(-1, 2, 3)
    lengths = sorted(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1))
    assert lengths == pytest.approx([0.5] * 4 + [2.0] * 4 + [4.0] * 4)
    assert len({m.id for m in (clear, ground, box)}) == 3


def test_a_box_without_a_wall_ends_where_the_ground_does():
    settings = Workspace(lower=(-1.0, float('-inf'), 0.1))
    _, box = workspace_markers(settings, 'base').markers
    corners = np.array([(p.x, p.y, p.z) for p in box.points])
    assert corners.min(axis=0).tolist() == [-1.0, -2.0, 0.1]
    assert corners.max(axis=0).tolist() == [2.0, 2.0, 2.0]


def test_nothing_is_shown_of_what_is_not_checked():
    assert len(workspace_markers(Workspace(), 'base').markers) == 1


@pytest.mark.parametrize('lower', [(0.0, 0.0), (0.0, 0.0, 1.0)])
def test_a_box_that_is_none_is_named(lower: tuple[float, ...]):
    with pytest.raises(ConfigurationError, match=r'excitation\.workspace\.lower'):
        workspace_markers(Workspace(lower=lower, upper=(1.0, 1.0, 1.0)), 'base')


def test_an_obstacle_of_the_wrong_size_is_named():
    settings = Workspace(obstacles={'table': Obstacle(shape='sphere', size=(0.1, 0.2))})
    with pytest.raises(ConfigurationError, match=r'obstacles\.table\.size'):
        workspace_markers(settings, 'base')


def test_the_frame_is_that_of_the_base():
    configuration = load(CONFIG)
    urdf = read_urdf(configuration) or ''
    robot = build_robot(urdf, configuration.robot)
    assert root_link(urdf) == robot.model.frames[1].name
