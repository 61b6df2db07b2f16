"""Gains that change while recording: a session stops, and no method uses the old ones."""

import dataclasses
from pathlib import Path
import time

import pytest

from robotid_ros.core.findings import select
from robotid_ros.files.bags import open_recording

from .conftest import LONG, read_when, Session, set_gain, SLOW

pytestmark = pytest.mark.ros


def test_gains_that_change_while_recording_are_told(session: Session):
    session.start('simulated_robot', 'recorder', recorder={'recorder.folder': str(session.folder)})
    session.robot.wait()
    session.ready('recorder')
    path = Path(session.client.call_set_bool('recorder/record', True))
    before = read_when(path, lambda r: r.controller is not None, 'the gains are recorded')
    assert before.controller is not None
    assert not select(before.notes, 'gains_changed')
    assert before.controller.gains['joint_1']['antiwindup_legacy'] == 1.0
    set_gain(session, 'gains.joint_2.p', 0.5 * before.controller.gains['joint_2']['p'])
    session.client.call_set_bool('recorder/record', False)
    session.until('recorder', 'closed')
    after = open_recording(path)
    # Which of them were the robot's when, nobody knows: a method that needs them has none.
    assert after.controller == dataclasses.replace(before.controller, gains={})
    (note,) = select(after.notes, 'gains_changed')
    assert note.joints == ('joint_2',)


def test_gains_that_change_while_the_robot_moves_stop_the_session(
    session: Session, trajectory: Path
):
    client = session.client
    session.start(
        *('simulated_robot', 'recorder', 'excitation'),
        simulated_robot=SLOW,
        recorder={'recorder.folder': str(session.folder)},
        excitation={'excitation.trajectory': str(trajectory), 'excitation.periods': LONG},
    )
    session.robot.wait()
    session.ready('recorder', 'excitation')
    client.call_trigger('excitation/start')
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    set_gain(session, 'gains.joint_2.p', 20.0)
    changed = time.monotonic()
    message = session.until('excitation', 'failed')
    assert time.monotonic() - changed < 1.0
    assert "gains.joint_2.p of '/arm_controller' was changed from " in message
    assert 'to 20.0 during the session' in message
    session.until('recorder', 'closed')
    recording = open_recording(Path(client.value('recorder', 'path')))
    assert recording.controller is not None
    assert recording.controller.gains == {}
    assert select(recording.notes, 'gains_changed')[0].joints == ('joint_2',)
