"""An exported controller: its dynamics compiled, beside Pinocchio; what it commands."""

import ctypes
import dataclasses
import subprocess

from identified_models import of_configuration, of_description
import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model.dynamics import model_with
from robotid_ros.core.parameters.carried_body import carrying
from robotid_ros.core.verdict import Verdict
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.export.identified_model import drives_of
from robotid_ros.files.export.ros2_controller import ros2_controller

STATES = 10_000
EMPTY = np.zeros(10)
PAYLOAD = np.array([1.5, 0.02, -0.03, 0.08, 0.004, 0.0005, -0.0002, 0.005, 0.0003, 0.003])
# Loops over states, and the controller's law, for Python.
ENTRY = """
#include "PACKAGE/compensation.hpp"
using namespace PACKAGE;
namespace
{
Compensation law;
Vector vector(const double * from)
{
  Vector values;
  std::copy_n(from, joint_count, values.begin());
  return values;
}
Body body(const double * p)
{
  return carrying(p[0], {p[1], p[2], p[3]}, {p[4], p[5], p[6], p[7], p[8], p[9]});
}
}  // namespace
extern "C" {
void torques(
  int count, const double * q, const double * dq, const double * ddq, const double * payload,
  double * whole, double * weight, double * drag)
{
  for (int k = 0; k < count; ++k) {
    const std::size_t at = k * joint_count;
    Vector tau[3];
    inverse_dynamics(vector(q + at), vector(dq + at), vector(ddq + at), body(payload), tau[0]);
    gravity(vector(q + at), body(payload), tau[1]);
    friction(vector(dq + at), 50.0, tau[2]);
    std::copy(tau[0].begin(), tau[0].end(), whole + at);
    std::copy(tau[1].begin(), tau[1].end(), weight + at);
    std::copy(tau[2].begin(), tau[2].end(), drag + at);
  }
}
void start(const double * efforts, double friction, double share, const double * payload)
{
  law.settings.friction = friction;
  law.settings.effort_share = share;
  law.settings.last = body(payload);
  if (efforts) { law.start(vector(efforts)); } else { law.restart(); }
}
bool update(
  const double * q, const double * dq, const double * effort, const double * acceleration,
  double period, double * efforts)
{
  Input input{vector(q), vector(dq), vector(effort), vector(dq), {}, acceleration != nullptr};
  if (acceleration) { input.acceleration = vector(acceleration); }
  Vector found;
  const bool valid = law.update(input, period, found);
  std::copy(found.begin(), found.end(), efforts);
  return valid;
}
}
"""


def usable(model):
    results = dataclasses.replace(model.results, verdict=Verdict('good', ''))
    return dataclasses.replace(model, results=results)


class Compiled:
    """The C++ of a model's controller that needs no ROS."""

    def __init__(self, folder, model):
        files, self.notes = ros2_controller(usable(model))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (header,) = (folder / 'include').glob('*/dynamics.hpp')
        (folder / 'entry.cpp').write_text(ENTRY.replace('PACKAGE', header.parent.name))
        words = 'g++ -std=c++17 -O2 -Wall -Wextra -Werror -shared -fPIC -Iinclude -o core.so'
        sources = ['src/dynamics.cpp', 'entry.cpp']
        done = subprocess.run([*words.split(), *sources], cwd=folder, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        self.library = ctypes.CDLL(str(folder / 'core.so'))
        self.library.update.restype = ctypes.c_bool

    def torques(self, q, dq, ddq, payload=PAYLOAD):
        """Inverse dynamics, gravity and friction (N, n) each."""
        found = [np.empty_like(q) for _ in range(3)]
        self.library.torques(len(q), *map(pointer, (q, dq, ddq, payload, *found)))
        return found

    def start(self, efforts, friction=0.0, share=1.0, payload=np.zeros(10)):  # noqa: B008
        self.library.start(
            pointer(efforts), *map(ctypes.c_double, (friction, share)), pointer(payload)
        )

    def update(self, q, dq, effort, period=0.0, ddq=None):
        out = np.empty_like(q)
        values = [pointer(x) for x in (q, dq, effort, ddq)]
        return self.library.update(*values, ctypes.c_double(period), pointer(out)), out


def pointer(values):
    if values is None:
        return None
    return np.ascontiguousarray(values).ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def expected(model, q, dq, ddq):
    """Torques of Pinocchio's RNEA for what carries PAYLOAD, with drives, and at rest; friction."""
    robot = model.robot.rigid
    G, order = robot.mimic_jacobian, robot.order
    loaded = model_with(model.robot, carrying(model.robot, model.chi, '', PAYLOAD), armature=False)
    data, rows = loaded.createData(), []
    for speeds, changes in ((dq, ddq), (0.0 * dq, 0.0 * ddq)):
        states = robot.link_positions(q), speeds @ G.T, changes @ G.T
        links = np.array(
            [
                pin.rnea(loaded, data, *(x[order] for x in each))
                for each in zip(*states, strict=True)
            ]
        )
        tau = np.empty_like(links)
        tau[:, order] = links
        rows.append(tau @ G)
    drag, ratios = np.zeros_like(q), dict(zip(robot.joints, np.eye(robot.n), strict=True))
    ratios |= {coupling.name: coupling.ratios for coupling in robot.couplings}
    for name, drive in drives_of(model).items():
        if name not in ratios:  # of a follower
            continue
        r = ratios[name]
        still = drive.stiffness * (q @ r) + drive.offset
        rows[0] += np.outer(drive.inertia * (ddq @ r) + still, r)
        rows[1] += np.outer(still, r)
        speed = dq @ r
        drag += np.outer(drive.damping * speed + drive.friction * np.tanh(50.0 * speed), r)
    return [*rows, drag]


def relative(found, true):
    """Largest difference of a state, over its largest torque."""
    return np.max(np.abs(found - true).max(axis=1) / np.abs(true).max(axis=1))


ROBOTS = ('arm3', 'emps', 'planar_2r_elastic', 'puma560_elastic', 'scara', 'tx40', 'ur10')


@pytest.mark.parametrize('name', ROBOTS)
def test_torques_are_those_of_pinocchio(tmp_path, name):
    model = of_configuration(tmp_path, name)
    compare(tmp_path, model)


def compare(folder, model):
    compiled = Compiled(folder / 'package', model)
    n = len(model.robot.links) - len(model.robot.followers)
    rng = np.random.default_rng(5)
    q, dq, ddq = (rng.uniform(-x, x, (STATES, n)) for x in (np.pi, 3.0, 10.0))
    for found, true in zip(compiled.torques(q, dq, ddq), expected(model, q, dq, ddq), strict=True):
        assert found.shape == true.shape
        if true.any():
            assert relative(found, true) <= 1e-10
        else:
            assert not found.any()


LINK = (
    '<link name="{}"><inertial><origin xyz="0.1 0.02 0.05"/><mass value="1.5"/><inertia '
    'ixx="0.02" ixy="0.001" ixz="0.002" iyy="0.03" iyz="-0.001" izz="0.025"/></inertial></link>'
)
JOINT = (
    '<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}_link"/>'
    '<origin xyz="0.2 0.05 0.3" rpy="{rpy}"/><axis xyz="{axis}"/>'
    '<limit lower="-2" upper="2" velocity="3" effort="50"/>{mimic}</joint>'
)


def tree(*joints):
    """Return a description of joints: name, kind, parent, rpy, axis, what it mimics."""
    keys = ('name', 'kind', 'parent', 'rpy', 'axis', 'mimic')
    parts = [JOINT.format(**dict(zip(keys, joint, strict=True))) for joint in joints]
    links = [LINK.format(name) for name in ('base', *(f'{joint[0]}_link' for joint in joints))]
    return f'<robot name="9 tree">{"".join(links + parts)}</robot>'


MIMIC = '<mimic joint="grip" multiplier="-0.5" offset="0.2"/>'
TREE = tree(
    ('turn', 'revolute', 'base', '0.2 0 0.3', '1 2 3', ''),
    ('left', 'prismatic', 'turn_link', '0 0.4 0', '0 -1 0', ''),
    ('grip', 'revolute', 'left_link', '0 0 0', '-1 0 0', ''),
    ('right', 'revolute', 'turn_link', '0 0 1', '0 1 0', ''),
    (
        'jaw',
        'revolute',
        'right_link',
        '0 0 1',
        '1 0 0',
        '<mimic joint="grip" multiplier="-0.5" offset="0.2"/>',
    ),
)


def test_branches_skew_axes_and_followers(tmp_path):
    model = of_description(tmp_path, TREE)
    assert [follower.name for follower in model.robot.followers] == ['jaw']
    compare(tmp_path, model)
    assert (tmp_path / 'package/include/robot_9_tree_dynamics').is_dir()


@pytest.fixture(scope='module')
def arm(tmp_path_factory):
    """Return a compiled controller, its model, and a state of the robot."""
    folder = tmp_path_factory.mktemp('arm3')
    model = of_configuration(folder, 'arm3')
    return (
        Compiled(folder / 'package', model),
        model,
        *np.array([[0.3, -0.5, 0.7], [0.4, 0.2, 0.1]]),
    )


def test_efforts_begin_where_they_are_and_grow_within_the_ramp(arm):
    compiled, _, q, dq = arm
    present, zero = np.array([1.0, -2.0, 3.0]), np.zeros(3)
    compiled.start(present, friction=0.4)
    _, weight, drag = (x[0] for x in compiled.torques(q[None], dq[None], dq[None], EMPTY))
    wanted = weight + 0.4 * drag
    rows = [compiled.update(q, dq, zero, 0.01 * (k > 0)) for k in range(102)]
    assert all(valid for valid, _ in rows)
    efforts = np.array([each for _, each in rows])
    np.testing.assert_allclose(efforts[0], present)
    np.testing.assert_allclose(efforts[-1], wanted)
    assert (np.diff(efforts, axis=0) * np.sign(wanted - present) >= -1e-12).all()
    assert np.abs(np.diff(efforts, axis=0)).max() <= 0.016 * np.abs(wanted - present).max()
    # Another payload takes effect without a jump.
    compiled.start(None, friction=0.4, payload=PAYLOAD)
    np.testing.assert_allclose(compiled.update(q, dq, zero)[1], efforts[-1])
    loaded = compiled.torques(q[None], dq[None], dq[None])[1][0] + 0.4 * drag
    np.testing.assert_allclose(compiled.update(q, dq, zero, 1.0)[1], loaded)


def test_it_adds_to_the_controller_before_within_the_limits(arm):
    compiled, model, q, dq = arm
    ddq, limits = np.array([1.0, -2.0, 3.0]), model.robot.limits.effort
    compiled.start(np.zeros(3), share=1.0)
    effort = 0.01 * limits
    whole = compiled.torques(q[None], dq[None], ddq[None], EMPTY)[0][0]
    _, found = compiled.update(q, dq, effort, 1.0, ddq)
    np.testing.assert_allclose(found, np.clip(effort + whole, -limits, limits))
    compiled.start(np.zeros(3), share=0.5)
    for sign in (1.0, -1.0):
        valid, found = compiled.update(q, dq, sign * 10.0 * limits, 1.0)
        assert valid
        np.testing.assert_allclose(found, 0.5 * sign * limits)


@pytest.mark.parametrize('value', [np.nan, np.inf])
@pytest.mark.parametrize('place', range(5))
def test_what_is_not_a_number_stops_it(arm, value, place):
    compiled, _, q, dq = arm
    values = [q.copy(), dq.copy(), np.ones(3), np.ones(3), PAYLOAD.copy()]
    values[place][0] = value
    q, dq, effort, ddq, payload = values
    compiled.start(np.ones(3), payload=payload)
    valid, found = compiled.update(q, dq, effort, 0.5, ddq)
    assert not valid and not found.any()
    # Nothing of it stays.
    compiled.start(None)
    valid, found = compiled.update(np.zeros(3), np.zeros(3), np.zeros(3))
    assert valid
    np.testing.assert_allclose(found, 1.0)


def test_unusable_results_give_no_controller(arm):
    _, model, *_ = arm
    with pytest.raises(ConfigurationError, match=r'no controller is written: .* unusable'):
        ros2_controller(model)


def test_springs_are_said_to_be_left_out(tmp_path):
    _, notes = ros2_controller(usable(of_configuration(tmp_path, 'puma560_elastic')))
    assert any('springs between motor and link' in note for note in notes)
