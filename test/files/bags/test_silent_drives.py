"""Joints whose drives have no sensors: what their controller commands is taken, the rest stays."""

from bag_tools import controller_state, EPOCH, joint_state, motion, STEP
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.joint_states import read_joint_states
from robotid_ros.files.bags.storage import open_bag

from .test_joint_topics import DYNAMIC, dynamic

COUNT = 40
ARM, GRIPPER = ('a', 'b'), ('left', 'right')
Q, DQ, TAU = motion(COUNT, 2)
GRASP = motion(COUNT, 2, seed=1)[2]
ZEROS, NAN = np.zeros((COUNT, 2)), np.full((COUNT, 2), np.nan)


def bag(folder, effort, grasp=GRASP, command=TAU, apart=False, dynamic_effort=None):
    """Write an arm that is controlled and a gripper that is not, by one publisher or two."""
    with BagWriter(folder, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic(
            '/arm/controller_state', 'control_msgs/msg/JointTrajectoryControllerState'
        )
        if dynamic_effort is not None:
            writer.add_topic('/dynamic_joint_states', DYNAMIC)
        for k in range(COUNT):
            stamp = EPOCH + k * STEP
            if apart:
                states = [
                    joint_state(stamp, ARM, Q[k], (), effort[k]),
                    joint_state(stamp, GRIPPER, Q[k], (), grasp[k]),
                ]
            else:
                both = [*Q[k], *Q[k]], (), [*effort[k], *grasp[k]]
                states = [joint_state(stamp, (*ARM, *GRIPPER), *both)]
            for state in states:
                writer.write('/joint_states', state, stamp)
            data = controller_state(stamp, ARM[::-1], Q[k], DQ[k], TAU[k], [*command[k, ::-1]])
            writer.write('/arm/controller_state', data, stamp)
            if dynamic_effort is not None:
                writer.write('/dynamic_joint_states', dynamic(stamp, dynamic_effort[k]), stamp)
    return writer.path


def notes_on_commands(recording):
    return select(recording.notes, 'commands_as_efforts')


@pytest.mark.parametrize('apart', [False, True])
@pytest.mark.parametrize(
    ('effort', 'says'), [(ZEROS, 'an effort of exactly 0'), (NAN, 'no effort')]
)
def test_a_gripper_that_reports_does_not_keep_the_zeros_of_the_arm(tmp_path, effort, says, apart):
    path = bag(tmp_path, effort, apart=apart)
    np.testing.assert_array_equal(open_recording(path, ARM).effort[1:], TAU[:-1])
    np.testing.assert_array_equal(open_recording(path, GRIPPER).effort, GRASP)
    (note,) = notes_on_commands(open_recording(path, ARM))
    assert note.values['what'] == says and set(note.joints) == {'a', 'b'}


def test_one_joint_that_reports_shows_that_the_drives_have_sensors(tmp_path):
    effort = TAU * [0.0, 1.0]
    recording = open_recording(bag(tmp_path, effort), (*ARM, *GRIPPER))
    np.testing.assert_array_equal(recording.effort[:, :2], effort)
    assert not notes_on_commands(recording)


def test_commands_of_0_are_no_others_than_what_is_reported(tmp_path):
    recording = open_recording(bag(tmp_path, ZEROS, command=ZEROS), (*ARM, *GRIPPER))
    np.testing.assert_array_equal(recording.effort, np.hstack([ZEROS, GRASP]))
    assert not notes_on_commands(recording)


def test_states_of_controllers_are_not_read_where_every_joint_reports(tmp_path, monkeypatch):
    path = bag(tmp_path, TAU)
    read = []
    with open_bag(path) as opened:
        blocks = opened.blocks

        def spied(topic, *window):
            read.append(topic)
            return blocks(topic, *window)

        monkeypatch.setattr(opened, 'blocks', spied)
        (table,) = next(read_joint_states(opened, '/joint_states'))
    np.testing.assert_array_equal(table.effort, np.hstack([TAU, GRASP]))
    assert read == ['/joint_states']


def test_dynamic_joint_states_of_the_same_drives_report_the_same_zeros(tmp_path):
    path = bag(tmp_path, ZEROS, grasp=ZEROS, dynamic_effort=ZEROS)
    recording = open_recording(path, ARM)
    np.testing.assert_array_equal(recording.effort[1:], TAU[:-1])
    assert notes_on_commands(recording)
