"""
Excitation: criterion against CPU time on one thread, solvers and families compared.

    python benchmarks/excitation.py [ur10] [arm7] [gradient] [solvers] [feasible] [collision]
        [meshes] [tx40] [--check]

Without names, all of them; with --check, what is slower or worse than its bound is an error.
"""

import argparse
from dataclasses import replace
import os
from pathlib import Path
import re
import struct
import sys
import tempfile
import time

# Before NumPy is imported.
os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')

import numpy as np

from robotid_ros.core.excitation import (
    check_trajectory,
    Design,
    design,
    ExcitationSettings,
    Progress,
)
from robotid_ros.core.excitation.constraints.collision_scene import CollisionScene
from robotid_ros.core.excitation.design.feasibility import random_point
from robotid_ros.core.excitation.design.optimisation_problem import Problem
from robotid_ros.core.excitation.settings import Margins, ValidationSettings, Workspace
from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.files.configuration import load, read_urdf

# Largest figures, by row: condition number, and CPU time [s]; or the one value of the row.
BOUNDS = {
    'UR10 rigid, raw': (9.0, 5.0),
    'UR10 Fv Fc Ia off, raw': (27.0, 5.0),
    'UR10 Fv Fc Ia off, normalised': (5.5, 5.0),
    'UR10 rigid, raw, self-collision': (17.6, 30.0),
    'UR10 rigid, raw, self-collision of meshes': (17.6, 30.0),
    '7-DoF, Fv Fc off, raw': (60.0, 10.0),
    'TX-40 as configured': (45.0, 15.0),
}
LARGEST_SHARE, LARGEST_STEP = 1.0 + 1e-9, 7.0  # of any limit; of value and gradient [ms]
# CPU times of the solvers' table [s]; starts and iterations that fill them.
MARKS = (1, 2, 5, 10, 30)
BUDGETS = {'gradient': (8, 200), 'genetic': (1, 200), 'hybrid': (2, 120)}
missed: list[str] = []
URDF = Path(__file__).resolve().parents[1] / 'urdf'
PI = float(np.pi)
FREE = Workspace(self_collision=False)
PLAIN = {
    'margins': Margins(0.0, 0.0, 0.0, 0.0, 0.0),
    'validation': ValidationSettings(kind='none'),
    'workspace': FREE,
    'time_limit': 1e6,
}


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
    return build_robot((URDF / 'ur10.urdf').read_text(), RobotSettings(**limits, **terms))


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


def timed(robot: Robot, settings: ExcitationSettings) -> tuple[Design, float]:
    """Design, and the CPU time it took [s]."""
    begin = time.process_time()
    result = design(robot, settings)
    return result, time.process_time() - begin


def bound(label: str, value: float, largest: float) -> None:
    """Note what is above its bound."""
    if not value <= largest:
        missed.append(f'{label}: {value:.3f} is above {largest:g}')


def line(label: str, result: Design, seconds: float) -> None:
    """Print one row."""
    if label in BOUNDS:
        kind = 'normalised' if label.endswith('normalised') else 'raw'
        bound(label, result.condition_numbers[kind], BOUNDS[label][0])
        bound(f'{label}, CPU time', seconds, BOUNDS[label][1])
    numbers = result.condition_numbers
    print(
        f'{label:44s} {len(result.columns):3d} columns  raw {numbers["raw"]:7.2f}  '
        f'normalised {numbers["normalised"]:6.2f}  CPU {seconds:6.2f} s  '
        f'{result.evaluations} evaluations'
    )


def bench_ur10() -> None:
    """Condition numbers on the UR10, 24 s, no margins."""
    base = ExcitationSettings(period=24.0, order=12, starts=1, iterations=500, **PLAIN)
    line('UR10 rigid, raw', *timed(ur10(False), replace(base, order=10, iterations=300)))
    line('UR10 Fv Fc Ia off, raw', *timed(ur10(), base))
    normalised = replace(base, criterion='normalised_condition', starts=1, iterations=200)
    line('UR10 Fv Fc Ia off, normalised', *timed(ur10(), normalised))


def bench_collision() -> None:
    """Design with self-collision avoidance on the URDF's shapes."""
    apart('UR10 rigid, raw, self-collision', ur10(False), Workspace(distance=0.01))


def apart(label: str, robot: Robot, workspace: Workspace) -> None:
    """Design with self-collision avoidance."""
    base = ExcitationSettings(
        period=24.0, order=8, starts=2, iterations=120, **{**PLAIN, 'workspace': workspace}
    )
    result, seconds = timed(robot, base)
    line(label, result, seconds)
    print(f'    smallest distance {result.usage.distance:.4f} m; {"; ".join(result.notes)}')


def bench_meshes() -> None:
    """Do the same with every cylinder as a mesh of 256 triangles."""
    with tempfile.TemporaryDirectory() as folder:
        robot = ur10(False)

        def mesh(found: re.Match[str]) -> str:
            radius, length = (float(x) for x in re.findall(r'="([\d.]+)"', found[2]))
            path = Path(folder) / f'{radius}_{length}.stl'
            path.write_bytes(cylinder(radius, length))
            return f'{found[1]}<mesh filename="file://{path}"/>'

        pattern = r'(<collision>(?:(?!</collision>).)*?)(<cylinder[^>]*/>)'
        text = re.sub(pattern, mesh, robot.urdf, flags=re.DOTALL)
        robot = replace(robot, urdf=text)
        apart('UR10 rigid, raw, self-collision of meshes', robot, Workspace(distance=0.01))


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


def bench_tx40() -> None:
    """Design what the demo designs, with its validation, to the end of its budget."""
    configuration = load(URDF.parent / 'config' / 'tx40.yaml')
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    line(
        'TX-40 as configured',
        *timed(robot, replace(configuration.excitation, time_limit=1e6)),
    )


def bench_arm7() -> None:
    """Seven joints, 10 s."""
    settings = ExcitationSettings(period=10.0, order=5, starts=3, iterations=200, **PLAIN)
    line('7-DoF, Fv Fc off, raw', *timed(arm7(), settings))


def bench_gradient() -> None:
    """CPU time of one evaluation with its gradient, UR10, 100 samples, 58 columns."""
    robot = ur10()
    for criterion in ('condition', 'normalised_condition', 'frobenius', 'd_optimal', 'smallest'):
        settings = ExcitationSettings(criterion=criterion, period=24.0, order=10, **PLAIN)
        problem = Problem(robot, settings, CollisionScene(robot, FREE))
        points = [random_point(problem, np.random.default_rng(k)) for k in range(20)]
        durations = []
        for x in points:
            begin = time.process_time()
            problem.value(x)
            problem.gradient(x)
            durations.append(time.process_time() - begin)
        bound(f'value and gradient of {criterion} [ms]', 1e3 * np.median(durations), LARGEST_STEP)
        print(
            f'UR10 value and gradient, {criterion:22s} {len(problem.times)} samples, '
            f'{len(problem.columns)} columns: median {1e3 * np.median(durations):5.2f} ms, '
            f'least {1e3 * min(durations):5.2f} ms'
        )


def course(robot: Robot, settings: ExcitationSettings) -> tuple[list[float], Design]:
    """Design, and note the best value at each of `MARKS`; infinity where there is none yet."""
    begin, best = time.process_time(), [float('inf')] * len(MARKS)

    def note(state: Progress) -> None:
        now = time.process_time() - begin
        for k, mark in enumerate(MARKS):
            if now <= mark and state.criterion is not None:
                best[k] = state.criterion

    result = design(robot, settings, note)
    seconds = time.process_time() - begin
    return [result.value if seconds <= m else b for m, b in zip(MARKS, best, strict=True)], result


def bench_solvers() -> None:
    """Gradient, genetic and hybrid; every family: the best value after so much CPU time."""
    robot = ur10()
    print(f'best condition of the search after CPU time [s] {"":9s}', *(f'{m:7g}' for m in MARKS))
    for family in ('mfs', 'ffs', 'bspline', 'quintic'):
        for solver, (starts, iterations) in BUDGETS.items():
            if family in ('bspline', 'quintic') and solver != 'gradient':
                continue
            settings = ExcitationSettings(
                family=family,
                solver=solver,
                period=24.0,
                order={'bspline': 16, 'quintic': 6}.get(family, 8),
                starts=starts,
                iterations=iterations,
                **PLAIN,
            )
            values, result = course(robot, settings)
            cells = ' '.join(f'{v:7.1f}' for v in values)
            final = result.condition_numbers['raw']
            print(f'UR10, 58 columns: {family:8s} {solver:28s} {cells}  raw, densely {final:6.1f}')


def bench_feasible() -> None:
    """Re-check 100 random designs of three robots at 1 kHz."""
    rng, count, worst = np.random.default_rng(0), 0, 0.0
    for name in ('scara', 'arm3', 'tx40'):
        robot = build_robot((URDF / f'{name}.urdf').read_text(), RobotSettings())
        for _ in range(34 if name == 'scara' else 33):
            settings = ExcitationSettings(
                family=str(rng.choice(['mfs', 'bspline', 'quintic'])),
                period=float(rng.uniform(3.0, 20.0)),
                order=int(rng.integers(3, 8)),
                seed=int(rng.integers(1 << 30)),
                starts=1,
                iterations=10,
                **PLAIN,
            )
            usage = check_trajectory(
                robot, design(robot, settings).trajectory, settings, rate=1000.0
            )
            quantities = ('position', 'velocity', 'acceleration', 'jerk', 'effort')
            worst = max(worst, *(max(getattr(usage, q)) for q in quantities))
            count += 1
    bound('largest share of any limit', worst, LARGEST_SHARE)
    print(f'{count} random designs at 1 kHz: largest share of any limit {worst:.6f}')


BENCHES = {
    'ur10': bench_ur10,
    'arm7': bench_arm7,
    'gradient': bench_gradient,
    'solvers': bench_solvers,
    'feasible': bench_feasible,
    'collision': bench_collision,
    'meshes': bench_meshes,
    'tx40': bench_tx40,
}


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--check', action='store_true', help='fail above a bound')
    options = parser.parse_args()
    names = options.names or list(BENCHES)
    print('columns: the first independent ones in Pinocchio order, then rotors and friction')
    for name in names:
        BENCHES[name]()
    if options.check and missed:
        sys.exit('\n'.join(missed))


if __name__ == '__main__':
    main()
