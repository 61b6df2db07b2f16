"""What is followed: friction and offset of every drive, and what the last link carries."""

import numpy as np

from robotid_ros.core.model import build_robot, regressor, RobotSettings
from robotid_ros.core.model.settings import CoupledMotorSettings
from robotid_ros.core.monitoring.change_tests import follow, FRICTION

from ..conftest import URDF


def test_drives_offsets_and_the_load_are_followed():
    friction = {'default': ('viscous', 'coulomb', 'offset'), 'j2': ('stiction', 'spring')}
    wrist = {'wrist': CoupledMotorSettings(ratios=(0.0, 1.0, 1.0))}
    robot = build_robot(URDF, RobotSettings(friction=friction, couplings=wrist))
    followed = follow(robot, robot.prior + 0.1)
    names = {
        (group.kind, group.name): [followed.names[k] for k in group.members]
        for group in followed.groups
    }
    assert names == {
        ('friction', 'j1'): ['Fv1', 'Fc1'],
        ('offset', 'j1'): ['off1'],
        ('friction', 'j2'): ['Fs2', 'Fsc2'],
        ('payload', 'j3'): ['M3', 'MX3', 'MY3', 'MZ3'],
        ('friction', 'j3'): ['Fv3', 'Fc3'],
        ('offset', 'j3'): ['off3'],
        ('friction', 'wrist'): ['Fv23', 'Fc23'],
    }
    joints = {group.name: group.joints for group in followed.groups if group.kind == 'friction'}
    assert joints == {'j1': (0,), 'j2': (1,), 'j3': (2,), 'wrist': (1, 2)}
    assert [robot.parameters[k].name for k in followed.columns] == list(followed.names)


def test_a_change_of_the_scale_is_a_share_of_ordinary_torque(robot, truth):
    followed = follow(robot, truth)
    rng = np.random.default_rng(3)
    # A fifth of the limits of speed, 10 rad/s.
    q, dq = rng.uniform(-3.0, 3.0, (2000, 3)), rng.uniform(-2.0, 2.0, (2000, 3))
    W = regressor(robot, q, dq, rng.uniform(-2.0, 2.0, (2000, 3)))
    followed_torque = W[:, :, followed.columns] * truth[followed.columns]
    for group in followed.groups:
        joints, members = list(group.joints), list(group.members)
        own = followed_torque[:, :, members].sum(axis=2) if group.kind == FRICTION else W @ truth
        change = W[:, :, followed.columns[members]] * followed.scale[members]
        share = rms(change)[joints] / rms(own)[joints][:, None]
        # Where it is noticed first.
        assert (share.max(axis=0) > 0.2).all() and (share.max(axis=0) < 1.1).all(), group


def rms(torque):
    return np.sqrt(np.mean(torque**2, axis=1))
