"""Robots of the excitation benchmark, with the limits that others published figures under."""

from dataclasses import replace
from pathlib import Path
import re
import struct

from common import ROOT
import installed_robots
import numpy as np
import yaml

from robotid_ros.core.model import build_robot, Robot, RobotSettings

PI = float(np.pi)


def ur10(friction: bool = True) -> Robot:
    """Build a UR10 with the limits that the figures of others were reached under."""
    terms = {} if friction else {'friction': {'default': ()}, 'rotor_inertia': False}
    limits = {
        'lower': (-2 * PI, -2 * PI, -PI, -2 * PI, -2 * PI, -2 * PI),
        'upper': (2 * PI, 2 * PI, PI, 2 * PI, 2 * PI, 2 * PI),
        'velocity': (2.094, 2.094, 3.142, 3.142, 3.142, 3.142),
        'acceleration': (12.0,) * 6,
        'jerk': (500.0,) * 6,
        'effort': (330.0, 330.0, 150.0, 56.0, 56.0, 56.0),
    }
    return build_robot((ROOT / 'urdf/ur10.urdf').read_text(), RobotSettings(**limits, **terms))


def arm7() -> Robot:
    """Build a seven-joint arm with the LWR4+'s geometry and limits; links are guessed rods."""
    bound = (2.967, 2.094, 2.967, 2.094, 2.967, 2.094, 2.967)
    speed = (1.92, 1.92, 2.234, 2.234, 3.56, 3.21, 3.21)
    effort = (176.0, 176.0, 100.0, 100.0, 100.0, 38.0, 38.0)
    heights = (0.11, 0.2, 0.2, 0.2, 0.2, 0.19, 0.078)
    axes = ('0 0 1', '0 1 0', '0 0 1', '0 -1 0', '0 0 1', '0 1 0', '0 0 1')
    masses = (2.7, 2.7, 2.7, 2.7, 1.7, 1.6, 0.3)
    parts = ['<robot name="arm7"><link name="link_0"/>']
    for j in range(7):
        height = heights[j + 1] if j < 6 else 0.05
        inertia = masses[j] * (height**2 / 12.0 + 0.002)
        parts.append(
            f'<link name="link_{j + 1}"><inertial><origin xyz="0.01 0.01 {height / 2}"/>'
            f'<mass value="{masses[j]}"/><inertia ixx="{inertia}" iyy="{inertia}" '
            f'izz="{0.004 * masses[j]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint_{j + 1}" type="revolute"><parent link="link_{j}"/>'
            f'<child link="link_{j + 1}"/><origin xyz="0 0 {heights[j]}"/><axis xyz="{axes[j]}"/>'
            f'<limit lower="-{bound[j]}" upper="{bound[j]}" velocity="{speed[j]}" '
            f'effort="{effort[j]}"/></joint>'
        )
    settings = RobotSettings(
        rotor_inertia=False,
        acceleration=tuple(6.0 * v for v in speed),
        jerk=(1000.0,) * 7,
    )
    return build_robot(''.join([*parts, '</robot>']), settings)


def with_meshes(robot: Robot, folder: Path) -> Robot:
    """Return the robot with every cylinder as a mesh of 256 triangles, written to a folder."""

    def mesh(found: re.Match[str]) -> str:
        radius, length = (float(x) for x in re.findall(r'="([\d.]+)"', found[2]))
        path = folder / f'{radius}_{length}.stl'
        path.write_bytes(cylinder(radius, length))
        return f'{found[1]}<mesh filename="file://{path}"/>'

    pattern = r'(<collision>(?:(?!</collision>).)*?)(<cylinder[^>]*/>)'
    return replace(robot, urdf=re.sub(pattern, mesh, robot.urdf, flags=re.DOTALL))


def cylinder(radius: float, length: float, sides: int = 64) -> bytes:
    """Describe a cylinder about z as a binary STL."""
    angle = np.arange(sides + 1) / sides * 2.0 * PI
    low, high = (
        np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(sides + 1, z)], axis=1)
        for z in (-0.5 * length, 0.5 * length)
    )
    faces = []
    for k in range(sides):
        a, b, c, d = low[k], low[k + 1], high[k], high[k + 1]
        faces += [(a, b, d), (a, d, c), (low[0], b, a), (high[0], c, d)]
    rows = (struct.pack('<12fH', 0, 0, 0, *np.concatenate(f), 0) for f in faces)
    return bytes(80) + struct.pack('<I', len(faces)) + b''.join(rows)


# Installed arms: joints by the start of their names, start, ground [m].
ARMS = {
    'panda': ('panda_joint', (0, -0.5, 0, -2, 0, 1.6, 0.8), 0),
    'ur5': ('', (0, -1.2, 1.2, -1.5, -1.5, 0), -0.1),
    'ur10': ('', (0, -1.2, 1.2, -1.5, -1.5, 0), -0.1),
}


def configuration_of(name: str, folder: Path, output: Path) -> Path:
    """Write the configuration of one of `ARMS`: meshes, ground and self-collision, in 1 cm."""
    prefix, start, ground = ARMS[name]
    share = folder.parent
    path = folder / 'robots' / installed_robots.ARMS[name]
    found = re.findall(r'<joint\s+name="([^"]+)"\s+type="revolute"', path.read_text())
    joints = [joint for joint in found if joint.startswith(prefix) and 'finger' not in joint]
    workspace = {'ground': float(ground), 'distance': 0.01, 'mesh_folders': [str(share)]}
    groups = {
        'robot': {'name': name, 'urdf': str(path), 'joints': joints},
        'excitation': {'start': [float(q) for q in start], 'workspace': workspace},
    }
    file = output / f'{name}.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': groups}}))
    return file
