"""Bags whose efforts are velocities are refused as soon as they are inspected."""

import numpy as np

from robotid_ros.files.bags.summary import check_identifiable
from robotid_ros.files.formats.joint_table import JointTable

from ..formats.strange import DQ, JOINTS, Q, TAU, TIME


def states(effort):
    stamp = (TIME * 1e9).round().astype(np.int64) + 10**18
    return JointTable(JOINTS, stamp, stamp, Q, DQ, effort)


def test_velocities_as_efforts_are_no_identification():
    assert check_identifiable(states(TAU))[1] == ''
    for wrong in (DQ, np.degrees(Q), 100.0 * DQ):
        assert 'no torques' in check_identifiable(states(wrong))[1]
