"""A robot without reported efforts, as in Gazebo: the commands of its controller are taken."""

from pathlib import Path

import pytest

from robotid_ros.core.finding_codes import select
from robotid_ros.files.results_file import read_results

from .conftest import Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def test_a_robot_without_reported_efforts_is_identified(session: Session, trajectory: Path):
    session.start(
        *('simulated_robot', 'excitation', 'recorder', 'identification'),
        simulated_robot={'simulation.report_effort': False},
        excitation={'excitation.trajectory': str(trajectory)},
        recorder={'recorder.folder': str(session.folder)},
        # The quickest model: where efforts come from does not depend on it.
        identification={'identification.method': 'wls'},
    )
    session.robot.wait()
    session.ready('excitation', 'recorder', 'identification')
    session.client.call_trigger('excitation/start')
    session.until('excitation', 'done')
    session.until('identification', 'done')
    results = read_results(Path(session.client.value('identification', 'folder')))
    assert select(results.findings, 'commands_as_efforts')
    assert max(row.moving for row in results.validation) < 0.03
