"""Pinocchio gets the identified robot of a URDF."""

from identified_models import of_configuration, of_description, without
import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.export.identified_model import urdf

from .test_identified_urdf import TOOL


@pytest.mark.parametrize('name', ['ur10', 'tx40', 'scara'])
def test_pinocchio_needs_the_same_efforts(tmp_path, name):
    model = of_configuration(tmp_path, name)
    robot = model.robot
    text, notes = urdf(model)
    other = pin.buildModelFromXML(text)
    order = [robot.joints.index(joint) for joint in list(other.names)[1:]]
    chi = without(robot, model.chi)
    couplings = [coupling.name for coupling in robot.couplings]
    chi[[p.joint in couplings for p in robot.parameters]] = 0.0
    for state in np.random.default_rng(1).uniform(-1.0, 1.0, (5, 3, robot.n)):
        tau = pin.rnea(other, other.createData(), *(x[order] for x in state))
        expected = inverse_dynamics(robot, chi, *state[:, None])[0][order]
        np.testing.assert_allclose(tau, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert ('do not read from a URDF' in notes[0]) == robot.rotor_inertia and notes[0] in text


def test_the_attribute_holds_the_rotor_inertia(tmp_path):
    model = of_configuration(tmp_path, 'scara', rotor_inertia=True)
    for joint in ('1', '2'):
        value = model.chi[model.robot.column(f'Ia{joint}')]
        assert f'armature="{float(value)!r}"' in model.robot.urdf
    # Written again, nothing is written twice.
    again = urdf(model)[0]
    assert again.count('armature=') == 2
    assert again.startswith(model.robot.urdf.rstrip())


def test_dynamics_have_damping_or_friction(tmp_path):
    """Parsers of URDF refuse a <dynamics> that has neither damping nor friction."""
    text = TOOL.replace('<dynamics damping="1"/>', '')
    for terms, count in (((), 1), (('viscous',), 3)):  # one is of Gazebo's
        model = of_description(tmp_path, text, friction={'default': terms})
        assert model.robot.urdf.count('<dynamics') == count
        assert model.robot.urdf.count('armature') == count - 1
