"""Nodes start quickly: what takes long to import is imported where it is used."""

import subprocess
import sys

SCRIPT = """
import sys
import robotid_ros.nodes.recorder.recorder_node
assert not {'pinocchio', 'scipy'} & sys.modules.keys()
import robotid_ros.nodes.excitation.excitation_node
import robotid_ros.nodes.identification.identification_node
import robotid_ros.nodes.simulated_robot.simulated_robot_node
assert 'scipy' not in sys.modules
"""


def test_nodes_of_a_session_start_without_scipy_and_the_recorder_without_pinocchio():
    subprocess.run([sys.executable, '-c', SCRIPT], check=True)
