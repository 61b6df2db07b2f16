"""The robots of the pip package example-robot-data, or of a folder that is laid out like it."""

from importlib import metadata
from pathlib import Path

PACKAGE = 'example-robot-data'
ROBOTS = 'cmeel.prefix/share/example-robot-data/robots'
# Arms by name.
ARMS = {
    'panda': 'panda_description/urdf/panda.urdf',
    'ur3': 'ur_description/urdf/ur3_robot.urdf',
    'ur5': 'ur_description/urdf/ur5_robot.urdf',
    'ur10': 'ur_description/urdf/ur10_robot.urdf',
    'kinova': 'kinova_description/robots/kinova.urdf',
    'xarm7': 'xarm_description/urdf/xarm7.urdf',
    'z1': 'z1_description/urdf/z1.urdf',
    'so100': 'so_arm_description/urdf/so100.urdf',
    'so101': 'so_arm_description/urdf/so101.urdf',
    'two_joints': 'asr_twodof_description/urdf/TwoDofs.urdf',
    'leg': 'go2_description/urdf/go2.urdf',
    'humanoid': 'g1_description/urdf/g1_29dof_rev_1_0.urdf',
    'tiago': 'tiago_description/robots/tiago_no_hand.urdf',
    'talos': 'talos_data/robots/talos_left_arm.urdf',
    'romeo': 'romeo_description/urdf/romeo_small.urdf',
    'baxter': 'baxter_description/urdf/baxter.urdf',
}


def robots_folder(given: Path | None = None) -> Path | None:
    """Return the folder of the robots, None where there is none."""
    if given is not None:
        return given
    try:
        return Path(str(metadata.distribution(PACKAGE).locate_file(ROBOTS)))
    except metadata.PackageNotFoundError:
        return None
