"""Whatever breaks while the robot moves, the session says what, and the robot is stopped."""

import pytest

from .conftest import Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]

# Fault → what the sentence must say, and whether the robot can be seen to rest afterwards.
FAULTS = {
    'stale_joint_states': ('joint states stopped', False),
    'nan_joint_state': ('joint_1 is not a number', False),
    'dead_effort': ('effort of joint_1 stays the same', True),
    'frozen_joint': ('joint_1', False),
    'hardware_error': ('stopped', False),
    'deactivate': ('deactivate', False),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_fault_stops_the_motion(fault: str, session: Session, trajectory):
    says, visible = FAULTS[fault]
    session.start('excitation', excitation={'excitation.trajectory': str(trajectory)})
    session.ready('excitation')
    # The excitation runs from about four to twelve seconds after the start of the robot.
    robot = {'simulation.fault.kind': fault, 'simulation.fault.time': 8.0}
    session.start('simulated_robot', simulated_robot=robot)
    session.robot.wait()
    session.director.trigger('excitation/start')
    session.until('excitation', 'exciting', 'failed')
    message = session.until('excitation', 'failed', 'done')
    assert session.director.state('excitation') == 'failed', message
    assert says in message
    assert 'exciting' in session.director.states('excitation')
    if visible:
        assert session.robot.rest_after(session.robot.now) < 0.5
    # The node is ready for another try, and says why there can be none.
    assert session.director.trigger('excitation/stop') == 'nothing was running'
