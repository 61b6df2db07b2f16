"""`robotid init` writes a configuration that runs with no line edited."""

from dataclasses import replace
from pathlib import Path
import re
import shutil

import numpy as np
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.setup.robot_setup import complete_limits
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.export.identified_model import is_physical, own_bodies
from robotid_ros.files.robot_description import repair_inertials
from robotid_ros.files.trajectory_file import read_design

from .conftest import unwrapped

pytestmark = pytest.mark.usefixtures('without_bokeh')
URDF = Path(__file__).resolve().parents[2] / 'urdf'
JOINT = '<joint name="foot" type="fixed"><parent link="{}"/><child link="base_link"/></joint>'
BOX = """solid box
facet normal 0 0 1 outer loop vertex 0 0 0 vertex 0.1 0 0 vertex 0 0.1 0 endloop endfacet
facet normal 0 0 1 outer loop vertex 0 0 0 vertex 0 0.1 0 vertex 0 0 0.1 endloop endfacet
facet normal 0 0 1 outer loop vertex 0 0 0 vertex 0 0 0.1 vertex 0.1 0 0 endloop endfacet
facet normal 0 0 1 outer loop vertex 0.1 0 0 vertex 0 0.1 0 vertex 0 0 0.1 endloop endfacet
endsolid box"""


def designed(configuration, run):
    """Design for a moment: how good it is, 0 or 3, depends on the machine."""
    assert run('design', configuration, '--time-limit', 0.5)[0] in (0, 3)


def test_a_design_follows_with_no_line_edited(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(URDF / 'arm3.urdf', tmp_path / 'mine.urdf')
    code, out, err = run('init', 'mine.urdf')
    assert (code, err) == (0, '')
    assert '3 joints: joint_1, joint_2, joint_3; tool tool0' in out and 'written  mine.yaml' in out
    assert 'The description has no acceleration limit: full speed in 0.5 s.' in out
    assert load('mine.yaml').robot.urdf == str(tmp_path / 'mine.urdf')
    designed('mine.yaml', run)
    assert read_design('trajectory.yaml').usage.distance > 0.0


def test_a_description_without_inertials_is_set_up_by_its_mass(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (URDF / 'ur10.urdf').read_text()
    bare = re.sub('<inertial>.*?</inertial>', '', text, flags=re.DOTALL)
    Path('bare.urdf').write_text(re.sub('effort="[^"]+"', 'effort="0"', bare))
    code, _, err = run('init', 'bare.urdf')
    assert code == 1 and 'set robot.mass (--mass of robotid init)' in err
    assert not Path('bare.yaml').exists()
    code, out, _ = run('init', 'bare.urdf', '--mass', 33)
    said = ' '.join(out.split())
    assert code == 0 and '33 kg are shared out' in said
    assert 'Before a real robot moves, make these checkable, or accept them:' in said
    assert 'excitation.accept_unchecked: [masses]' in said
    configuration = load('bare.yaml')
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    assert robot.assumed_inertials
    assert configuration.excitation.accept_unchecked == ()
    # What its efforts may be is of the size of what the real arm needs, and above.
    real = build_robot(text, RobotSettings())
    limits = replace(robot.limits, lower=real.limits.lower, upper=real.limits.upper)
    needed = complete_limits(replace(real, limits=limits), configuration.excitation).effort
    assert np.all(robot.limits.effort[:3] > needed[:3])
    assert np.all(robot.limits.effort[:3] < 10.0 * needed[:3])
    designed('bare.yaml', run)
    assert max(read_design('trajectory.yaml').usage.effort) < 1.0


def test_meshes_above_the_description_are_found_by_all(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = tmp_path / 'ws' / 'arm_description'
    (package / 'urdf').mkdir(parents=True)
    (package / 'meshes').mkdir()
    (package / 'meshes' / 'box.stl').write_text(BOX)
    text = (URDF / 'arm3.urdf').read_text()
    start = text.index('<cylinder', text.index('<collision>'))
    end = text.index('/>', start) + 2
    mesh = '<mesh filename="package://arm_description/meshes/box.stl"/>'
    (package / 'urdf' / 'arm.urdf').write_text(text[:start] + mesh + text[end:])
    assert run('init', package / 'urdf' / 'arm.urdf')[0] == 0
    configuration = load('arm.yaml')
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    scene = CollisionScene(robot, configuration.excitation.workspace)
    assert not scene.unchecked.get('collision_geometry')


def test_xacro_is_run_and_named_as_the_description(run, tmp_path, monkeypatch):
    pytest.importorskip('xacro')
    monkeypatch.chdir(tmp_path)
    text = (URDF / 'scara.urdf').read_text()
    inside = text.index('<robot'), text.index('>', text.index('<robot'))
    head = text[inside[0] : inside[1]] + ' xmlns:xacro="http://www.ros.org/wiki/xacro">'
    (tmp_path / 'arm.urdf.xacro').write_text(head + text[inside[1] + 1 :])
    assert run('init', 'arm.urdf.xacro')[0] == 0
    configuration = load('arm.yaml')
    assert configuration.robot.urdf.endswith('arm.urdf.xacro')
    assert '<robot' in (read_urdf(configuration) or '')


def xacro(tmp_path, text):
    """Write the source of a xacro around the elements of a description."""
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text(f'<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro">{text}</robot>')
    return path


def test_arguments_of_a_xacro_are_taken_as_xacro_takes_them(run, tmp_path, monkeypatch):
    pytest.importorskip('xacro')
    monkeypatch.chdir(tmp_path)
    inside = (URDF / 'scara.urdf').read_text().split('>', 1)[1]
    inside = inside[inside.index('<link') : inside.rindex('</robot>')]
    path = xacro(tmp_path, '<link name="$(arg first)"/>' + JOINT.format('$(arg first)') + inside)
    code, _, err = run('init', path)
    assert code == 1 and 'add first:=VALUE' in err and not Path('arm.yaml').exists()
    # Behind options too, where argparse alone expects no more of them.
    assert run('init', path, '--force', 'first:=ground')[0] == 0
    assert 'name="ground"' in (read_urdf(load('arm.yaml')) or '')
    code, _, err = run('init', path, 'first:=ground')
    assert code == 1 and 'exists already' in err
    code, _, err = run('init', 'arm_description.urdf', 'first:=x', '-o', 'other.yaml')
    assert code == 1 and 'is no xacro' in err and not Path('other.yaml').exists()


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('<xacro:include filename="$(find nowhere)/x.xacro"/>', "package 'nowhere' not found"),
        ('<xacro:include filename="lost.xacro"/>', "lost.xacro'"),
        ('<link name="${foo}"/>', "name 'foo' is not defined"),
        ('<link name="$(eval 1+)"/>', 'invalid syntax'),
        ('<xacro:foo/>', 'unknown macro name'),
        ('<link name="$(env NOWHERE)"/>', "environment variable 'NOWHERE' is not set"),
        ('<link>', 'mismatched tag'),
    ],
)
def test_what_xacro_refuses_is_one_sentence(run, tmp_path, monkeypatch, text, words):
    pytest.importorskip('xacro')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    code, out, err = run('init', xacro(tmp_path, text), '-o', tmp_path / 'arm.yaml')
    assert (code, out, err.count('\n')) == (1, '', 1)
    assert words in err and err.count(words) == 1 and '<class' not in err, err


def test_inertias_that_no_body_has_are_named_and_repaired(run, tmp_path, monkeypatch):
    """Each repaired body is possible, with margin, and the others are as they were."""
    monkeypatch.chdir(tmp_path)
    text = (URDF / 'arm3.urdf').read_text()
    links = re.findall(r'<link name="(\w+)">\s*<inertial>', text)
    for link, iyy in zip(links[-2:], (0.1, -0.2), strict=True):
        head, tail = text.split(f'<link name="{link}">')
        wrong = f'<inertia ixx="1" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="0.5"/>'
        tail = re.sub('<inertia .*?/>', wrong, tail, count=1, flags=re.DOTALL)
        text = f'{head}<link name="{link}">{tail}'
    Path('bad.urdf').write_text(text)
    code, out, _ = run('init', 'bad.urdf')
    said = ' '.join(out.split())
    assert code == 0 and 'or add --repair inertias' in said
    assert f'no body has the inertial of {links[-2]}: moments of inertia 0.1, 0.5, 1' in said
    assert 'which no body has' in said and load('bad.yaml').robot.urdf.endswith('bad.urdf')
    code, out, _ = run('init', 'bad.urdf', '--repair', 'inertias', '--force')
    assert code == 0 and f'repaired {links[-1]}: moments of inertia -0.2, 0.5, 1' in unwrapped(out)
    bodies = own_bodies(read_urdf(load('bad.yaml')) or '')
    assert all(is_physical(bodies[name]) for name in links)
    assert Path('bad.urdf').read_text() == text
    for name, body in own_bodies(text).items():
        if name not in links[-2:]:
            np.testing.assert_allclose(bodies[name], body)
        else:
            assert bodies[name][3, 3] == pytest.approx(body[3, 3])
            np.testing.assert_allclose(bodies[name][3], body[3])
    assert repair_inertials(Path('bad_description.urdf').read_text())[1] == {}


def test_a_last_link_without_mass_becomes_a_small_body():
    urdf = (URDF / 'scara.urdf').read_text()
    link = re.findall(r'<link name="(\w+)">\s*<inertial>', urdf)[-1]
    empty = re.sub(f'(<link name="{link}">).*?</inertial>', r'\1', urdf, flags=re.DOTALL)
    assert repair_inertials(empty)[1] == {}
    repaired, sentences = repair_inertials(empty, [link])
    assert list(sentences) == [link] and 'no mass' in sentences[link]
    assert is_physical(own_bodies(repaired)[link] * 1e3)


def test_rounding_errors_of_a_point_mass_are_not_named():
    urdf, zero = (URDF / 'scara.urdf').read_text(), 'ixx="0" ixy="0" ixz="0" iyy="0" iyz="0"'
    for izz, count in (('-5e-20', 0), ('-5e-6', 1)):
        body = f'<inertia {zero} izz="{izz}"/>'
        point = re.sub('<inertia .*?/>', body, urdf, count=1, flags=re.DOTALL)
        assert len(repair_inertials(point)[1]) == count


def test_nothing_is_replaced_unasked(run, tmp_path):
    path = tmp_path / 'arm.yaml'
    path.write_text('precious')
    code, out, err = run('init', URDF / 'scara.urdf', '-o', path)
    assert (code, out) == (1, '') and '--force' in err
    assert path.read_text() == 'precious'
    assert run('init', URDF / 'scara.urdf', '-o', path, '--force')[0] == 0
    assert load(path).robot.name == 'scara'


@pytest.mark.parametrize(
    ('text', 'options', 'words'),
    [
        (None, (), 'no such file'),
        ('', (), 'is empty'),
        ('no xml', (), 'not valid XML'),
        ('<robot name="a"><link name="b"/></robot>', (), 'no driven joint'),
        ('scara', ('--tip', 'nowhere'), "unknown link 'nowhere'"),
        ('scara', ('--joints', 'a,b'), "'a'"),
        ('scara', ('--joints', 'joint_1', '--tip', 'tool0'), 'give one of them'),
    ],
)
def test_bad_input_is_one_sentence(run, tmp_path, text, options, words):
    urdf, path = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    if text is not None:
        urdf.write_text((URDF / 'scara.urdf').read_text() if text == 'scara' else text)
    code, out, err = run('init', urdf, '-o', path, *options)
    assert (code, out) == (1, '') and words in err and err.count('\n') == 1
    assert 'a bug' not in err and not path.exists()


def test_the_keys_are_explained(run):
    code, out, _ = run('init', '--keys')
    assert code == 0 and out.startswith('# Every key of a configuration') and 'time_limit:' in out
