"""Where it is required the session on a twin comes first, and the robot rests meanwhile."""

from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from waiting import PATIENCE, wait_until
import yaml

from robotid_ros.exceptions import RobotIdError
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.excitation.rehearsal import rehearse

from .conftest import Session, set_gain

pytestmark = pytest.mark.ros


@pytest.mark.slow
def test_a_motion_that_was_rehearsed_may_run(session: Session, trajectory: Path):
    parameters = {
        'excitation.trajectory': str(trajectory),
        'excitation.require_rehearsal': True,
    }
    found: list[DiagnosticStatus] = []
    client = session.client
    client.node.create_subscription(
        DiagnosticStatus, 'excitation/rehearsal', found.append, LATCHED
    )
    session.start('simulated_robot', 'excitation', excitation=parameters)
    session.robot.wait()
    session.ready('excitation')
    with pytest.raises(RobotIdError, match='call ~/rehearse first'):
        client.call_trigger('excitation/start')
    assert 'call ~/rehearse first' in session.until('excitation', 'failed')
    seen = len(session.robot.positions)
    client.call_trigger('excitation/rehearse')
    client.wait_for(lambda: client.state('excitation') == 'rehearsing', what='it begins')
    # As long as starting four nodes, a session and its identification may take.
    client.wait_for(
        lambda: client.state('excitation') != 'rehearsing', 4 * PATIENCE, what='it ends'
    )
    assert client.state('excitation') == 'idle', session.describe()
    # The robot has stood still, and the twin was found again.
    assert np.ptp(np.stack(session.robot.positions[seen:]), axis=0).max() < 1e-3
    wait_until(lambda: found, 'the result is latched')
    values = values_of(found[-1])
    assert (found[-1].level, values['passed']) == (DiagnosticStatus.OK, 'True')
    assert int(values['inside_3_sigma']) >= 0.9 * int(values['known']) > 0
    assert float(values['validation_residual']) < 0.03
    client.call_trigger('excitation/start')
    session.until('excitation', 'approaching')
    client.call_trigger('excitation/stop')
    session.until('excitation', 'failed')
    set_gain(session, 'gains.joint_1.p', 1.0)
    said = "before gains.joint_1.p of 'arm_controller' changed: call ~/rehearse again"
    with pytest.raises(RobotIdError, match=said):
        client.call_trigger('excitation/start')


def test_a_session_that_fails_on_the_twin_says_why(config: Path, trajectory: Path, tmp_path: Path):
    content = yaml.safe_load(config.read_text())
    groups = content['/**']['ros__parameters']
    # What a real robot may not do before its user accepts it, the twin does.
    del groups['excitation']['accept_unchecked']
    groups['excitation'] |= {'trajectory': str(trajectory), 'tracking_error': [1e-5]}
    twin = tmp_path / 'twin.yaml'
    twin.write_text(yaml.safe_dump(content))
    # The controller may see it before anybody has heard of the joint.
    with pytest.raises(RobotIdError, match=r'from its reference|left its path tolerance'):
        rehearse(twin, tmp_path, 600.0, lambda _: None)
