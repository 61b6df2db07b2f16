"""Servo arms in MuJoCo, an engine of its own: what it records is the oracle of `commanded`."""

import dataclasses
import json

import mujoco
import numpy as np

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.signals.recording import Recording, Reference

# Upper arm and forearm, pitching; or a leg: hip roll, hip pitch, knee.
ARM = (
    ('shoulder', 'world', (0, 0, 0.1), '0 1 0', 0.35, (0.01, 0.0, 0.06), (9e-4, 8e-4, 2e-4)),
    ('elbow', 'shoulder', (0, 0, 0.14), '0 1 0', 0.22, (0.0, 0.005, 0.05), (4e-4, 4e-4, 9e-5)),
)
LEG = (
    ('hip', 'world', (0.2, 0.05, 0.4), '1 0 0', 0.7, (0.0, 0.02, 0.0), (5e-4, 6e-4, 6e-4)),
    ('thigh', 'hip', (0.0, 0.08, 0.0), '0 1 0', 1.0, (0.0, 0.0, -0.05), (6e-3, 6e-3, 1e-3)),
    ('calf', 'thigh', (0.0, 0.0, -0.2), '0 1 0', 0.25, (0.0, 0.0, -0.11), (3e-3, 3e-3, 5e-5)),
)


def urdf(chain, inertials=True):
    """Return the description of a chain."""
    links, joints = '', ''
    for name, parent, place, axis, mass, com, moments in chain:
        ixx, iyy, izz = moments
        inertial = (
            f'<inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{mass}"/>'
            f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial>'
        )
        links += f'<link name="{name}_link">{inertial if inertials else ""}</link>'
        mother = 'world' if parent == 'world' else f'{parent}_link'
        joints += (
            f'<joint name="{name}" type="revolute"><parent link="{mother}"/>'
            f'<child link="{name}_link"/><origin xyz="{place[0]} {place[1]} {place[2]}"/>'
            f'<axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="20" effort="50"/></joint>'
        )
    return f'<robot name="servo_arm"><link name="world"/>{links}{joints}</robot>'


def mjcf(chain, truth, added=None):
    """Return the plant; `truth` is {joint: kp, kv, armature, frictionloss, limit}."""
    ends, body = '', ''
    for name, _, place, axis, mass, com, moments in chain:
        own = truth[name]

        def spread(x):
            return ' '.join(map(str, x))

        body += (
            f'<body name="{name}_link" pos="{spread(place)}"><joint name="{name}" axis="{axis}" '
            f'armature="{own["armature"]}" frictionloss="{own["Fc"]}" '
            'solreffriction="0.002 1" solimpfriction="0.9999 0.9999 0.001 0.5 2"/>'
            f'<inertial pos="{spread(com)}" mass="{mass}" diaginertia="{spread(moments)}"/>'
        )
        if added and added[0] == name:
            body += (
                f'<body pos="{spread(added[2])}"><inertial pos="0 0 0" mass="{added[1]}" '
                'diaginertia="1e-9 1e-9 1e-9"/></body>'
            )
        ends += '</body>'
    servos = ''.join(
        f'<position name="{name}" joint="{name}" kp="{own["stiffness"]}" kv="{own["damping"]}"'
        + (f' forcerange="-{own["limit"]} {own["limit"]}"' if 'limit' in own else '')
        + '/>'
        for name, own in truth.items()
    )
    return (
        '<mujoco><option timestep="0.001" integrator="RK4"/><compiler angle="radian" '
        f'inertiafromgeom="false"/><worldbody>{body}{ends}</worldbody>'
        f'<actuator>{servos}</actuator></mujoco>'
    )


def motion(time, joints, seed, amplitude, steps=True):
    """Return commands (K, n): sums of sines, and steps now and then."""
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(joints):
        f, phase = rng.uniform(0.1, 1.3, 5), rng.uniform(0, 2 * np.pi, 5)
        parts = zip(f, phase, strict=True)
        wave = sum(np.sin(2 * np.pi * a * time + b) / (1 + 2 * a) for a, b in parts)
        jumps = rng.uniform(-1, 1, int(time[-1] / 1.7) + 2)[(time / 1.7).astype(int)]
        columns.append(amplitude * (wave + (0.5 * jumps if steps else 0.0)))
    return np.column_stack(columns)


def record(chain, truth, commands, rate, delay, noise=2e-4, seed=0, added=None, torque=None):
    """Return a recording of commands (K, n) that are held, each `delay` [s] late."""
    model = mujoco.MjModel.from_xml_string(mjcf(chain, truth, added))
    data = mujoco.MjData(model)
    per, rng = round(1 / (rate * model.opt.timestep)), np.random.default_rng(seed)
    late = round(delay / model.opt.timestep)
    bias = np.array([own.get('bias', 0.0) for own in truth.values()])
    data.qpos[:] = commands[0]
    for _ in range(2000):
        data.ctrl[:] = commands[0] + bias
        mujoco.mj_step(model, data)
    measured = np.empty_like(commands)
    for k in range(len(commands)):
        measured[k] = data.qpos
        for i in range(per):
            data.ctrl[:] = commands[max(0, (k * per + i - late) // per)] + bias
            if torque is not None:
                data.qfrc_applied[:] = torque(data)
            mujoco.mj_step(model, data)
    time = np.arange(len(commands)) / rate
    nothing = np.full(commands.shape, np.nan)
    return Recording(
        joints=tuple(truth), time=time, source='plant',
        position=measured + noise * rng.standard_normal(measured.shape), effort=nothing,
        reference=Reference(time, commands, nothing, nothing),
    )  # fmt: skip


def save_lerobot(folder, recording, prefix=''):
    """Write a recording as a data set of LeRobot v3.0 in degrees, without efforts."""
    import pyarrow
    import pyarrow.parquet

    (folder / 'meta').mkdir(parents=True)
    (folder / 'data/chunk-000').mkdir(parents=True)
    names = [f'{prefix}{joint}.pos' for joint in recording.joints]
    feature = {'dtype': 'float32', 'shape': [len(names)], 'names': names}
    features = {'action': feature, 'observation.state': feature}
    fps = round(1.0 / np.median(np.diff(recording.time)))
    info = {'codebase_version': 'v3.0', 'fps': fps, 'features': features}
    (folder / 'meta/info.json').write_text(json.dumps(info))
    columns = {
        'action': [*np.rad2deg(recording.reference.q).astype(np.float32)],
        'observation.state': [*np.rad2deg(recording.position).astype(np.float32)],
        'timestamp': recording.time.astype(np.float32),
        'episode_index': np.zeros(len(recording.time), int),
    }
    path = folder / 'data/chunk-000/file-000.parquet'
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return folder


SETTINGS = RobotSettings(
    friction={'default': ('viscous', 'coulomb', 'offset')}, effort_kind='joint_torque'
)


def robot(chain, friction=('viscous', 'coulomb', 'offset'), **settings):
    """Build the robot of a chain."""
    changed = dataclasses.replace(SETTINGS, friction={'default': friction}, **settings)
    return build_robot(urdf(chain), changed)
