"""Gains that change while a session is recorded: its bag says so, and knows those before it."""

from pathlib import Path

import pytest

from robotid_ros.files.bags import read_recording

from .conftest import read_when, Session, set_gain

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def test_gains_that_change_while_recording_are_told(session: Session):
    session.start('simulated_robot', 'recorder', recorder={'recorder.folder': str(session.folder)})
    session.robot.wait()
    session.ready('recorder')
    path = Path(session.client.call_set_bool('recorder/record', True))
    before = read_when(path, lambda r: r.controller is not None, 'the gains are recorded')
    assert before.controller is not None
    assert not any('gains' in note for note in before.notes)
    assert before.controller.gains['joint_1']['antiwindup_legacy'] == 1.0
    set_gain(session, 'gains.joint_2.p', 0.5 * before.controller.gains['joint_2']['p'])
    session.client.call_set_bool('recorder/record', False)
    session.until('recorder', 'closed')
    after = read_recording(path)
    assert after.controller is not None
    assert after.controller.gains == before.controller.gains
    (note,) = [note for note in after.notes if 'gains' in note]
    assert 'joint_2' in note
    assert 'joint_1' not in note
