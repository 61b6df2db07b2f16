"""Logs of an arm by MuJoCo that show, one at a time, what logs of strangers' robots are like."""

from collections.abc import Callable, Mapping
import dataclasses
from pathlib import Path

from disturbances import plant, recording, rigid_torque, Run, run, run_along, sines, TIME
from foreign import Signals
from messages import JOINT_STATE, joint_state
import numpy as np

from robotid_ros.core.pipeline.identification import Identification
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.bags import BagWriter

ROBOT, SEED, OTHER = 'arm3', 3, 5  # the motions to identify on and to validate on
EPOCH = 1_700_000_000_000_000_000
# Of friction as harmonic drives have it: speed over which it changes its sign [rad/s], what is
# above Coulomb's where it starts to slide, speed where that is gone [rad/s], share of the load.
TURN, BREAKAWAY, GONE, LOAD = 0.05, 0.3, 0.3, 0.05
# A spring at a joint, where it rests [N·m/rad, rad]: as large as all the rest of its torque.
SPRUNG, STIFFNESS, REST = 1, 14.0, 0.3
TILTED = np.array([6.94, 0.0, -6.94])  # gravity of a robot on a slope of 45° [m/s²]


@dataclasses.dataclass(frozen=True)
class Case:
    """
    Logs to identify on, and another motion of the same robot with its exact torque.

    `clock` is how fast the computer's clock runs beside the stamps; `truth` holds the parameters
    of each joint, None where the model has none that are right.
    """

    logs: tuple[Recording, ...]
    exact: Signals
    urdf: str
    truth: Mapping[str, Mapping[str, float]] | None
    clock: float = 1.0

    def share_inside(self, found: Identification) -> float:
        """Return the share of the true base parameters that lie within ±3 σ."""
        assert self.truth is not None
        truth = dict(self.truth)
        for joint, terms in zip(found.robot.joints, found.robot.friction, strict=True):
            for term in terms:
                if term.name == 'position':  # the same spring, about the middle of the motion
                    own = truth.get(joint, {})
                    K, middle = own.get('Kq', 0.0), term.constants['position_mean']
                    truth[joint] = {**own, 'Dqa': K, 'off': own.get('off', 0.0) + K * middle}
        chi = [truth.get(p.joint, {}).get(p.symbol, 0.0) for p in found.robot.parameters]
        error = found.estimate.value - found.base.of(np.array(chi))
        return float(np.mean(np.abs(error) <= 3.0 * found.estimate.sigma))


def motion(seed: int) -> tuple[np.ndarray, ...]:
    """Return the q, dq, ddq (N, n) of `run`."""
    chosen, rng = plant(ROBOT), np.random.default_rng(seed)
    return sines(chosen.robot, chosen.simulation, TIME, rng, periodic=seed % 2 == 0)


def plain_run(seed: int, window: Callable[[np.ndarray], np.ndarray] | None = None) -> Run:
    """Run the arm with viscous and Coulomb friction; a window (N, n) stops joints now and then."""
    q, dq, ddq = motion(seed)
    if window is not None:
        w = window(TIME)
        dw, ddw = (np.gradient(x, TIME, axis=0) for x in (w, np.gradient(w, TIME, axis=0)))
        own = q - q[0]
        q, dq, ddq = q[0] + w * own, w * dq + dw * own, w * ddq + 2.0 * dw * dq + ddw * own
    found = run_along(plant(ROBOT), TIME, (q, dq, ddq), np.random.default_rng(seed))
    # At rest dry friction takes any value.
    rest = 0.6 * np.sin(TIME / 7.0)[:, None]
    dry = coulomb(found) * np.where(dq == 0.0, rest, np.sign(dq))
    return dataclasses.replace(found, dry=dry)


def coulomb(of: Run) -> np.ndarray:
    """Return Coulomb friction of each joint (n,) [N·m]."""
    return np.array([body.values['Fc'] for body in of.plant.physics.true_parameters()])


def speeds(of: Run) -> np.ndarray:
    """Return the speeds (N, n) [rad/s]."""
    return of.viscous / np.array([b.values['Fv'] for b in of.plant.physics.true_parameters()])


def case(
    change: Callable[[Recording], Recording] = lambda log: log,
    effort: Callable[[Run], np.ndarray] = lambda of: of.clean,
    window: Callable[[np.ndarray], np.ndarray] | None = None,
    known: bool = True,
) -> Case:
    """
    Make the log of one effect.

    Parameters
    ----------
    change : what recording does to the log
    effort : what the efforts are
    window : how the joints stand still, factors (N, n) of the motion
    known : whether the model can be right

    """
    runs = plain_run(SEED, window), plain_run(OTHER)
    log = recording(runs[0], effort(runs[0]) + runs[0].noise)
    every = np.arange(len(TIME))
    exact = Signals(*motion(OTHER), effort(runs[1]), every, float(TIME[1] - TIME[0]))
    bodies = runs[0].plant.physics.true_parameters()
    truth = {b.name: {k: v for k, v in b.values.items() if k != 'Fst'} for b in bodies}
    urdf = runs[0].plant.robot.urdf
    return Case((change(log),), exact, urdf, truth if known else None)


def rows(log: Recording, kept: np.ndarray) -> Recording:
    """Keep some rows (N,)."""
    return dataclasses.replace(
        log, time=log.time[kept], position=log.position[kept], effort=log.effort[kept]
    )


def held(log: Recording, fresh: np.ndarray) -> Recording:
    """Hold the positions where there is no fresh one (N,)."""
    last = np.maximum.accumulate(np.where(fresh, np.arange(len(fresh)), 0))
    return dataclasses.replace(log, position=log.position[last])


def repeated(log: Recording) -> Recording:
    """Repeat the position of the row before in a fifth of the rows."""
    fresh = np.random.default_rng(0).uniform(size=len(log.time)) > 0.2
    return held(log, fresh)


def polled(log: Recording) -> Recording:
    """Poll the positions at about 60 Hz."""
    turn = np.floor(log.time * 60.0)
    return held(log, np.diff(turn, prepend=-1.0) > 0.0)


def quantised(log: Recording) -> Recording:
    """Round the positions to an encoder's 4096 counts a turn."""
    step = 2.0 * np.pi / 4096.0
    return dataclasses.replace(log, position=step * np.round(log.position / step))


def delayed(log: Recording) -> Recording:
    """Let the efforts come 15 ms late."""
    late = [np.interp(log.time - 0.015, log.time, column) for column in log.effort.T]
    return dataclasses.replace(log, effort=np.column_stack(late))


def lost(log: Recording) -> Recording:
    """Lose nine messages of ten, one by one."""
    return rows(log, np.random.default_rng(0).uniform(size=len(log.time)) < 0.1)


def lost_in_bursts(log: Recording) -> Recording:
    """Lose nine messages of ten, 72 on average between 8 that come."""
    rng = np.random.default_rng(0)
    lengths = rng.geometric(1.0 / np.tile([8.0, 72.0], len(log.time)))
    came = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
    return rows(log, came[: len(log.time)])


def stamped(log: Recording, step: float) -> Recording:
    """Round the stamps down to multiples of a step [s]."""
    return dataclasses.replace(log, time=step * np.floor(log.time / step + 1e-9))


def ramp(time: np.ndarray, start: float, length: float = 1.5) -> np.ndarray:
    """Rise from 0 to 1 with continuous accelerations."""
    x = np.clip((time - start) / length, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def stops(time: np.ndarray) -> np.ndarray:
    """Let all joints stand for a third of the time, in three pauses."""
    pauses = [ramp(time, t) - ramp(time, t + 5.0) for t in (3.0, 12.0, 21.0)]
    return np.tile(1.0 - np.sum(pauses, axis=0)[:, None], (1, plant(ROBOT).robot.n))


def mostly_stands(time: np.ndarray) -> np.ndarray:
    """Let the last joint move for the first five seconds only."""
    result = np.ones((len(time), plant(ROBOT).robot.n))
    result[:, -1] = 1.0 - ramp(time, 3.5)
    return result


def gravity_torque(of: Run) -> np.ndarray:
    """Return the torque of gravity (N, n)."""
    zero = np.zeros_like(of.q)
    return rigid_torque(of.plant.physics, of.plant.robot, of.q, zero, zero)


def tilted(of: Run) -> np.ndarray:
    """Return the torques (N, n) of the robot mounted on a slope."""
    weight, gravity = gravity_torque(of), of.plant.physics.model.opt.gravity
    usual = gravity.copy()
    gravity[:] = TILTED
    other = gravity_torque(of)
    gravity[:] = usual
    return of.clean - weight + other


def harmonic(of: Run) -> np.ndarray:
    """Return torques (N, n) with friction that is gradual, sticks a little and grows with load."""
    speed, size = speeds(of), coulomb(of)
    sign = np.tanh(speed / TURN)
    dry = size * (sign + BREAKAWAY * (sign - np.tanh(speed / GONE)))
    return of.clean - of.dry + dry + LOAD * np.abs(of.rigid) * sign


def loaded(of: Run) -> np.ndarray:
    """Return torques (N, n) with friction that grows with the load, else plain."""
    return of.clean + LOAD * np.abs(of.rigid) * np.sign(speeds(of))


def sprung() -> Case:
    """Put a spring at a joint."""

    def effort(of: Run) -> np.ndarray:
        turn = np.zeros_like(of.q)
        turn[:, SPRUNG] = of.q[:, SPRUNG] - REST
        return of.clean + STIFFNESS * turn

    made, joint = case(effort=effort), plant(ROBOT).robot.joints[SPRUNG]
    assert made.truth is not None
    own = made.truth[joint]
    spring = {'Kq': STIFFNESS, 'off': own.get('off', 0.0) - STIFFNESS * REST}
    return dataclasses.replace(made, truth={**made.truth, joint: {**own, **spring}})


def of_first_joint(disturb: Callable[[Run], Recording]) -> Case:
    """Make the log of a disturbance of `disturbances.py`."""
    disturbed = disturb(dataclasses.replace(run(ROBOT, SEED), joint=0))
    return dataclasses.replace(case(known=False), logs=(disturbed,))


def with_gripper(urdf: str) -> str:
    """Add a hand with two fingers, a wheel and another arm's first link to a description."""
    link = (
        '<link name="{0}"><inertial><mass value="{1}"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    joint = (
        '<joint name="{0}_joint" type="{1}"><parent link="{2}"/><child link="{0}"/><axis xyz='
        '"0 1 0"/><limit lower="{3}" upper="{4}" effort="9" velocity="9"/></joint>'
    )
    parts = [
        *(link.format('finger', 0.1), joint.format('finger', 'prismatic', 'tool0', 0.0, 0.04)),
        *(link.format('thumb', 0.1), joint.format('thumb', 'prismatic', 'tool0', 0.01, 0.04)),
        *(link.format('wheel', 2.0), joint.format('wheel', 'continuous', 'base_link', 0, 0)),
        *(link.format('left_arm', 3.0), joint.format('left_arm', 'revolute', 'base_link', -2, 2)),
    ]
    return urdf.replace('</robot>', '\n'.join([*parts, '</robot>']))


def write(folder: Path, name: str, log: Recording, clock: float = 1.0, urdf: str = '') -> Path:
    """Write a bag of joint states, of the robot description too where there is one."""
    with BagWriter(folder, name) as writer:
        if urdf:
            writer.write_text('/robot_description', urdf, EPOCH)
        writer.add_topic('/joint_states', JOINT_STATE)
        for time, q, effort in zip(log.time, log.position, log.effort, strict=True):
            stamp = EPOCH + round(1e9 * time)
            data = joint_state(stamp, log.joints, q, effort)
            writer.write('/joint_states', data, EPOCH + round(1e9 * clock * time))
    return writer.path
