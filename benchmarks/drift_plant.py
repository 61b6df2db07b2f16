"""A robot at work: MuJoCo's dynamics under PD control, from one random pose to the next."""

from collections.abc import Iterator
import dataclasses
from typing import NamedTuple

import numpy as np

from robotid_ros.core.model import Robot
from robotid_ros.plant.physics import Physics, Sensors
from robotid_ros.simulation_settings import PayloadSettings, SimulationSettings

# Rate of physics and control, and of joint states [Hz]; jitter of their stamps [s], share lost.
RATE, STATE_RATE, JITTER, LOST = 500, 125, 1e-3, 0.01
# Poses of a cell within reach of the start [rad], shares of the limits of speed and acceleration
# that its moves use, pauses [s], and how often a joint stays where it is in a move.
POSES, REACH, SPEED, ACCELERATION, PAUSES, STILL = 8, 0.9, (0.2, 0.6), (0.3, 0.7), (0.1, 1.0), 0.2
# A body in the gripper: centre in the last link's frame [m].
CENTRE = (0.0, 0.0, 0.06)


class Batch(NamedTuple):
    """Joint states of some tenths of a second: stamps [ns], positions and efforts (N, n)."""

    stamp: np.ndarray
    position: np.ndarray
    effort: np.ndarray


class Work:
    """
    A robot that moves without end.

    Parameters
    ----------
    robot, settings : of `config/`
    mass : of the body that `carry` attaches [kg]
    seed : of motion and noise

    """

    def __init__(self, robot: Robot, settings: SimulationSettings, mass: float, seed: int):
        settings = dataclasses.replace(settings, update_rate=float(RATE), state_rate=0.0)
        loaded = dataclasses.replace(settings, payload=PayloadSettings(mass=mass, com=CENTRE))
        self.robot, self._random = robot, np.random.default_rng(seed)
        self._bodies = [Physics(robot.urdf, each, robot.joints) for each in (settings, loaded)]
        self.physics = self._bodies[0]
        noise = dataclasses.replace(settings, seed=seed)
        self._sensors = Sensors(noise, self.physics.joint_state_names)
        gains = [settings.gains[joint] for joint in robot.joints]
        self._p, self._d = np.array([g.p for g in gains]), np.array([g.d for g in gains])
        self._effort, self._count = [0.0] * robot.n, 0
        start = np.array(settings.initial_positions)
        low, high = (np.clip(x, -10.0, 10.0) for x in (robot.limits.lower, robot.limits.upper))
        spread = self._random.uniform(-REACH, REACH, (POSES, robot.n))
        self._poses = np.clip(start + spread, low + 0.05, high - 0.05)
        self._pose = start

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._count / RATE

    def carry(self, loaded: bool) -> None:
        """Attach the body, or leave it."""
        old, self.physics = self.physics, self._bodies[int(loaded)]
        self.physics.set_state(old.position, old.velocity)

    def scale_friction(self, joint: int, factor: float) -> None:
        """Let a joint's friction be so many times what it was identified with."""
        factors = np.ones(self.robot.n)
        factors[joint] = factor
        for physics in self._bodies:
            physics.scale_friction(factors.tolist())

    def push(self, force: np.ndarray) -> None:
        """Push the last link with a force in the base frame (3,) [N], until told otherwise."""
        self.physics.data.xfrc_applied[-1, :3] = force

    def move(self) -> Iterator[Batch]:
        """Yield the joint states of work, endlessly."""
        while True:
            yield from self.follow(*self._next_move())

    def follow(self, q: np.ndarray, dq: np.ndarray) -> Iterator[Batch]:
        """Yield the joint states along a reference (N, n) of the controller's rate."""
        every, length = RATE // STATE_RATE, RATE // 5
        for first in range(0, len(q), length):
            rows = []
            for wanted, speed in zip(q[first : first + length], dq[first:], strict=False):
                state = self._step(wanted, speed)
                if self._count % every == 0 and self._random.random() > LOST:
                    rows.append(state)
            if rows:
                yield Batch(*(np.array(x) for x in zip(*rows, strict=True)))

    def _step(self, wanted: np.ndarray, speed: np.ndarray) -> tuple:
        q, dq = self.physics.position, self.physics.velocity
        measured = self._sensors.read(0.0, q.tolist(), dq.tolist(), self._effort)
        stamp = round((10.0 + self.time + self._random.uniform(0.0, JITTER)) * 1e9)
        command = self._p * (wanted - measured[0]) + self._d * (speed - measured[1])
        self._effort = self.physics.step(command.tolist())
        self._count += 1
        return stamp, measured[0], measured[2]

    def _next_move(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and speeds (N, n) to another pose, and a pause there."""
        random, limits, start = self._random, self.robot.limits, self._pose
        end = self._poses[random.integers(POSES)].copy()
        still = random.random(self.robot.n) < STILL
        end[still] = start[still]
        way = end - start
        speed = random.uniform(*SPEED) * limits.velocity
        acceleration = random.uniform(*ACCELERATION) * limits.acceleration
        # Trapezoids of all joints with the same share of time for speeding up, a third each.
        duration = max(np.max(1.5 * np.abs(way) / speed),
                       np.sqrt(np.max(4.5 * np.abs(way) / acceleration)), 0.1)  # fmt: skip
        s, ds = _trapezoid(np.arange(1, round(duration * RATE) + 1) / (duration * RATE))
        rest = np.ones(round(random.uniform(*PAUSES) * RATE))
        s, ds = np.concatenate([s, rest]), np.concatenate([ds / duration, 0.0 * rest])
        self._pose = end
        return start + np.outer(s, way), np.outer(ds, way)


def _trapezoid(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return way and speed, of one in all, at shares of the time; speeding up for a third."""
    first, last = x < 1.0 / 3.0, x > 2.0 / 3.0
    s = np.where(first, 2.25 * x**2, np.where(last, 1.0 - 2.25 * (1.0 - x) ** 2, 1.5 * x - 0.25))
    return s, np.where(first, 4.5 * x, np.where(last, 4.5 * (1.0 - x), 1.5))
