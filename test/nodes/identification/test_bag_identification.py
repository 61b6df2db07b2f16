"""What the node identifies from a bag, without ROS."""

from bag_tools import EPOCH, joint_state, write_mcap
from plant_recording import plant, URDF

from robotid_ros.core.model import build_robot
from robotid_ros.files.configuration import from_mapping
from robotid_ros.nodes.identification.bag_identification import identify_bag

FINGER = """
<link name="finger"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="link_3"/><child link="finger"/>
<limit lower="0.01" upper="0.04" effort="9" velocity="1"/></joint>
</robot>"""


def test_joints_that_the_log_lacks_are_locked_for_the_live_prediction_too(tmp_path):
    log = plant().recording
    rows = zip(log.time, log.position, log.effort, strict=True)
    bag = write_mcap(
        tmp_path,
        (joint_state(EPOCH + round(t * 1e9), log.joints, q, (), e) for t, q, e in rows),
    )
    urdf = URDF.replace('</robot>', FINGER)
    values = {'identification': {'selection': False}}
    found = identify_bag(str(bag), from_mapping(values), values, urdf, False, lambda _: None)
    assert found.results.joints == log.joints
    assert any('lacks slide at 0.01' in text for text in found.results.warnings)
    live = build_robot(found.source_urdf, found.robot_settings)
    assert live.joints == log.joints and live.p == len(found.standard)
