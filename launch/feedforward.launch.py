"""Goals of MoveIt or anybody with the identified efforts: the node feedforward."""

from launch import LaunchDescription

from robotid_ros.nodes.common.launch_files import model_launch


def generate_launch_description() -> LaunchDescription:
    """Describe the launch."""
    return model_launch('feedforward')
