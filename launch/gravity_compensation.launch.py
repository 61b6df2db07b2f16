"""An arm that is guided by hand: the node gravity_compensation."""

from launch import LaunchDescription

from robotid_ros.nodes.common.launch_files import model_launch


def generate_launch_description() -> LaunchDescription:
    """Describe the launch."""
    return model_launch('gravity_compensation')
