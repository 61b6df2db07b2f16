"""Of several topics of joint states, the one that a robot's sensors are on is read."""

from bag_tools import EPOCH, joint_state, STEP
import pytest

from robotid_ros.core.findings import select
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.summary import summarise
from robotid_ros.files.formats.read_options import ReadOptions

from ..formats.tables import urdf

ARM, GRIPPER = ('a', 'b', 'c'), ('left', 'right')
ALL = (*ARM, *GRIPPER)
NONE, ZERO, LIVE = (), 0.0, 1.0


def bag(folder, topics, description=''):
    """Write topics {name: (joints, effort, number of messages)}; positions tell topics apart."""
    with BagWriter(folder, 'bag') as writer:
        if description:
            writer.write_text('/robot_description', description, EPOCH)
        for number, (topic, (joints, effort, count)) in enumerate(topics.items()):
            writer.add_topic(topic, 'sensor_msgs/msg/JointState')
            for k in range(count):
                efforts = [effort * (k + 1)] * len(joints) if effort != NONE else ()
                position = () if 'torque' in topic else [number + 1e-3 * k] * len(joints)
                stamp = EPOCH + k * STEP
                writer.write(topic, joint_state(stamp, joints, position, (), efforts), stamp)
    return writer.path


CHOICES = [
    # Commands, however many, in the words of column names; also in the plural or as one word.
    ({'/joint_state': (ARM, LIVE, 20), '/joint_cmd': (ARM, LIVE, 100)}, '', 0),
    ({'/arm/jointCommands': (ARM, LIVE, 100), '/arm/state': (ARM, LIVE, 20)}, '', 1),
    (
        {
            '/franka/desired_joint_states': (ARM, LIVE, 50),
            '/franka/external_joint_loads': (ARM, LIVE, 50),
            '/franka/measured_joint_states': (ARM, LIVE, 50),
        },
        '',
        2,
    ),
    (
        {'/external_wrench/joint_states': (ARM, LIVE, 9), '/lbr/joint_states': (ARM, LIVE, 5)},
        '',
        1,
    ),
    # A gripper is no arm, by its joints or by their number.
    (
        {'/gripper/joint_states': (GRIPPER, LIVE, 100), '/arm/joint_states': (ARM, LIVE, 20)},
        urdf(*ARM),
        1,
    ),
    ({'/gripper/joint_states': (GRIPPER, LIVE, 100), '/arm/joint_states': (ARM, LIVE, 20)}, '', 1),
    ({'/joint_states': (GRIPPER, LIVE, 100), '/arm/joint_states': (ARM, LIVE, 20)}, urdf(*ARM), 1),
    # A publisher without sensors does not hide one with them.
    ({'/joint_states': (ALL, NONE, 100), '/iiwa/joint_states': (ARM, LIVE, 20)}, urdf(*ALL), 1),
    ({'/joint_states': (ALL, ZERO, 100), '/iiwa/joint_states': (ARM, LIVE, 20)}, '', 1),
    # Efforts alone are no joint states.
    ({'/torque/joint_states': (ARM, LIVE, 100), '/x': (ARM, LIVE, 20)}, '', 1),
    # All else equal, the usual name, then the fuller one; joints of nobody say nothing.
    ({'/x': (ARM, LIVE, 100), '/joint_states': (ARM, LIVE, 20)}, urdf('other'), 1),
    ({'/x': (ARM, LIVE, 100), '/y/joint_states': (ARM, LIVE, 20)}, '', 1),
    ({'/x/joint_states': (ARM, LIVE, 20), '/y/joint_states': (ARM, LIVE, 100)}, '', 1),
    ({'/x/joint_states': (ARM, LIVE, 20), '/y/joint_states': ((), LIVE, 100)}, '', 0),
]


@pytest.mark.parametrize(('topics', 'description', 'expected'), CHOICES)
@pytest.mark.parametrize('recorded', [False, True])
def test_measured_states_of_the_robot_are_read(tmp_path, topics, description, expected, recorded):
    path = bag(tmp_path, topics, description if recorded else '')
    recording = open_recording(path, options=ReadOptions(urdf='' if recorded else description))
    assert recording.position[0, 0] == expected
    (note,) = select(recording.notes, 'topic_chosen')
    assert note.values['topic'] == list(topics)[expected]


def test_joints_that_are_asked_for_choose_the_topic(tmp_path):
    topics = {'/gripper/joint_states': (GRIPPER, LIVE, 20), '/joint_states': (ARM, LIVE, 100)}
    path = bag(tmp_path, topics)
    assert open_recording(path).joints == ARM
    assert open_recording(path, GRIPPER).joints == GRIPPER
    assert open_recording(path, GRIPPER, max_samples=5).joints == GRIPPER
    assert open_recording(path, options=ReadOptions(joints=GRIPPER)).joints == GRIPPER


def test_the_choice_is_told_by_everything_that_reads(tmp_path):
    topics = {'/joint_state': (ARM, LIVE, 200), '/joint_cmd': (ARM, LIVE, 300)}
    path = bag(tmp_path, topics)
    for notes in (summarise(path).notes, open_recording(path, max_samples=50).notes):
        (note,) = select(notes, 'topic_chosen')
        assert '/joint_cmd' in note.values['others']


def test_efforts_on_a_topic_of_their_own_do_not_choose_the_positions(tmp_path):
    topics = {'/joint_states': (ARM, NONE, 20), '/drives': (ARM, LIVE, 20)}
    path = bag(tmp_path, topics)
    assert open_recording(path).position[0, 0] == 1
    recording = open_recording(path, options=ReadOptions(effort_topic='/drives'))
    assert recording.position[0, 0] == 0
    assert recording.effort[0, 0] == LIVE
