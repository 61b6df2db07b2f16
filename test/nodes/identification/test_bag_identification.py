"""What the node identifies from a bag, without ROS."""

from bag_tools import EPOCH, joint_state, status, write_mcap
from plant_recording import plant, URDF
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import BagWriter
from robotid_ros.files.configuration import from_mapping
from robotid_ros.nodes.identification.bag_identification import identify_bag
from robotid_ros.nodes.identification.identification_node import find_bag

pytestmark = pytest.mark.usefixtures('without_bokeh')
FINGER = """
<link name="finger"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="link_3"/><child link="finger"/>
<limit lower="0.01" upper="0.04" effort="9" velocity="1"/></joint>
</robot>"""


def test_joints_that_the_log_lacks_are_locked_and_earlier_results_stay(tmp_path):
    log = plant().recording
    rows = zip(log.time, log.position, log.effort, strict=True)
    bag = write_mcap(
        tmp_path,
        (joint_state(EPOCH + round(t * 1e9), log.joints, q, (), e) for t, q, e in rows),
    )
    urdf = URDF.replace('</robot>', FINGER)
    values = {'identification': {'model': 'plain'}}
    given = str(bag), from_mapping(values), values, urdf, False, lambda _: None
    found = identify_bag(*given)
    assert found.results.joints == log.joints
    (lacking,) = select(found.results.findings, 'joints_not_recorded')
    assert lacking.joints == ('slide',) and lacking.values['positions'] == (0.01,)
    live = build_robot(found.source_urdf, found.robot_settings)
    assert live.joints == log.joints and live.p == len(found.chi)
    # What was found before stays.
    first = (found.folder / 'parameters.yaml').read_bytes()
    again = identify_bag(*given)
    assert again.folder.name == f'{found.folder.name}_2'
    assert (found.folder / 'parameters.yaml').read_bytes() == first


@pytest.mark.parametrize(
    ('states', 'cut'),
    [
        (['exciting'], 'exciting'),
        # All of the excitation is there, and then nobody said how the session ended.
        (['exciting', 'approaching'], 'approaching'),
        (['exciting', 'approaching', 'idle'], 'approaching'),
        (['exciting', 'approaching', 'designing'], 'approaching'),
    ],
)
def test_a_session_that_was_cut_is_identified_only_when_asked_for(states, cut, tmp_path):
    log = plant().recording
    with BagWriter(tmp_path, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus')
        writer.write_text('/robot_description', URDF, EPOCH)
        for k, name in enumerate(states):
            stamp = EPOCH + round(log.time[-1] * (1.0 - 0.5**k) * 1e9)
            values = {'state': name, 'stamp': f'{stamp // 10**9}.{stamp % 10**9:09d}'}
            writer.write('/excitation/state', status(values), stamp)
        for t, q, e in zip(log.time, log.position, log.effort, strict=True):
            stamp = EPOCH + round(t * 1e9)
            state = joint_state(stamp, log.joints, q, (), e)
            writer.write('/joint_states', state, stamp)
    values = {'identification': {'model': 'plain'}}
    given = str(writer.path), from_mapping(values), values, ''
    sentence = f'the session was cut while {cut}'
    with pytest.raises(RecordingError, match=f'{sentence}.*call ~/identify'):
        identify_bag(*given, False, lambda _: None)
    found = identify_bag(*given, True, lambda _: None)
    assert select(found.results.findings, 'session_cut')


def test_only_recordings_below_known_folders_are_found(tmp_path):
    known, other, elsewhere = (tmp_path / name for name in ('known', 'other', 'elsewhere'))
    for folder in (known, other, elsewhere):
        (folder / 'bag').mkdir(parents=True)
    (known / 'link').symlink_to(elsewhere / 'bag')
    (tmp_path / 'alias').symlink_to(known)
    folders = (str(tmp_path / 'alias'), str(other))
    assert find_bag(str(known / 'bag'), folders) == (known / 'bag').resolve()
    assert find_bag(str(tmp_path / 'alias' / 'bag'), folders) == (known / 'bag').resolve()
    assert find_bag(str(other / 'bag'), folders) == (other / 'bag').resolve()
    for name in (
        *(elsewhere / 'bag', known / 'link', known / '..' / 'elsewhere' / 'bag', known, '/'),
        *('', '.', '/dev/zero'),
    ):
        with pytest.raises(RecordingError, match='nothing was read or written'):
            find_bag(str(name), folders)
    for name in ('missing', 'a\0b', 'x' * 100_000, 'a\n\x1b[2Jb'):
        with pytest.raises(RecordingError, match='there is no recording') as caught:
            find_bag(name, folders)
        assert str(caught.value).isprintable() and len(str(caught.value)) < 300
