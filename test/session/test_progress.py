"""A session ends after the period with which enough is known."""

from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus
import pytest

from robotid_ros.files.bags import open_recording
from robotid_ros.nodes.common.messages import status, values_of
from robotid_ros.nodes.common.runtime import LATCHED

from .conftest import LONG, Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]
PERIOD = 4.0


def test_a_session_ends_when_enough_is_known(session: Session, trajectory: Path):
    client = session.client
    progress = client.node.create_publisher(DiagnosticStatus, 'identification/progress', LATCHED)
    session.start(
        *('simulated_robot', 'excitation', 'recorder'),
        excitation={
            'excitation.trajectory': str(trajectory),
            'excitation.periods': LONG,
            'excitation.until.prediction': 0.02,
        },
        recorder={'recorder.folder': str(session.folder)},
    )
    session.robot.wait()
    session.ready('excitation', 'recorder')
    client.call_trigger('excitation/start')

    def told() -> bool:
        """Say what the identification says, which may be busy: enough is known at once."""
        values = values_of(client.latest['excitation/state'])
        known = {'session': values.get('session', ''), 'following': True, 'enough': True}
        progress.publish(status('progress', 'enough', known))
        return values['state'] in ('done', 'failed')

    client.wait_for(told, what='the session ends')
    assert client.state('excitation') == 'done', session.describe()
    client.wait_for(lambda: 'recorder/bag' in client.latest, what='the bag is closed')
    recording = open_recording(client.latest['recorder/bag'].data)
    phases = {phase.name: phase for phase in recording.phases}
    assert not any(phase.cut for phase in recording.phases) and 'validating' in phases
    exciting = phases['exciting']
    assert exciting.stop - exciting.start == pytest.approx(PERIOD, abs=1e-3)
    # It ends at rest where it began.
    rest = recording.between(exciting.stop + 0.005, exciting.stop + 0.2).reference
    assert rest is not None
    assert abs(rest.q - recording.trajectories['exciting'].start).max() < 1e-6
