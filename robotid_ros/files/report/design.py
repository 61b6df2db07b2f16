"""The page of a design: the arm along its motion, and whether it is worth running."""

from collections.abc import Mapping
import dataclasses
from datetime import datetime, timezone
import hashlib
import itertools
import math
from typing import Any

import numpy as np

from ...core.excitation.collision_scene import collision_model, GROUND
from ...core.excitation.design import Design
from ...core.excitation.limits import check_joints, QUANTITIES
from ...core.excitation.settings import ExcitationSettings, payload_settings, Workspace
from ...core.excitation.trajectory import Trajectory
from ...core.findings import seen_and_remedy
from ...core.model import inverse_dynamics, Robot
from ...core.model.pinocchio_model import KinematicTree, tool_frame
from ..configuration import Configuration
from ..provenance import versions
from .page import FirstScreen, render
from .plots import DASHED, MEASURED, Model, NEUTRAL, of_joints, Plot, Plots, PREDICTED, RESIDUAL

TITLES = {'good': 'Can be run', 'fair': 'Can be run with care', 'poor': 'Not to be run'}
COLORS = {'excitation': PREDICTED, 'validation': MEASURED}
POINTS = 500  # of a curve
# Units of `QUANTITIES` by those of the joint that is chosen.
UNITS = ('{length}', '{length}/s', '{length}/s²', '{length}/s³', '{effort}')
# Height of a plot, and left of its axis, so that the axes of time stand below each other [px].
HEIGHT, LEFT = 104, 76
# Frames of a motion per second, and numbers of all frames of a motion at most: a megabyte of a
# page holds two millions.
RATE, NUMBERS = 25.0, 150_000
# Lengths and cosines are whole numbers of this [m, 1].
UNIT = 1e-4
# Directions in which a body is bounded: it is drawn as the outline of its outermost points.
DIRECTIONS, RING = 80, 24
# Obstacles are shown as far as so many times the reach.
SURROUNDED = 1.4


def design_page(
    design: Design, robot: Robot, configuration: Configuration, command: str = ''
) -> str:
    """
    Compose the page of a design, with the arm that moves.

    The groups `robot` and `excitation` of the configuration are those that were used, `command`
    repeats it. TrajectoryError: the design is for other joints.
    """
    check_joints(robot, design.trajectory.joints)
    settings = payload_settings(configuration.excitation)
    motions, plots = motions_of(design), Plots(robot.units)
    plots.data['arm'] = moving_arm(robot, motions, settings.workspace)
    first, name, t = first_screen(design, settings), robot.name or 'robot', design.trajectory
    found = (*design.shortcomings, *design.unchecked, *design.notes)
    return render(
        'design.html',
        behaviours=('report', 'motion'),
        title=f'{name}: designed motion',
        heading=name,
        subtitle=f'motion that identifies, {t.family} {t.hash}, {t.period:g} s, order {t.order}',
        plots=plots,
        design=design,
        verdict_title=TITLES[first.level],
        first=first,
        limits=settings,
        largest=max(
            (share, name, joint)
            for name in QUANTITIES
            for share, joint in zip(getattr(design.usage, name), t.joints, strict=True)
        ),
        found=found,
        severe=bool(design.shortcomings or design.unchecked),
        motions=list(motions),
        joints=robot.joints,
        curves=joint_curves(design, robot),
        description=configuration.robot.urdf,
        hash=hashlib.sha256(robot.urdf.encode()).hexdigest(),
        written=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        versions=versions(),
        command=command,
        settings={
            group: dataclasses.asdict(getattr(configuration, group))
            for group in ('robot', 'excitation')
        },
    )


def first_screen(design: Design, settings: ExcitationSettings) -> FirstScreen:
    """Judge a design by its shortcomings, and by what nobody has checked."""
    columns = f'{len(design.columns)} columns of the model'
    if design.shortcomings:
        seen, remedy = seen_and_remedy(design.shortcomings[0])
        return FirstScreen('poor', f'The node excitation does not run it. {seen}', remedy)
    if design.unchecked:
        seen, remedy = seen_and_remedy(design.unchecked[0])
        seen = f'It keeps every limit that is checked and excites all {columns}. {seen}'
        remedy += ' Or accept it by name in excitation.accept_unchecked.'
        return FirstScreen('fair', seen, remedy)
    seen = f'It keeps every limit at all times and excites all {columns}'
    if design.usage.distance is not None:
        seen += f'; bodies stay at least {settings.workspace.distance:g} m apart'
    remedy = (
        'Watch it below for what no configuration knows, such as cables, then run it: '
        'excitation.trajectory names the file.'
    )
    return FirstScreen('good', f'{seen}.', remedy)


def motions_of(design: Design) -> dict[str, Trajectory]:
    """Return what was designed, by name: the excitation, and the validation if there is one."""
    motions = {'excitation': design.trajectory, 'validation': design.validation}
    return {name: motion for name, motion in motions.items() if motion is not None}


def joint_curves(design: Design, robot: Robot) -> dict[str, Plot]:
    """
    Draw each quantity of a joint over a period of each motion, between its limits.

    Efforts are those of the prior model. The page shows the motion that is chosen on it.
    """
    motions = motions_of(design)
    longest = max(motion.period for motion in motions.values())
    shared: dict[str, Any] = {
        'x_range': Model('Range1d', start=0.0, end=longest, bounds='auto', name='time'),
        'window_axis': 'x',
        'toolbar_location': None,
        'min_border_left': LEFT,
    }
    times = {name: np.linspace(0.0, motion.period, POINTS) for name, motion in motions.items()}
    sampled, plots = {}, {}
    for which, motion in motions.items():
        found = motion.sample(times[which])
        values = *found, motion.jerk(times[which]), inverse_dynamics(robot, robot.prior, *found)
        sampled[which] = dict(zip(QUANTITIES, values, strict=True))
    for name, unit in zip(QUANTITIES, UNITS, strict=True):
        last = name == QUANTITIES[-1]
        height = HEIGHT + 38 * last
        plot = Plot('time [s]' if last else '', f'[{unit}]', height, 'xBoxZoom', **shared)
        plot.below[0].visible = last
        plot.left[0].ticker.desired_num_ticks = 4
        lines = []
        for which, time in times.items():
            source = of_joints([{'y': own} for own in sampled[which][name].T], x=time)
            line = plot.draw('Line', source, COLORS[which], '', line_width=1.6)
            line.name, line.visible = which, which == 'excitation'
            lines.append(line)
        high = np.asarray(design.limits['upper' if name == 'position' else name])
        low = np.asarray(design.limits['lower']) if name == 'position' else -high
        ends = [{'y': np.array([a, a, np.nan, b, b])} for a, b in zip(low, high, strict=True)]
        source = of_joints(ends, x=np.array([0.0, longest, np.nan, 0.0, longest]))
        plot.draw('Line', source, RESIDUAL, '', line_dash=DASHED)
        cursor = {'dimension': 'height', 'line_color': NEUTRAL, 'line_width': 2}
        plot.center.append(Model('Span', location=0.0, name='cursor', level='overlay', **cursor))
        plot.show_values([('t', '@x{0.000} s'), (name, '@y')], *lines)
        plots[name] = plot
    return plots


def moving_arm(
    robot: Robot, motions: Mapping[str, Trajectory], workspace: Workspace
) -> dict[str, Any]:
    """
    Describe the arm along motions, within the ground, obstacles and tool box of the workspace.

    Returns `nodes` of the skeleton, (frame, x, y, z) [m] each, the tool last, and its `edges`;
    convex `bodies` by outermost points in their frame; per motion its `period` [s] and `frames`,
    of each joint the three rows of rotation and origin, in `unit`; frame 0 is the base, which
    stands.
    """
    model = robot.model.copy()
    geometry = collision_model(robot, model, workspace)[0]
    tree, tool = KinematicTree(model), model.frames[tool_frame(model, workspace.frame)]
    holder = int(tool.parentJoint)
    nodes = [[j, 0.0, 0.0, 0.0] for j in range(model.njoints)]
    nodes.append([holder, *map(float, tool.placement.translation)])
    edges = [[int(model.parents[j]), j] for j in range(1, model.njoints)]
    edges.append([holder, model.njoints])
    bodies = []
    for body in (each for each in geometry.geometryObjects if each.name != GROUND):
        place, points = body.placement, _outermost(body.geometry)
        described = {
            'name': str(body.name),
            'frame': int(body.parentJoint),
            'obstacle': body.name in workspace.obstacles,
            'points': np.round(points @ place.rotation.T + place.translation, 4).tolist(),
        }
        bodies.append(described)
    placed, shown = [], {}
    for name, motion in motions.items():
        # Of the joints over a period, (N, n, 3, 4), and of the base before them.
        count = min(math.ceil(RATE * motion.period), NUMBERS // (12 * tree.n)) + 1
        q = motion.sample(np.linspace(0.0, motion.period, count)).q
        rotation, origin = tree.places(q[:, robot.order])
        frames = np.concatenate([rotation, origin[..., None]], axis=3)
        base = np.broadcast_to(np.eye(3, 4), (count, 1, 3, 4))
        placed.append(np.concatenate([base, frames], axis=1))
        whole = np.rint(frames.reshape(count, -1) / UNIT).astype(int).tolist()
        shown[name] = {'period': motion.period, 'frames': whole}
    centre, reach = _extent(np.concatenate(placed), nodes, bodies)
    return {
        'nodes': nodes,
        'edges': edges,
        'bodies': bodies,
        'ground': workspace.ground,
        'box': [list(workspace.lower), list(workspace.upper)],
        'centre': centre.tolist(),
        'reach': reach,
        'unit': UNIT,
        'motions': shown,
    }


def _outermost(shape: Any) -> np.ndarray:
    """Return points (k, 3) whose convex hull looks like a shape; its box for unknown ones [m]."""
    kind = type(shape).__name__
    # Evenly spread: a spiral of the golden angle.
    k = np.arange(DIRECTIONS) + 0.5
    z, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + 5.0**0.5) * k
    directions = np.column_stack([*(np.sqrt(1.0 - z**2) * (np.cos(turn), np.sin(turn))), z])
    if kind in ('Sphere', 'Capsule'):
        half = shape.halfLength if kind == 'Capsule' else 0.0
        return np.asarray(
            shape.radius * directions + np.sign(directions[:, 2:]) * [0.0, 0.0, half]
        )
    if kind == 'Cylinder':
        angle = 2.0 * np.pi * np.arange(RING) / RING
        ring = shape.radius * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
        end = np.array([0.0, 0.0, shape.halfLength])
        return np.concatenate([ring - end, ring + end])
    if hasattr(shape, 'points'):
        points = np.array(shape.points())
        return points[np.unique(np.argmax(points @ directions.T, axis=0))]
    shape.computeLocalAABB()
    box = shape.aabb_local
    return np.array([*itertools.product(*zip(box.min_, box.max_, strict=True))])


def _extent(
    frames: np.ndarray, nodes: list[list[float]], bodies: list[dict[str, Any]]
) -> tuple[np.ndarray, float]:
    """Return centre and radius of what the arm reaches and of obstacles that are near [m]."""
    own = [(int(node[0]), [node[1:]]) for node in nodes]
    own += [(body['frame'], body['points']) for body in bodies if not body['obstacle']]
    turns, origins = frames[..., :3].swapaxes(2, 3), frames[:, :, None, :, 3]
    moved = [points @ turns[:, j] + origins[:, j] for j, points in own]
    arm = np.concatenate([each.reshape(-1, 3) for each in moved])
    centre = 0.5 * (arm.min(axis=0) + arm.max(axis=0))
    reach = float(np.linalg.norm(arm - centre, axis=1).max()) or 1.0
    others = [np.array(body['points']) for body in bodies if body['obstacle']]
    far = [float(np.linalg.norm(each - centre, axis=1).max()) for each in others]
    return centre, min(max(reach, *far), SURROUNDED * reach) if far else reach
