"""Bags of a small fleet, made by the model itself: a SCARA arm on sums of sines."""

from pathlib import Path

from bag_tools import joint_state
import numpy as np

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.bags import BagWriter

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / 'config' / 'scara.yaml'
EPOCH, DAY = 1_700_000_000, 86_400
RATE = 100.0


def scara():
    """Return the arm and parameters to find again."""
    settings = RobotSettings(friction={'default': ('viscous', 'coulomb')}, rotor_inertia=False)
    robot = build_robot((ROOT / 'urdf' / 'scara.urdf').read_text(), settings)
    chi = np.array(robot.prior)
    for name, value in {'Fv1': 0.6, 'Fc1': 0.8, 'Fv2': 0.3, 'Fc2': 0.25}.items():
        chi[robot.column(name)] = value
    return robot, chi


def sums(seed, seconds, exponent=1.0):
    """Sample sums of sines of k^exponent / 6 Hz, which repeat where it is 1: time, q, dq, ddq."""
    t, rng = np.arange(0.0, seconds, 1.0 / RATE), np.random.default_rng(seed)
    q, dq, ddq = np.zeros((3, t.size, 2))
    for joint in range(2):
        for k in range(1, 5):
            w, phase, a = 2 * np.pi * k**exponent / 6.0, rng.uniform(0, 6.28), 0.9 / k
            q[:, joint] += a * np.sin(w * t + phase)
            dq[:, joint] += a * w * np.cos(w * t + phase)
            ddq[:, joint] -= a * w * w * np.sin(w * t + phase)
    return t, q, dq, ddq


def write_bag(folder, name, *, seed=0, seconds=12.0, day=0, change=(), still=(), exponent=1.0,
              noise=0.01):  # fmt: skip
    """Write a bag; `change` are pairs of a parameter and what is added, joints `still` rest."""
    robot, chi = scara()
    for parameter, value in change:
        chi[robot.column(parameter)] += value
    t, q, dq, ddq = sums(seed, seconds, exponent)
    for motion in (q, dq, ddq):
        motion[:, list(still)] = 0.0
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += noise * np.random.default_rng(seed + 1).normal(size=tau.shape)
    epoch = (EPOCH + day * DAY) * 10**9
    with BagWriter(folder, name, flush_period=60.0) as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        for k in range(t.size):
            stamp = epoch + round(t[k] * 1e9)
            data = joint_state(stamp, robot.joints, q[k], dq[k], tau[k])
            writer.write('/joint_states', data, stamp)
    return writer.path
