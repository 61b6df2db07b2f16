"""Fast DDS over UDP on this machine alone, for many processes side by side."""

from pathlib import Path

from robotid_ros.nodes.common import processes
from robotid_ros.nodes.demo.node_processes import ros_environment

# With the range LOCALHOST, rmw_fastrtps takes shared memory, whatever it is told, with ports that
# all domains share: with many sessions side by side some nodes may never be found then.
LOOPBACK = {
    'FASTRTPS_DEFAULT_PROFILES_FILE': str(Path(processes.__file__).with_name('loopback.xml')),
    'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT',
}


def loopback_environment(domain: int) -> dict[str, str]:
    """Variables for processes on a domain of their own; Fast DDS reads them once in each."""
    return {**ros_environment(domain), **LOOPBACK}
