"""An approach may begin a little outside the limits; what is not checked has to be accepted."""

import dataclasses
import inspect
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.settings import ExcitationSettings
from robotid_ros.core.excitation.trajectory import point_to_point
from robotid_ros.core.findings import finding, render
from robotid_ros.core.model import build_robot, Robot
from robotid_ros.exceptions import ConfigurationError, LimitError, RobotStateError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.node_settings import ExcitationNodeSettings
from robotid_ros.nodes.common.messages import State
from robotid_ros.nodes.excitation.session import check_accepted, let_in, Session
from robotid_ros.nodes.excitation.supervisor import Supervisor

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
TOLERANCE = np.full(2, 0.02)


@pytest.fixture(scope='module')
def robot() -> Robot:
    configuration = load(CONFIG)
    return build_robot(read_urdf(configuration) or '', configuration.robot)


def approach(robot: Robot, start: np.ndarray, goal: np.ndarray) -> None:
    motion = point_to_point(robot.joints, start, goal, np.ones(2), np.ones(2))
    settings = ExcitationSettings(workspace=load(CONFIG).excitation.workspace)
    check_trajectory(let_in(robot, start, goal, TOLERANCE), motion, settings)


def test_a_joint_slightly_beyond_its_limit_is_led_inside(robot: Robot):
    inside = np.array([0.1, 0.2])
    for start in (robot.limits.upper + np.array([6e-4, 0.0]), robot.limits.lower - [0.0, 6e-4]):
        approach(robot, start, inside)
        with pytest.raises(LimitError):
            approach(robot, inside, start)


def test_a_joint_far_beyond_is_named_with_the_remedy(robot: Robot):
    with pytest.raises(RobotStateError, match=r'joint_2 is held .* 0\.03 beyond .*: jog it back'):
        approach(robot, robot.limits.upper + np.array([6e-4, 0.03]), np.zeros(2))


def test_limits_are_those_of_the_robot_where_it_is_inside(robot: Robot):
    same = let_in(robot, np.zeros(2), np.zeros(2), TOLERANCE)
    assert dataclasses.asdict(same.limits).keys() == dataclasses.asdict(robot.limits).keys()
    for bound in ('lower', 'upper'):
        assert (getattr(same.limits, bound) == getattr(robot.limits, bound)).all()


def test_what_is_not_checked_is_a_warning_and_has_to_be_accepted():
    unchecked = {
        'ground': finding('ground_unchecked'),
        'collision_geometry': finding('no_collision_geometry'),
    }
    ground, mesh = map(render, unchecked.values())
    warnings: list[str] = []
    logger = SimpleNamespace(warning=warnings.append)
    settings = ExcitationNodeSettings(accept_unchecked=('ground',))
    with pytest.raises(ConfigurationError) as refusal:
        check_accepted(unchecked, settings, logger)
    remedy = 'accept it by excitation.accept_unchecked: [ground, collision_geometry]'
    assert str(refusal.value) == f'{mesh} Or {remedy}'
    check_accepted(unchecked, ExcitationNodeSettings(accept_unchecked=tuple(unchecked)), logger)
    assert warnings == 2 * [ground, mesh]


@pytest.mark.parametrize('owner', [Session, Supervisor])
def test_an_owner_of_a_session_takes_its_context_alone(owner: type):
    assert list(inspect.signature(owner).parameters) == ['context']


def test_nothing_untyped_is_handed_on():
    modules = Path(inspect.getfile(Session)).parent.glob('*.py')
    assert not [path.name for path in modules if 'tuple[Any, ...]' in path.read_text()]


def test_a_second_approach_says_why_the_robot_moves_again(robot: Robot):
    goal, said, moves = np.array([0.3, 0.2]), [], []
    held = iter([(0, np.zeros(2)), (0, np.array([0.3, 0.1]))])
    session = SimpleNamespace(
        wait_for_reference=lambda: next(held),
        publish_standing=lambda *_: None,
        recorder=None,
        _approach=lambda _, start, *__: moves.append(start.tolist()),
        context=SimpleNamespace(
            robot=robot,
            node=SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=said.append)),
        ),
    )
    Session.move_to(session, State.APPROACHING, goal, '')
    assert moves == [[0.0, 0.0], [0.3, 0.1]]
    (text,) = said
    assert text.startswith('the controller holds joint_2 0.1 away from where the motion begins')
