"""Robots whose shapes are meshes: convex hulls take their place, and designs keep them apart."""

from pathlib import Path
import struct

import numpy as np
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.settings import ValidationSettings, Workspace
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.findings import render, select
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.exceptions import CollisionError

from .robots import quick

# Boxes along the links, and their corners numbered by bits x, y, z.
SIZES = ((0.2, 0.2, 0.3), (0.12, 0.1, 0.5), (0.1, 0.12, 0.4), (0.08, 0.08, 0.5))
CORNERS = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], dtype=float)
FACES = [(0, 2, 3), (0, 3, 1), (4, 5, 7), (4, 7, 6), (0, 1, 5), (0, 5, 4)]
FACES += [(2, 6, 7), (2, 7, 3), (0, 4, 6), (0, 6, 2), (1, 3, 7), (1, 7, 5)]


def write_stl(path: Path, points, faces) -> None:
    rows = (struct.pack('<12fH', 0, 0, 0, *points[list(f)].ravel(), 0) for f in faces)
    path.write_bytes(bytes(80) + struct.pack('<I', len(faces)) + b''.join(rows))


def write_obj(path: Path, points, faces) -> None:
    lines = [f'v {x} {y} {z}' for x, y, z in points]
    lines += [f'f {a + 1} {b + 1} {c + 1}' for a, b, c in faces]
    path.write_text('\n'.join(lines) + '\n')


def dented(points, faces):
    """Push the top's middle into the box: no longer convex, but of the same convex hull."""
    middle = points[4:].mean(axis=0) - [0.0, 0.0, 0.4 * np.ptp(points[:, 2])]
    edges = [(4, 5), (5, 7), (7, 6), (6, 4)]
    sides = [f for f in faces if f not in FACES[2:4]]
    return np.vstack([points, middle]), [*sides, *((a, b, 8) for a, b in edges)]


def arm(shapes) -> str:
    """Join four links by three joints; `shapes` are the links' geometry elements."""
    parts = ['<robot name="arm">']
    for k, (shape, (_, _, z)) in enumerate(zip(shapes, SIZES, strict=True)):
        parts.append(
            f'<link name="link_{k}"><inertial><origin xyz="0.02 0.01 {z / 2}"/>'
            '<mass value="2"/><inertia ixx="0.03" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
            f'</inertial><collision><origin xyz="0 0 {z / 2}"/><geometry>{shape}</geometry>'
            '</collision></link>'
        )
        if k:
            axis = '0 0 1' if k == 1 else '0 1 0'
            parts.append(
                f'<joint name="joint_{k}" type="revolute"><parent link="link_{k - 1}"/>'
                f'<child link="link_{k}"/><origin xyz="0 0 {SIZES[k - 1][2] + 0.02}"/>'
                f'<axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="3" effort="80"/>'
                '</joint>'
            )
    return ''.join([*parts, '</robot>'])


def boxes() -> str:
    return arm([f'<box size="{x} {y} {z}"/>' for x, y, z in SIZES])


def meshes(folder: Path, kind: str, reference: str) -> str:
    """Write the same boxes as dented meshes, in millimetres."""
    folder.mkdir(exist_ok=True)
    shapes = []
    for k, size in enumerate(SIZES):
        points, faces = dented(1000.0 * (CORNERS - 0.5) * size, FACES)
        {'stl': write_stl, 'obj': write_obj}[kind](folder / f'{k}.{kind}', points, faces)
        name = f'{reference}/{k}.{kind}'
        shapes.append(f'<mesh filename="{name}" scale="0.001 0.001 0.001"/>')
    return arm(shapes)


@pytest.mark.parametrize('kind', ['stl', 'obj'])
@pytest.mark.parametrize('scheme', ['package', 'checkout', 'file'])
def test_hulls_are_as_far_apart_as_the_boxes_they_enclose(kind, scheme, tmp_path, rng):
    folder = tmp_path / 'arm_description'
    # A checkout may have another name than its package.
    package = 'package://arm_description' if scheme == 'package' else 'package://arm'
    reference = f'file://{folder}' if scheme == 'file' else package
    workspace = Workspace(mesh_folders=(str(tmp_path), str(folder)), ground=0.0)
    plain = CollisionScene(build_robot(boxes(), RobotSettings()), workspace)
    meshed = CollisionScene(
        build_robot(meshes(folder, kind, reference), RobotSettings()), workspace
    )
    assert meshed.notes == plain.notes
    assert len(meshed.geometry.collisionPairs) == len(plain.geometry.collisionPairs) == 4
    for q in rng.uniform(-2.5, 2.5, (50, 3)):
        one, other = plain._distances(q), meshed._distances(q)
        apart = one > 1e-3
        np.testing.assert_allclose(other[apart], one[apart], atol=1e-5)
        assert ((other > 0.0) == (one > 0.0))[np.abs(one) > 1e-4].all()


@pytest.mark.parametrize('height', [SIZES[3][2], 0.0])
def test_a_mesh_that_is_too_fine_or_flat_is_as_far_away_as_its_box(height, tmp_path, rng):
    """A cone whose tip has 400 neighbours, more than Coal can count, and the disc below it."""
    turn = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    half = 500.0 * np.array([*SIZES[3][:2], height])
    rim = np.column_stack([half[0] * np.cos(turn), half[1] * np.sin(turn), 0.0 * turn - half[2]])
    points = np.vstack([rim, [0.0, 0.0, half[2]], [0.0, 0.0, -half[2]]])
    faces = [(k, (k + 1) % 400, tip) for k in range(400) for tip in (400, 401)]
    write_stl(tmp_path / 'cone.stl', points, faces)
    x, y, z = SIZES[3]
    cone = f'<mesh filename="file://{tmp_path}/cone.stl" scale="0.001 0.001 0.001"/>'
    box, thin = (f'<box size="{x} {y} {side}"/>' for side in (z, max(height, 1e-6)))
    assert box in boxes()
    workspace = Workspace(ground=0.0)
    plain, meshed = (
        CollisionScene(build_robot(boxes().replace(box, shape), RobotSettings()), workspace)
        for shape in (thin, cone)
    )
    for q in rng.uniform(-2.5, 2.5, (50, 3)):
        np.testing.assert_allclose(meshed._distances(q), plain._distances(q), atol=1e-5)


def test_a_vertex_that_is_no_number_leaves_its_body_unchecked(tmp_path):
    text = meshes(tmp_path / 'meshes', 'stl', f'file://{tmp_path}/meshes')
    write_stl(tmp_path / 'meshes' / '3.stl', np.where(CORNERS > 0.0, np.nan, 0.0), FACES)
    scene = CollisionScene(build_robot(text, RobotSettings()), Workspace(ground=0.0))
    found = scene.unchecked['collision_geometry']
    assert len(found.values['links']) == 1 and '/3.stl)' in found.values['links'][0]


def test_a_mesh_that_is_missing_leaves_its_link_alone_unchecked(tmp_path, rng):
    folder = tmp_path / 'meshes'
    text = meshes(folder, 'stl', f'file://{folder}')
    whole = CollisionScene(build_robot(text, RobotSettings()), Workspace(ground=0.0))
    (folder / '3.stl').unlink()
    partial = CollisionScene(build_robot(text, RobotSettings()), Workspace(ground=0.0))
    found = partial.unchecked['collision_geometry']
    assert select([found], 'links_unreadable') and len(found.values['links']) == 1
    assert 'Meshes of link_3 (file://' in render(found) and '/3.stl) cannot' in render(found)
    assert not whole.unchecked.get('collision_geometry')

    def pairs(scene):
        bodies = [body.name for body in scene.geometry.geometryObjects]
        return [(bodies[p.first], bodies[p.second]) for p in scene.geometry.collisionPairs]

    def without(scene, bodies):
        return [k for k, pair in enumerate(pairs(scene)) if not bodies.intersection(pair)]

    # Balls at its joint and the tool, which is its end, are kept from the ground in its place.
    balls = {'joint_3', 'link_3'}
    assert {body for pair in pairs(partial) if 'ground' in pair for body in pair} >= balls
    kept, others = without(whole, {'link_3_0'}), without(partial, balls)
    assert 0 < len(kept) < len(pairs(whole))
    assert sorted(pairs(partial)[k] for k in others) == sorted(pairs(whole)[k] for k in kept)
    order = [pairs(whole).index(pairs(partial)[k]) for k in others]
    for q in rng.uniform(-2.5, 2.5, (20, 3)):
        np.testing.assert_array_equal(partial._distances(q)[others], whole._distances(q)[order])


def test_designs_keep_meshes_apart(tmp_path):
    text = meshes(tmp_path / 'meshes', 'stl', f'file://{tmp_path}/meshes')
    robot = build_robot(text, RobotSettings())
    workspace = Workspace(distance=0.03)
    excitation = quick(
        start=(0.0, 0.4, 1.2), workspace=workspace, validation=ValidationSettings(kind='none')
    )
    result = design(robot, excitation)
    times = np.linspace(0.0, excitation.period, 500)
    plain = CollisionScene(build_robot(boxes(), RobotSettings()), workspace)
    distances = [plain._distances(q).min() for q in result.trajectory.sample(times).q]
    assert min(distances) >= 0.03 - 1e-4
    assert result.usage.distance == pytest.approx(min(distances), abs=2e-3)
    values = result.trajectory.to_dict()
    folded = Trajectory.from_dict({**values, 'start': [0.0, 0.6, 2.95]})
    still = Trajectory.from_dict(
        {**folded.to_dict(), 'coefficients': (0.0 * folded.coefficients).tolist()}
    )
    with pytest.raises(CollisionError, match=r'link_\d_0 and link_\d_0 are'):
        check_trajectory(robot, still, excitation)


def test_meshes_that_are_not_found_are_said(tmp_path):
    text = meshes(tmp_path / 'arm_description', 'stl', 'package://arm_description')
    scene = CollisionScene(build_robot(text, RobotSettings()), Workspace())
    assert select([scene.unchecked['collision_geometry']], 'collision_geometry_unreadable')
    assert scene.empty
