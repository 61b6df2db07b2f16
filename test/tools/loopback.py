"""Fast DDS over UDP on this machine alone, for many processes side by side."""

from pathlib import Path

# With the range LOCALHOST, rmw_fastrtps takes shared memory, whatever it is told, with ports that
# all domains share: with many sessions side by side some nodes may never be found then.
LOOPBACK = {
    'FASTRTPS_DEFAULT_PROFILES_FILE': str(Path(__file__).with_name('loopback.xml')),
    'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT',
}
