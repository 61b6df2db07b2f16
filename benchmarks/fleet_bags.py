"""
Bags of a simulated fleet: MuJoCo's inverse dynamics along sums of sines, with friction and noise.

Nothing of the identified model is used. Each robot draws its own links, friction and offsets, each
session its motion and noise.
"""

import csv
import dataclasses
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path

from common import ROOT
from messages import header, JOINT_STATE, store
import mujoco
import numpy as np

from robotid_ros.files.bags import BagWriter
from robotid_ros.files.configuration import load
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import PayloadSettings

TYPES = ('scara', 'arm3', 'emps', 'ur10', 'tx40')
ROBOTS, SESSIONS = 8, 5
RATE, SECONDS, PERIOD, HARMONICS = 200.0, 20.0, 10.0, np.arange(1, 6)
START, MONTH = datetime(2025, 1, 6, 8, tzinfo=timezone.utc), timedelta(days=30)
# σ of the shares by which robots differ in links and friction, and sessions in friction.
LINKS, FRICTION, SESSION = 0.003, 0.05, 0.005
# (type, robot, joint) whose friction grows by this share of it with every session.
DRIFTS = (
    *(('scara', 2, 0), ('arm3', 1, 1), ('arm3', 6, 2)),
    *(('emps', 4, 0), ('ur10', 3, 1), ('tx40', 5, 3)),
)
DRIFT = 0.12
# A body that one robot carries [kg], a joint whose efforts are inverted, files that are broken.
PAYLOAD, MASS, SIGN = ('ur10', 6), 2.0, ('tx40', 1, 2)
BROKEN = (('scara', 5, 3), ('arm3', 3, 0), ('tx40', 7, 2))


def robot_name(type_: str, robot: int) -> str:
    """Return the name of a robot."""
    return f'{type_}_{robot}'


class Arm:
    """One robot: MuJoCo's model of it without friction, and the friction of its drives."""

    def __init__(self, type_: str, robot: int):
        self.type, self.robot = type_, robot
        configuration = load(ROOT / 'config' / f'{type_}.yaml')
        settings = self.settings = configuration.simulation
        rng = np.random.default_rng([TYPES.index(type_), robot])
        payload = PayloadSettings()
        if (type_, robot) == PAYLOAD:
            payload = PayloadSettings(mass=MASS, com=(0.0, 0.0, 0.08))
        changed = dataclasses.replace(
            settings, inertial_error=LINKS, seed=100 + robot, payload=payload
        )
        joints = configuration.robot.joints
        self.physics = Physics(Path(configuration.robot.urdf).read_text(), changed, joints)
        model, self.joints = self.physics.model, self.physics.joints
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
        for values in (model.dof_damping, model.dof_frictionloss):
            values[:] = 0.0
        for values in (model.tendon_damping, model.tendon_frictionloss):
            values[:] = 0.0
        n, coupling = len(self.joints), settings.coupling
        # Rows of drives: one a joint, then motors that several joints turn.
        self.turns = np.vstack([np.eye(n), np.reshape(coupling.matrix, (-1, n))])
        own = np.exp(FRICTION * rng.normal(size=(2, len(self.turns))))
        self.viscous = own[0] * [*settings.viscous, *coupling.Fv]
        self.coulomb = own[1] * [*settings.coulomb, *coupling.Fc]
        self.offset = np.resize(settings.offset or (0.0,), n) * (1 + FRICTION * rng.normal(size=n))
        self._limits(configuration.robot)

    def _limits(self, wanted) -> None:
        """Find how far, fast and sharply the joints may move about their start."""
        joints = {body.joint.name: body.joint for body in self.physics.bodies}
        own = [joints[name] for name in self.joints]
        self.start = np.resize(self.settings.initial_positions or (0.0,), len(own))
        room = [
            0.8 * min(joint.upper - q, q - joint.lower, 1.0)
            for joint, q in zip(own, self.start, strict=True)
        ]
        speed = wanted.velocity or [joint.velocity for joint in own]
        self.room = np.array(room), 0.7 * np.array(speed), 0.7 * np.array(wanted.acceleration)

    def motion(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return time (N,) and q, dq, ddq (N, n) of a motion that keeps the limits."""
        time = np.arange(round(SECONDS * RATE)) / RATE
        w = 2.0 * np.pi / PERIOD * HARMONICS
        a, b = rng.normal(size=(2, len(w), len(self.joints)))
        s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
        q, dq, ddq = s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
        scale = np.min(
            [r / np.abs(x).max(axis=0) for r, x in zip(self.room, (q, dq, ddq), strict=True)],
            axis=0,
        )
        return time, self.start + scale * q, scale * dq, scale * ddq

    def record(self, session: int) -> tuple[np.ndarray, ...]:
        """Return time (N,), measured positions and efforts (N, n)."""
        rng = np.random.default_rng([TYPES.index(self.type), self.robot, session, 7])
        time, q, dq, ddq = self.motion(rng)
        data, rows = self.physics.data, []
        for state in zip(q, dq, ddq, strict=True):
            data.qpos[:], data.qvel[:], data.qacc[:] = state
            mujoco.mj_inverse(self.physics.model, data)
            rows.append(data.qfrc_inverse.copy())
        worn = np.ones(len(self.turns))
        for type_, robot, joint in DRIFTS:
            if (type_, robot) == (self.type, self.robot):
                worn[joint] += DRIFT * session
        viscous, coulomb = worn * np.exp(SESSION * rng.normal(size=(2, len(worn))))
        speed = dq @ self.turns.T
        friction = viscous * self.viscous * speed + coulomb * self.coulomb * np.sign(speed)
        effort = np.array(rows) + friction @ self.turns + self.offset
        noise = self.settings.noise
        effort += np.resize(noise.effort, len(self.joints)) * rng.normal(size=effort.shape)
        q = q + np.resize(noise.position, len(self.joints)) * rng.normal(size=q.shape)
        if (self.type, self.robot) == SIGN[:2]:
            effort[:, SIGN[2]] *= -1.0
        return time, q, effort


def joint_states(joints, stamps: np.ndarray, q: np.ndarray, effort: np.ndarray) -> list[bytes]:
    """Serialize joint states without velocities: one by rosbags, whose numbers are replaced."""
    marks = 1.5 + np.arange(2 * len(joints))
    message = store().types[JOINT_STATE](
        header(0), list(joints), marks[: len(joints)], np.zeros(0), marks[len(joints) :]
    )
    template = bytes(store().serialize_cdr(message, JOINT_STATE))
    content = np.tile(np.frombuffer(template, np.uint8), (len(stamps), 1))
    seconds, rest = stamps // 10**9, stamps % 10**9
    content[:, 4:8] = seconds.astype('<i4')[:, None].view(np.uint8)
    content[:, 8:12] = rest.astype('<u4')[:, None].view(np.uint8)
    for mark, column in zip(marks, np.hstack([q, effort]).T, strict=True):
        place = template.index(np.float64(mark).tobytes())
        values = np.ascontiguousarray(column)[:, None].view(np.uint8)
        content[:, place : place + 8] = values
    return [row.tobytes() for row in content]


def write_robot(folder: Path, type_: str, robot: int) -> list[dict[str, object]]:
    """Write the sessions of a robot; return their rows of the manifest."""
    arm, rows = Arm(type_, robot), []
    name = robot_name(type_, robot)
    for session in range(SESSIONS):
        time, q, effort = arm.record(session)
        when = START + session * MONTH + timedelta(hours=robot)
        stamps = round(when.timestamp()) * 10**9 + np.round(time * 1e9).astype(np.int64)
        with BagWriter(folder / name, f'session_{session}', flush_period=60.0) as writer:
            writer.add_topic('/joint_states', JOINT_STATE)
            messages = joint_states(arm.joints, stamps, q, effort)
            for stamp, data in zip(stamps.tolist(), messages, strict=True):
                writer.write('/joint_states', data, stamp)
        if (type_, robot, session) in BROKEN:
            break_file(writer.path, BROKEN.index((type_, robot, session)))
        row = {'source': f'{name}/{writer.path.name}', 'robot': name, 'type': type_}
        rows.append({**row, 'time': when.isoformat()})
    return rows


def break_file(bag: Path, kind: int) -> None:
    """Leave nothing of a bag, noise, or its start without any message."""
    (file,) = bag.glob('*.mcap')
    noise = np.random.default_rng(0).bytes(100_000)
    file.write_bytes((b'', noise, file.read_bytes()[:600])[kind])


def write_fleet(folder: Path, types=TYPES, processes: int = 2) -> Path:
    """Write the bags of all robots, and return their manifest."""
    arms = [(folder, type_, robot) for type_ in types for robot in range(ROBOTS)]
    with get_context('spawn').Pool(processes) as pool:
        rows = [row for rows in pool.starmap(write_robot, arms, chunksize=1) for row in rows]
    manifest = folder / 'manifest.csv'
    with manifest.open('w', newline='') as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return manifest
