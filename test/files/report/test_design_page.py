"""The page of a design: what moves in it is where Pinocchio puts it; its verdict; its size."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.findings import finding
from robotid_ros.exceptions import FileError, TrajectoryError
from robotid_ros.files.report.design import (
    design_page,
    first_screen,
    joint_curves,
    motions_of,
    moving_arm,
    RATE,
    UNIT,
)
from robotid_ros.files.report.page import page_beside, save_page

from .designs import designed, OBSTACLES
from .test_page import MOST_BYTES, Page


def points_of(arm, name):
    """Return the outermost points of a body, (k, 3), and its frame."""
    body = next(body for body in arm['bodies'] if body['name'] == name)
    return np.array(body['points']), body['frame']


def test_frames_are_those_of_pinocchio():
    design, robot, configuration = designed('ur10')
    arm = moving_arm(robot, motions_of(design), configuration.excitation.workspace)
    data = robot.model.createData()
    assert list(arm['motions']) == ['excitation', 'validation']
    for name, motion in motions_of(design).items():
        frames = UNIT * np.array(arm['motions'][name]['frames'], dtype=float)
        assert len(frames) == RATE * motion.period + 1
        times = np.linspace(0.0, motion.period, len(frames))
        for q, row in list(zip(motion.sample(times).q, frames, strict=True))[::40]:
            pin.framesForwardKinematics(robot.model, data, q[robot.order])
            for j, frame in enumerate(row.reshape(robot.n, 3, 4)):
                expected = data.oMi[j + 1].homogeneous[:3]
                np.testing.assert_allclose(frame, expected, atol=UNIT)
            joint, *place = arm['nodes'][-1]
            frame = row.reshape(robot.n, 3, 4)[joint - 1]
            tool = data.oMf[robot.model.getFrameId('tool0')].translation
            np.testing.assert_allclose(frame[:, :3] @ place + frame[:, 3], tool, atol=3 * UNIT)


def test_bodies_are_bounded_by_their_points():
    design, robot, configuration = designed(obstacles=OBSTACLES)
    arm = moving_arm(robot, motions_of(design), configuration.excitation.workspace)
    ball, frame = points_of(arm, 'ball')
    assert frame == 0
    np.testing.assert_allclose(np.linalg.norm(ball - [-0.9, 0.0, 0.5], axis=1), 0.2, atol=1e-4)
    table = points_of(arm, 'table')[0]
    corners = (table - [0.9, 0.0, 0.2]) @ pin.rpy.rpyToMatrix(0.0, 0.0, 0.3)
    np.testing.assert_allclose(np.abs(corners) - [0.2, 0.3, 0.2], 0.0, atol=2e-4)
    post = (points_of(arm, 'post')[0] - [0.0, -0.9, 0.5]) @ pin.rpy.rpyToMatrix(0.0, 0.1, 0.0)
    np.testing.assert_allclose(np.abs(post[:, 2]), 0.5, atol=2e-4)
    np.testing.assert_allclose(np.linalg.norm(post[:, :2], axis=1), 0.05, atol=2e-4)
    assert {b['name'] for b in arm['bodies'] if b['obstacle']} == set(OBSTACLES)
    assert arm['ground'] == 0.0


def test_meshes_are_drawn_by_their_hulls(tmp_path):
    """A tetrahedron of four corners: all of them are outermost."""
    design, robot, configuration = designed('scara')
    corners = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.3]])
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    lines = [f'v {x} {y} {z}' for x, y, z in corners]
    lines += [f'f {a + 1} {b + 1} {c + 1}' for a, b, c in faces]
    (tmp_path / 'link.obj').write_text('\n'.join(lines))
    shape = f'<collision><geometry><mesh filename="{tmp_path}/link.obj"/></geometry></collision>'
    link = robot.model.frames[-1].name
    urdf = robot.urdf.replace(f'<link name="{link}">', f'<link name="{link}">{shape}')
    urdf = urdf.replace(f'<link name="{link}"/>', f'<link name="{link}">{shape}</link>')
    robot = dataclasses.replace(robot, urdf=urdf)
    arm = moving_arm(robot, motions_of(design), configuration.excitation.workspace)
    place = robot.model.frames[-1].placement
    found = (points_of(arm, f'{link}_0')[0] - place.translation) @ place.rotation
    assert sorted(map(tuple, np.round(found, 3) + 0.0)) == sorted(map(tuple, corners))


def test_curves_are_the_motion_and_stay_within_what_the_file_says():
    design, robot, _ = designed('scara')
    drawn = {}
    for name, plot in joint_curves(design, robot).items():
        excitation, *_, limits = (each.data_source.tags[0].data for each in plot.renderers)
        drawn[name] = excitation
        for j in range(robot.n):
            low, high = np.nanmin(limits[f'y{j}']), np.nanmax(limits[f'y{j}'])
            used = np.abs(excitation[f'y{j}'] - 0.5 * (low + high)).max() / (0.5 * (high - low))
            assert used == pytest.approx(getattr(design.usage, name)[j], rel=0.02), name
    assert [*drawn] == ['position', 'velocity', 'acceleration', 'jerk', 'effort']
    # Derivatives belong to each other.
    for name, rate in (('position', 'velocity'), ('acceleration', 'jerk')):
        slope = np.gradient(drawn[name]['y1'], drawn[name]['x'])
        error = np.abs(slope - drawn[rate]['y1'])[2:-2].max()
        assert error < 0.02 * np.abs(drawn[rate]['y1']).max()


def test_the_page_needs_nothing_else_and_is_small(tmp_path):
    design, robot, configuration = designed('ur10')
    # Frames of two minutes would not fit: there are fewer a second.
    slow = design.trajectory.at_speed(1.0 / 12.0)
    design = dataclasses.replace(design, trajectory=slow, validation=slow)
    subject = design, robot, configuration, 'robotid <design>'
    path = save_page('design', tmp_path / 'd.html', *subject)
    text = path.read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.fetched == []
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert len(text.encode()) < MOST_BYTES
    for shown in (slow.hash, '3 × 120 s', 'robotid &lt;design&gt;', 'ground: 0.0', 'type="radio"'):
        assert shown in text, shown


def test_names_are_escaped():
    design, robot, configuration = designed('scara')
    names = ('</script><b>', 'a&b')
    renamed = dataclasses.replace(design.trajectory, joints=names)
    design = dataclasses.replace(design, trajectory=renamed, validation=None)
    robot = dataclasses.replace(robot, joints=names)
    text = design_page(design, robot, configuration)
    assert names[0] not in text and '&lt;/script&gt;&lt;b&gt;' in text and 'a&amp;b' in text
    assert 'value="validation"' not in text


def test_the_verdict_says_what_forbids_the_motion():
    design, _, configuration = designed()
    settings = configuration.excitation
    assert first_screen(design, settings).level == 'good'
    ground = finding('ground_unchecked')
    fair = first_screen(dataclasses.replace(design, unchecked=(ground,)), settings)
    assert fair.level == 'fair' and fair.sentence.endswith('The ground is not checked.')
    assert fair.next_step.startswith('Set excitation.workspace.ground to its height. Or accept')
    short = finding('badly_conditioned', condition=2000.0, most=1000.0)
    poor = first_screen(dataclasses.replace(design, shortcomings=(short,)), settings)
    assert poor.level == 'poor' and poor.next_step.startswith('Lengthen excitation.period')


def test_what_forbids_the_motion_stands_before_it():
    design, robot, configuration = designed('scara')

    def order(changed):
        text = design_page(changed, robot, configuration)
        return text.index('<section id="findings"') < text.index('<section id="motion"')

    assert not order(design)
    assert order(dataclasses.replace(design, unchecked=(finding('ground_unchecked'),)))


def test_a_design_of_another_robot_is_refused(tmp_path):
    design, _, _ = designed('scara')
    _, robot, configuration = designed('arm3')
    with pytest.raises(TrajectoryError, match='design it for this robot'):
        save_page('design', tmp_path / 'x.html', design, robot, configuration)
    assert not list(tmp_path.iterdir())


def test_the_page_has_the_name_of_its_trajectory(tmp_path):
    assert page_beside(tmp_path / 'a.b.yaml') == tmp_path / 'a.b.html'
    for name, words in (('a.html', 'its own page'), ('', 'is a folder'), ('..', 'is a folder')):
        with pytest.raises(FileError, match=words):
            page_beside(name)
