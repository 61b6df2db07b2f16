"""
Servos from commands and positions alone, beside PACE's method, on two simulated robots.

    OMP_NUM_THREADS=1 python benchmarks/commands.py [--check] [--only arm leg]

The plants are MuJoCo's, with numbers of this file, 50 Hz commands and encoder noise. PACE
(Bjelonic et al. 2025) fits whole rollouts by CMA-ES: here with its armature, damping, dry
friction, bias of each joint and one delay, and with the servo's stiffness, which it takes for
known. It simulates by the plant's own engine and gets ten times as many simulations of the log,
or fewer where its costs stop to change.
What both find is judged on another log, by the root mean square of position errors in MuJoCo.
"""

from collections.abc import Callable
import math
import sys
import time as clock
from typing import Any
from unittest import mock

from common import command_line, verdict
import mujoco
from mujoco import rollout
import numpy as np

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.replay import servos
from robotid_ros.core.replay.commanded import identify_commanded
from robotid_ros.core.signals.recording import Recording, Reference

RATE, STEP, SECONDS, NOISE = 50, 2e-3, 10.0, 5e-4
SYMBOLS = ('stiffness', 'damping', 'armature', 'Fc', 'bias')
# Change of CMA-ES' costs [rad²] that ends it, as its reference implementation has it (tolfun).
NOTHING = 1e-11
# Range of each parameter that CMA-ES searches; the first three on a logarithmic scale.
RANGES = {
    'stiffness': (3.0, 100.0), 'damping': (0.05, 5.0), 'armature': (1e-3, 0.1),
    'Fc': (0.0, 0.5), 'bias': (-0.1, 0.1), 'delay': (0.0, 0.1),
}  # fmt: skip
# Joint, place in its parent, axis, mass, centre, moments, truth by `SYMBOLS`.
ROBOTS = {
    'arm': (
        0.042,
        ('lift', '0 0 0.06', '0 1 0', 0.31, '0.01 0 0.07', (7e-4, 7e-4, 1e-4),
         (17.0, 0.62, 0.026, 0.06, 0.012)),
        ('flex', '0 0 0.12', '0 1 0', 0.24, '0 0.004 0.06', (5e-4, 5e-4, 8e-5),
         (16.0, 0.55, 0.027, 0.05, -0.015)),
    ),
    'leg': (
        0.013,
        ('roll', '0.2 0.05 0.4', '1 0 0', 0.7, '0 0.02 0.002', (5e-4, 6e-4, 6e-4),
         (30.0, 0.8, 0.007, 0.18, 0.0)),
        ('pitch', '0 0.08 0', '0 1 0', 1.05, '0 0 -0.04', (6e-3, 6e-3, 1e-3),
         (36.0, 0.9, 0.007, 0.15, 0.01)),
        ('knee', '0 0 -0.2', '0 1 0', 0.2, '0 0 -0.1', (2.5e-3, 2.5e-3, 5e-5),
         (36.0, 0.9, 0.012, 0.12, 0.0)),
    ),
}  # fmt: skip


def urdf(chain: tuple) -> str:
    """Return the description of a chain."""
    text, parent = '<robot name="servos"><link name="base"/>', 'base'
    for name, place, axis, mass, centre, (xx, yy, zz), _ in chain:
        text += (
            f'<link name="{name}_link"><inertial><origin xyz="{centre}"/><mass value="{mass}"/>'
            f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>'
            f'</link><joint name="{name}" type="revolute"><parent link="{parent}"/>'
            f'<origin xyz="{place}"/><child link="{name}_link"/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" velocity="20" effort="50"/></joint>'
        )
        parent = f'{name}_link'
    return f'{text}</robot>'


def plant(chain: tuple) -> mujoco.MjModel:
    """Return MuJoCo's model of a chain, with position actuators."""
    bodies, servos = '', ''
    for name, place, axis, mass, centre, moments, _ in chain:
        bodies += (
            f'<body pos="{place}"><joint name="{name}" axis="{axis}" solreffriction="0.004 1" '
            'solimpfriction="0.9999 0.9999 0.001 0.5 2"/><inertial '
            f'pos="{centre}" mass="{mass}" diaginertia="{" ".join(map(str, moments))}"/>'
        )
        servos += f'<position joint="{name}" kp="1"/>'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{STEP}" integrator="RK4"/><worldbody>{bodies}'
        f'{"</body>" * len(chain)}</worldbody><actuator>{servos}</actuator></mujoco>'
    )


class Rollout:
    """Positions of a plant that follows commands (K, n), held and late, from rest."""

    def __init__(self, chain: tuple, commands: np.ndarray) -> None:
        self.model, self.commands = plant(chain), commands
        self.data, self.count = mujoco.MjData(self.model), 0
        self.steps = round(len(commands) / (RATE * STEP))

    def __call__(self, values: np.ndarray, delay: float, start: np.ndarray) -> np.ndarray:
        """Simulate joints with `values` (n, 5) by `SYMBOLS`, (K, n)."""
        model, (kp, kd, armature, friction, bias) = self.model, values.T
        self.count += 1
        model.dof_armature[:], model.dof_frictionloss[:] = armature, friction
        model.actuator_gainprm[:, 0], model.actuator_biasprm[:, 1] = kp, -kp
        model.actuator_biasprm[:, 2] = -kd
        # The mean of the command in each step, so that delays need not be whole steps.
        at = (np.arange(self.steps + 1) * STEP - delay) * RATE
        held = np.cumsum(np.vstack([0.0 * bias, self.commands]), axis=0)
        first = np.arange(len(held))
        area = np.column_stack([np.interp(at, first, column) for column in held.T])
        area += np.minimum(at, 0.0)[:, None] * self.commands[0]
        control = np.diff(area, axis=0) / (RATE * STEP) + bias
        self.data.qpos[:], self.data.qvel[:], self.data.time = start, 0.0, 0.0
        state = np.concatenate([[0.0], start, 0.0 * start])
        path = rollout.rollout(model, self.data, state[None], control[None])[0][0]
        positions = np.vstack([start, path[:, 1 : 1 + len(start)]])
        return positions[:: round(1 / (RATE * STEP))][: len(self.commands)]


def motion(n: int, seed: int) -> np.ndarray:
    """Return commands (K, n): sums of sines and jumps, from rest at 0."""
    time, rng = np.arange(0.0, SECONDS, 1.0 / RATE), np.random.default_rng(seed)
    columns = []
    for _ in range(n):
        parts = zip(rng.uniform(0.1, 1.3, 5), rng.uniform(0, 6.28, 5), strict=True)
        wave = sum(np.sin(6.28 * f * time + p) / (1 + 2 * f) for f, p in parts)
        jumps = rng.uniform(-0.5, 0.5, 9)[(time / 1.7).astype(int)]
        columns.append(0.4 * np.minimum(time, 1.0) * (wave + jumps))
    return np.column_stack(columns)


def cma_es(cost, size: int, budget: int, seed: int = 0) -> np.ndarray:
    """Minimise by CMA-ES with its default parameters, in [-1, 1] (Hansen 2016)."""
    rng, count = np.random.default_rng(seed), 4 + int(3 * math.log(size))
    weights = np.log((count + 1) / 2) - np.log(np.arange(1, count // 2 + 1))
    weights /= weights.sum()
    mu = 1.0 / (weights**2).sum()
    c_s, c_c = (mu + 2) / (size + mu + 5), (4 + mu / size) / (size + 4 + 2 * mu / size)
    c_1 = 2 / ((size + 1.3) ** 2 + mu)
    c_mu = min(1 - c_1, 2 * (mu - 2 + 1 / mu) / ((size + 2) ** 2 + mu))
    damping = 1 + 2 * max(0.0, math.sqrt((mu - 1) / (size + 1)) - 1) + c_s
    usual = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))
    mean, sigma, C = np.zeros(size), 0.5, np.eye(size)
    path_s, path_c, best = np.zeros(size), np.zeros(size), (math.inf, mean)
    history: list[float] = []
    for generation in range(budget // count):
        scale, B = np.linalg.eigh(C)
        scale = np.sqrt(np.maximum(scale, 1e-20))
        y = (rng.standard_normal((count, size)) * scale) @ B.T
        points = np.clip(mean + sigma * y, -1.0, 1.0)
        costs = np.array([cost(point) for point in points])
        order = np.argsort(costs)[: len(weights)]
        best = min(best, (costs[order[0]], points[order[0]]), key=lambda pair: pair[0])
        history.append(float(costs[order[0]]))
        last = history[-10 - math.ceil(30 * size / count) :]
        if len(history) > len(last) and max(np.ptp(last), np.ptp(costs)) < NOTHING:
            break
        y = (points[order] - mean) / sigma
        step = weights @ y
        mean = mean + sigma * step
        path_s = (1 - c_s) * path_s + math.sqrt(c_s * (2 - c_s) * mu) * (B @ ((step @ B) / scale))
        norm = float(np.linalg.norm(path_s)) / math.sqrt(1 - (1 - c_s) ** (2 * generation + 2))
        slow = norm < (1.4 + 2 / (size + 1)) * usual
        path_c = (1 - c_c) * path_c + slow * math.sqrt(c_c * (2 - c_c) * mu) * step
        C = (1 - c_1 - c_mu) * C + c_1 * np.outer(path_c, path_c) + c_mu * (y.T * weights) @ y
        sigma *= math.exp(c_s / damping * (np.linalg.norm(path_s) / usual - 1))
    return best[1]


def from_unit(point: np.ndarray) -> tuple[np.ndarray, float]:
    """Return values (n, 5) and the delay at a point of [-1, 1]."""
    share = 0.5 * (point + 1.0)
    values = share[:-1].reshape(-1, len(SYMBOLS)).copy()
    for k, symbol in enumerate(SYMBOLS):
        low, high = RANGES[symbol]
        x = values[:, k]
        values[:, k] = low * (high / low) ** x if k < 3 else low + (high - low) * x
    low, high = RANGES['delay']
    return values, float(low + (high - low) * share[-1])


def counted(counts: list[int]) -> Callable[..., Any]:
    """Return the simulation of servos, which notes how many it runs side by side."""
    simulate = servos.simulate_servos

    def simulated(arm: Any, windows: Any, theta: np.ndarray, *rest: Any) -> Any:
        counts.append(len(theta))
        return simulate(arm, windows, theta, *rest)

    return simulated


def compare(name: str) -> list[str]:
    """Identify one robot both ways; print figures, return what misses its bound."""
    delay, *chain = ROBOTS[name]
    n, joints = len(chain), tuple(row[0] for row in chain)
    truth = np.array([row[-1] for row in chain])
    start = np.zeros(n)
    fitted, other = Rollout(chain, motion(n, 1)), Rollout(chain, motion(n, 2))
    rng = np.random.default_rng(3)
    measured = fitted(truth, delay, start)
    measured = measured + NOISE * rng.standard_normal(measured.shape)
    nothing, time = np.full(measured.shape, np.nan), np.arange(len(measured)) / RATE
    reference = Reference(time, fitted.commands, nothing, nothing)
    log = Recording(joints, time=time, position=measured, effort=nothing, reference=reference)
    friction = {'default': ('viscous', 'coulomb', 'offset')}
    began, counts = clock.process_time(), list[int]()
    with mock.patch.object(servos, 'simulate_servos', counted(counts)):
        robot = build_robot(urdf(chain), RobotSettings(friction=friction))
        found = identify_commanded([log], robot)
    ours_time = clock.process_time() - began
    ours = np.array([[found.value(s, joint) for s in SYMBOLS] for joint in joints], dtype=float)
    budget, fitted.count = 10 * sum(counts), 0
    began = clock.process_time()

    def cost(point: np.ndarray) -> float:
        return float(np.mean((fitted(*from_unit(point), measured[0]) - measured) ** 2))

    theirs, their_delay = from_unit(cma_es(cost, len(SYMBOLS) * n + 1, budget))
    their_time = clock.process_time() - began
    expected = other(truth, delay, start)

    def error(values: np.ndarray, late: float) -> float:
        return float(np.sqrt(np.mean((other(values, late, start) - expected) ** 2)))

    our_delay = float(found.value('delay') or math.nan)
    errors = error(ours, our_delay), error(theirs, their_delay)
    print(f'{name}: rollout error [mrad], simulations, CPU [s], error of the delay [ms]')
    late = our_delay - delay, their_delay - delay
    simulations, times = (sum(counts), fitted.count), (ours_time, their_time)
    for who, *row in zip(('robotid', 'CMA-ES'), errors, simulations, times, late, strict=True):
        print(f'  {who:8} {1e3 * row[0]:8.4f} {row[1]:6d} {row[2]:7.1f} {1e3 * row[3]:8.4f}')
    true = {
        (s, joint): truth[j, k] for j, joint in enumerate(joints) for k, s in enumerate(SYMBOLS)
    }
    true['delay', ''] = delay
    known = [p for p in found.parameters if p.value is not None and p.sigma]
    off = max(abs((p.value or 0.0) - true[p.symbol, p.joint]) / (p.sigma or 1.0) for p in known)
    print(f'  {len(known)} of {len(true)} determined, at most {off:.1f} σ off')
    bounds = {
        'parameters within 3 σ': off <= 3.0,
        'delay within 1 ms': abs(late[0]) < 1e-3,
        'rollout error of CMA-ES in a tenth of the simulations': errors[0] <= errors[1],
    }
    return [f'{name}: {text}' for text, kept in bounds.items() if not kept]


def main() -> int:
    """Print the figures; with --check, fail where a bound is missed."""
    parser = command_line(__doc__)
    parser.add_argument('--only', nargs='+', choices=ROBOTS, default=list(ROBOTS))
    arguments = parser.parse_args()
    missed = [text for name in arguments.only for text in compare(name)]
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
