"""Recordings of the robots of `config/` by MuJoCo's dynamics, clean or with one thing wrong."""

from collections.abc import Callable
import dataclasses
from functools import lru_cache

from common import configured
import mujoco
import numpy as np

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.signals.recording import Recording
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import PayloadSettings, per_joint, SimulationSettings

RATE, SECONDS, HARMONICS = 200.0, 30.0, 5
TIME = np.arange(round(SECONDS * RATE)) / RATE
# Share of the room between the limits of positions, speeds and accelerations that is used.
ROOM = np.array([0.8, 0.6, 0.6])
WIDEST = 1.2  # motion to either side [rad or m]
PAYLOAD = 0.15  # over the mass of all links


@dataclasses.dataclass(frozen=True)
class Plant:
    """A robot of `config/`, its settings and its true dynamics."""

    robot: Robot
    identification: IdentificationSettings
    simulation: SimulationSettings
    physics: Physics
    loaded: Physics


@dataclasses.dataclass(frozen=True)
class Run:
    """Time (N,), motion and torques (N, n) of one run, by cause, and who breaks what."""

    plant: Plant
    time: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    rigid: np.ndarray
    loaded: np.ndarray
    viscous: np.ndarray
    dry: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    joint: int

    @property
    def late(self) -> np.ndarray:
        """Where the second half is, (N,)."""
        return self.time >= self.time[-1] / 2.0

    @property
    def clean(self) -> np.ndarray:
        """The torque without anything wrong."""
        return self.rigid + self.viscous + self.dry + self.offset

    def scaled(self, factor: np.ndarray | float) -> np.ndarray:
        """Return factors (N, n) that are one but for the joint."""
        result = np.ones_like(self.q)
        result[:, self.joint] = factor
        return result


@lru_cache
def plant(name: str) -> Plant:
    """Build a robot."""
    configuration, robot = configured(name)
    settings = configuration.simulation
    links = Physics(robot.urdf, settings, robot.joints).true_parameters()
    mass = sum(link.values.get('M', 0.0) for link in links)
    loaded = dataclasses.replace(
        settings, payload=PayloadSettings(mass=PAYLOAD * mass, com=(0.05, 0.0, 0.1))
    )
    physics = [Physics(robot.urdf, each, robot.joints) for each in (settings, loaded)]
    return Plant(robot, configuration.identification, settings, *physics)


def run(name: str, seed: int) -> Run:
    """Let a robot run along sums of sines, periodic ones with every second seed."""
    chosen, rng = plant(name), np.random.default_rng(seed)
    motion = sines(chosen.robot, chosen.simulation, TIME, rng, periodic=seed % 2 == 0)
    return run_along(chosen, TIME, motion, rng)


def run_along(
    chosen: Plant, time: np.ndarray, motion: tuple[np.ndarray, ...], rng: np.random.Generator
) -> Run:
    """Let a robot run along q, dq, ddq (N, n)."""
    (q, dq, ddq), robot = motion, chosen.robot
    rigid, loaded = (
        rigid_torque(physics, robot, q, dq, ddq) for physics in (chosen.physics, chosen.loaded)
    )
    viscous, dry, offset = _friction(chosen.physics, robot, dq)
    for ratios, inertia, damping, coulomb in chosen.physics.drives.motors:
        turn = np.array(ratios)
        rigid, loaded = (x + np.outer(inertia * (ddq @ turn), turn) for x in (rigid, loaded))
        viscous = viscous + np.outer(damping * (dq @ turn), turn)
        dry = dry + np.outer(coulomb * np.sign(dq @ turn), turn)
    noise = chosen.simulation.noise
    level, blur = (per_joint(x, robot.n, 'noise') for x in (noise.effort, noise.position))
    return Run(
        chosen, time, q + np.array(blur) * rng.normal(size=q.shape), dq, rigid, loaded, viscous,
        dry, offset, np.array(level) * rng.normal(size=q.shape), int(rng.integers(robot.n)),
    )  # fmt: skip


def recording(run: Run, effort: np.ndarray, time: np.ndarray | None = None) -> Recording:
    """Return what is recorded of efforts, noise included."""
    return Recording(run.plant.robot.joints, run.time if time is None else time, run.q, effort)


def sines(robot, settings, time, rng, *, periodic) -> tuple[np.ndarray, ...]:
    """Return q, dq, ddq (N, n) of sums of sines, as large as the limits allow."""
    base = 0.1 * (1.0 if periodic else rng.uniform(0.9, 1.1))
    factor = np.ones(HARMONICS) if periodic else rng.uniform(0.9, 1.1, HARMONICS)
    w = 2.0 * np.pi * base * np.arange(1, HARMONICS + 1) * factor
    a, b = rng.normal(size=(2, HARMONICS, robot.n)) / np.arange(1, HARMONICS + 1)[:, None]
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, dq, ddq = s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
    start = np.array(settings.initial_positions or np.zeros(robot.n))
    limits = robot.limits
    room = np.minimum(np.minimum(start - limits.lower, limits.upper - start), WIDEST)
    room = np.where(room > 0.05, room, 0.3)
    most = (room, limits.velocity, limits.acceleration)
    scale = min_over(
        ROOM[k] * np.where(np.isfinite(most[k]), most[k], np.inf) / np.abs(x).max(axis=0)
        for k, x in enumerate((q, dq, ddq))
    )
    return start + scale * q, scale * dq, scale * ddq


def min_over(rows) -> np.ndarray:
    """Return the least of several arrays, element by element."""
    return np.min(np.stack(list(rows)), axis=0)


def _places(physics: Physics, robot: Robot) -> list[int]:
    return [int(physics.model.joint(name).dofadr[0]) for name in robot.joints]


def rigid_torque(physics: Physics, robot: Robot, q, dq, ddq) -> np.ndarray:
    """Return torques (N, n) of links and rotors, by MuJoCo."""
    model, data, places = physics.model, physics.data, _places(physics, robot)
    result, torque = np.empty_like(q), np.empty(model.nv)
    for k in range(len(q)):
        data.qpos[places], data.qvel[places], data.qacc[places] = q[k], dq[k], ddq[k]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_rne(model, data, 1, torque)
        result[k] = torque[places]
    names = [body.joint.name for body in physics.bodies]
    rotors = [physics.drives.rotor_inertia[names.index(joint)] for joint in robot.joints]
    return result + ddq * rotors


def _friction(physics: Physics, robot: Robot, dq) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return viscous and dry friction and offset, (N, n)."""
    names, drives = [body.joint.name for body in physics.bodies], physics.drives
    order = [names.index(joint) for joint in robot.joints]
    viscous, coulomb, static, stribeck, offset = (
        np.array(x)[order]
        for x in (
            drives.viscous, drives.coulomb, drives.static, drives.stribeck_velocity, drives.offset
        )
    )  # fmt: skip
    dry = (coulomb + static * np.exp(-((dq / stribeck) ** 2))) * np.sign(dq)
    return viscous * dq, dry, np.broadcast_to(offset, dq.shape)


def _friction_drops(run: Run) -> Recording:
    factor = run.scaled(np.where(run.late, 0.6, 1.0))
    return recording(run, run.rigid + run.offset + factor * (run.viscous + run.dry) + run.noise)


def _warms_up(run: Run) -> Recording:
    factor = run.scaled(1.0 - 0.2 * run.time / run.time[-1])
    return recording(run, run.rigid + run.offset + factor * (run.viscous + run.dry) + run.noise)


def _payload(run: Run) -> Recording:
    rigid = np.where(run.late[:, None], run.loaded, run.rigid)
    return recording(run, run.clean - run.rigid + rigid + run.noise)


def _gain(run: Run) -> Recording:
    factor = run.scaled(np.where(run.late, 1.3, 1.0))
    return recording(run, factor * (run.clean + run.noise))


def _unit(run: Run) -> Recording:
    return recording(run, run.scaled(1000.0) * (run.clean + run.noise))


def _saturates(run: Run) -> Recording:
    """Cut the efforts of a joint at 70 % of their largest, before the noise."""
    effort = run.clean.copy()
    own = effort[:, run.joint]
    limit = 0.7 * np.abs(own).max()
    effort[:, run.joint] = np.clip(own, -limit, limit)
    return recording(run, effort + run.noise)


def _spring(run: Run) -> Recording:
    effort, own = run.clean.copy(), run.q[:, run.joint]
    size = np.sqrt(np.mean(effort[:, run.joint] ** 2))
    effort[:, run.joint] += size * (own - own.mean()) / own.std()
    return recording(run, effort + run.noise)


def _coupled(run: Run) -> Recording:
    """Add friction that goes with the speed of the joint before."""
    effort = run.clean.copy()
    other = np.gradient(run.q[:, run.joint - 1], 1.0 / RATE)
    size = np.sqrt(np.mean(effort[:, run.joint] ** 2))
    effort[:, run.joint] += 0.4 * size * np.sign(np.convolve(other, np.ones(9), 'same'))
    return recording(run, effort + run.noise)


def _swapped(run: Run) -> Recording:
    """Exchange the efforts of a joint and the one before."""
    effort = run.clean + run.noise
    pair = [run.joint, run.joint - 1]
    effort[:, pair] = effort[:, pair[::-1]]
    return recording(run, effort)


def _joints_exchanged(run: Run) -> Recording:
    """Exchange positions and efforts of a joint and the one before."""
    order = np.arange(run.plant.robot.n)
    order[[run.joint, run.joint - 1]] = run.joint - 1, run.joint
    whole = _swapped(run)
    return dataclasses.replace(whole, position=whole.position[:, order])


def _turned(run: Run) -> Recording:
    """Let positions and efforts of a joint count the other way."""
    whole = _reversed(run)
    return dataclasses.replace(whole, position=run.scaled(-1.0) * whole.position)


def _constant_gain(run: Run) -> Recording:
    return recording(run, run.scaled(1.35) * (run.clean + run.noise))


def _reversed(run: Run) -> Recording:
    return recording(run, run.scaled(-1.0) * (run.clean + run.noise))


def _friction_jumps(run: Run) -> Recording:
    """Let the dry friction of a joint rise by half of its torque 1.5 s after the start."""
    effort, own = run.clean.copy(), np.sign(run.dq[:, run.joint])
    size = 0.5 * np.sqrt(np.mean(effort[:, run.joint] ** 2))
    effort[:, run.joint] += size * own * (run.time > 1.5)
    return recording(run, effort + run.noise)


def _scaled(run: Run) -> Recording:
    """Record the positions of a joint 1.5 times as large."""
    whole = clean(run)
    return dataclasses.replace(whole, position=run.scaled(1.5) * whole.position)


def _freezes(run: Run) -> Recording:
    """Let the position of a joint stay as it is from the middle on."""
    whole, position = clean(run), run.q.copy()
    position[run.late, run.joint] = position[run.late][0, run.joint]
    return dataclasses.replace(whole, position=position)


def _pushed(run: Run) -> Recording:
    """Push a joint for 1.5 s, by twice what its torque varies."""
    effort, own = run.clean + run.noise, run.clean[:, run.joint]
    effort[:, run.joint] += 2.0 * own.std() * ((run.time > 12.0) & (run.time < 13.5))
    return recording(run, effort)


# Findings of efforts that have another scale.
EFFORTS = (
    *('effort_gain', 'effort_scale', 'effort_unit', 'beyond_effort_limit'),
    'implausible_inertia',
)
# What goes wrong, and the names of findings that tell it.
DISTURBANCES: dict[str, tuple[Callable[[Run], Recording], tuple[str, ...]]] = {
    'friction -40 % from the middle': (_friction_drops, ('friction_changed', 'friction_jump')),
    'friction -20 % while warming up': (_warms_up, ('friction_changed', 'friction_jump')),
    'payload of 15 % from the middle': (_payload, ('load_changed',)),
    'effort x 1.3 from the middle': (_gain, ('effort_changed', *EFFORTS)),
    'effort x 1000': (_unit, EFFORTS),
    'noisy saturation at 70 %': (_saturates, ('effort_saturation',)),
    'spring at a joint': (_spring, ('unexplained_spring',)),
    'friction with another joint': (_coupled, ('unexplained_coupling',)),
    'effort with the opposite sign': (_reversed, ('effort_sign',)),
    'efforts of two joints exchanged': (_swapped, ('efforts_swapped',)),
    'joints exchanged': (_joints_exchanged, ('joints_exchanged',)),
    'joint the other way round': (_turned, ('axis_reversed',)),
    'position x 1.5': (_scaled, ('position_unit',)),
    'position frozen from the middle': (_freezes, ('standstill_contradicted',)),
    'push of 1.5 s': (_pushed, ('unexplained_span',)),
    'effort x 1.35': (_constant_gain, ('effort_gain', 'effort_scale', 'effort_unit')),
    'friction jumps 1.5 s after the start': (
        _friction_jumps,
        ('friction_jump', 'friction_changed'),
    ),
}


# Those that only a large residual shows.
OF_RESIDUAL = (
    'spring at a joint', 'friction with another joint', 'joints exchanged',
    'joint the other way round', 'position frozen from the middle', 'position x 1.5',
)  # fmt: skip


# Those that make no difference to a joint alone.
OF_SEVERAL = (
    'friction with another joint', 'efforts of two joints exchanged', 'effort x 1.35',
    'joints exchanged', 'joint the other way round', 'position x 1.5',
    'position frozen from the middle',
)  # fmt: skip


def clean(run: Run) -> Recording:
    """Return a recording with nothing wrong."""
    return recording(run, run.clean + run.noise)
