"""A simulated robot under the gains of its configuration that is pushed now and then."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from robotid_ros.core.model import Robot
from robotid_ros.core.signals.recording import Recording
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import per_joint, SimulationSettings


@dataclass(frozen=True)
class Push:
    """A force at the origin of a link, in its axes, for a while [N, s]."""

    link: str
    force: tuple[float, float, float]
    start: float
    stop: float

    @classmethod
    def random(
        cls, rng: np.random.Generator, start: float, duration: float,
        size: tuple[float, float], links: Sequence[str],
    ) -> 'Push':  # fmt: skip
        """Draw a size, a direction and a link."""
        direction = rng.normal(size=3)
        force = rng.uniform(*size) * direction / np.linalg.norm(direction)
        return cls(str(rng.choice(links)), tuple(force.tolist()), start, start + duration)


@dataclass(frozen=True)
class Log:
    """What joint states hold, stamps (N,) [ns], (N, n), and what truly acts from outside."""

    joints: tuple[str, ...]
    stamp: np.ndarray
    position: np.ndarray
    effort: np.ndarray
    external: np.ndarray

    @property
    def recording(self) -> Recording:
        """The same as a recording."""
        return Recording(self.joints, self.stamp * 1e-9, self.position, self.effort)


class Plant:
    """Physics with white noise on sensors, and the controller's law p e + d de."""

    def __init__(self, robot: Robot, settings: SimulationSettings):
        self.robot, self.settings = robot, settings
        self._physics = Physics(robot.urdf, settings, robot.joints)
        self._every = round(settings.update_rate / settings.state_rate)
        noise = settings.noise
        self._sigma = np.array(
            [
                per_joint(values, robot.n, 'noise')
                for values in (noise.position, noise.velocity, noise.effort)
            ]
        )
        gains = [settings.gains[joint] for joint in robot.joints]
        self._p, self._d = np.array([g.p for g in gains]), np.array([g.d for g in gains])
        self.period = self._physics.period
        bodies = self._physics.bodies
        self.links = tuple(body.joint.child for body in bodies[len(bodies) // 2 :])

    def run(
        self, q_ref: np.ndarray, dq_ref: np.ndarray, seed: int, pushes: Sequence[Push] = ()
    ) -> Log:
        """Follow positions and velocities of every period, (K, n)."""
        physics, noise = self._physics, self._noise(len(q_ref), seed)
        physics.set_state(q_ref[0], dq_ref[0])
        # What pushed it before does not any more.
        physics.push(self.links[0], (0.0,) * 6)
        events = sorted(
            [(push.start, push.link, (*push.force, 0.0, 0.0, 0.0)) for push in pushes]
            + [(push.stop, push.link, (0.0,) * 6) for push in pushes]
        )
        rows, effort = [], np.zeros(self.robot.n)
        for k in range(len(q_ref)):
            q, dq = physics.position + noise[k, 0], physics.velocity + noise[k, 1]
            while events and k * self.period >= events[0][0]:
                physics.push(*events.pop(0)[1:])
            physics.apply_wrench()
            if k % self._every == 0:
                rows.append((k, q, effort + noise[k, 2], self._external()))
            effort = self._p * (q_ref[k] - q) + self._d * (dq_ref[k] - dq)
            effort = np.array(physics.step(effort.tolist()))
        number, *columns = (np.array(column) for column in zip(*rows[1:], strict=True))
        stamp = np.round(number * self.period * 1e9).astype(np.int64)
        return Log(self.robot.joints, stamp, *columns)

    def _noise(self, count: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng([seed, 7])
        return rng.normal(size=(count, *self._sigma.shape)) * self._sigma

    def _external(self) -> np.ndarray:
        """Return what the joints bear of pushes (n,), by MuJoCo."""
        model, data, total = self._physics.model, self._physics.data, np.zeros(self.robot.n)
        for body in np.flatnonzero(data.xfrc_applied.any(axis=1)):
            force, torque = np.split(data.xfrc_applied[body], 2)
            mujoco.mj_applyFT(model, data, force, torque, data.xipos[body], body, total)
        return total
