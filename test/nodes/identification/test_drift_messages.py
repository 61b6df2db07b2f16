"""What is told of drift reads as a sentence, and as values that a program understands."""

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest

from robotid_ros.core.identification_settings import DriftSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.monitoring.drift_monitor import DriftChange, DriftMonitor
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.identification.live_topics import (
    change_text,
    clock_text,
    drift_statuses,
    drift_summary,
)

from .test_live_prediction import PENDULUM

SINCE = 1_790_000_000 * 10**9
DATE = '2026-09-21 14:13:20 UTC'


@pytest.fixture
def monitor():
    robot = build_robot(PENDULUM, RobotSettings())
    return DriftMonitor(
        robot, robot.prior, np.zeros(robot.p), np.zeros(1), DriftSettings(), 10.0, 0.02
    )


def change(monitor, kind, values, share=float('nan'), reverted=False):
    (group,) = [group for group in monitor.followed.groups if group.kind == kind]
    value = np.array(values)
    told = DriftChange(group, SINCE, value, np.full_like(value, 0.01), share, reverted)
    monitor.changes[group] = told
    return told


def test_changes_are_sentences(monitor):
    assert change_text(change(monitor, 'friction', [0.1, 0.2], 0.213)) == (
        f'friction of swing +21 % since {DATE}: look at drive and lubrication, or identify again'
    )
    assert change_text(change(monitor, 'offset', [-0.4])) == (
        f'offset of swing -0.4 (σ 0.01) since {DATE}: set its sensor to zero, or identify again'
    )
    assert change_text(change(monitor, 'payload', [2.0, 0.1, 0.0, -0.06])) == (
        'payload +2 kg (σ 0.01), centre 50 0 -30 mm from the last joint, since '
        f'{DATE}: tell the controller, or identify again'
    )
    back = change(monitor, 'payload', [0.0, 0.0, 0.0, 0.0], reverted=True)
    assert change_text(back) == f'payload of swing as identified again since {DATE}'


def test_simulated_time_is_seconds():
    assert clock_text(12_340_000_000) == '12.3 s'


def test_statuses_hold_parameters_and_what_was_told(monitor):
    change(monitor, 'payload', [2.0, 0.1, 0.0, -0.06])
    joint, payload = drift_statuses(monitor)
    assert (joint.name, joint.level) == ('swing', DiagnosticStatus.OK)
    assert joint.message == 'not enough motion since 0.0 s'
    value, _, identified, unit = values_of(joint)['Fc1'].split('; ')
    assert float(value) == float(identified) and unit == 'N·m'
    assert (payload.name, payload.level) == ('payload', DiagnosticStatus.WARN)
    told = values_of(payload)
    assert float(told['payload_mass']) == 2.0 and float(told['payload_first_moment_x']) == 0.1
    assert told['payload_since'] == '1790000000.000000000'


def test_the_summary_warns_while_something_is_changed(monitor):
    assert drift_summary(None).message == 'waiting for an identification'
    still = drift_summary(monitor)
    assert (still.level, still.message) == (DiagnosticStatus.OK, 'as identified')
    assert values_of(still)['swing'] == 'not enough motion since 0.0 s'
    change(monitor, 'offset', [0.4])
    told = drift_summary(monitor)
    assert told.level == DiagnosticStatus.WARN and 'offset of swing +0.4' in told.message
