"""Gains that change while a session is recorded: its bag says so, and knows those before it."""

from collections.abc import Callable
import contextlib
from pathlib import Path
import time

import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically

from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import read_recording

from .conftest import PATIENCE, Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def until(path: Path, condition: Callable[[Recording], bool], what: str) -> Recording:
    """Read a bag, which may still be written, until what it holds is enough."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(RecordingError):
            recording = read_recording(path)
            if condition(recording):
                return recording
        time.sleep(0.1)
    raise AssertionError(what)


def set_gain(session: Session, name: str, value: float) -> None:
    number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    request = SetParametersAtomically.Request(parameters=[Parameter(name=name, value=number)])
    service = '/arm_controller/set_parameters_atomically'
    answer = session.director.call(SetParametersAtomically, service, request)
    assert answer.result.successful, answer.result.reason


def test_gains_that_change_while_recording_are_told(session: Session):
    session.start('simulated_robot')
    session.robot.wait()
    session.restart(recorder={'recorder.folder': str(session.folder)})
    session.director.switch('recorder/record', True)
    path = Path(session.director.value('recorder', 'path'))
    before = until(path, lambda r: r.controller is not None, 'no gains before the run')
    assert before.controller is not None
    assert not any('gains' in note for note in before.notes)
    assert before.controller.gains['joint_1']['antiwindup_legacy'] == 1.0
    set_gain(session, 'gains.joint_2.p', 0.5 * before.controller.gains['joint_2']['p'])
    session.director.switch('recorder/record', False)
    session.until('recorder', 'closed')
    after = read_recording(path)
    assert after.controller is not None
    assert after.controller.gains == before.controller.gains
    (note,) = [note for note in after.notes if 'gains' in note]
    assert 'joint_2' in note
    assert 'joint_1' not in note
