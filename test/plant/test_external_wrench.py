"""A push on a link does to the joints what its Jacobian says."""

from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest

from robotid_ros.exceptions import ConfigurationError, UnknownNameError
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import SimulationSettings

URDF = (Path(__file__).resolve().parents[2] / 'urdf' / 'ur10.urdf').read_text()


@pytest.mark.parametrize('link', ['tool0', 'forearm_link'])
def test_joints_bear_what_the_jacobian_says(link):
    rng = np.random.default_rng(1)
    physics = Physics(URDF, SimulationSettings(coulomb=(0.0,), viscous=(0.0,)))
    model = pinocchio.buildModelFromXML(URDF)
    data = model.createData()
    for q in rng.uniform(-1.5, 1.5, (3, 6)):
        physics.set_state(q, np.zeros(6))
        before = np.array(physics.data.qacc)
        wrench = rng.uniform(-20.0, 20.0, 6)
        physics.push(link, wrench)
        physics.apply_wrench()
        mujoco.mj_forward(physics.model, physics.data)
        borne = physics.mass_matrix() @ (physics.data.qacc - before)
        J = pinocchio.computeFrameJacobian(model, data, q, model.getFrameId(link), pinocchio.LOCAL)
        np.testing.assert_allclose(borne, J.T @ wrench, atol=1e-6)
        physics.push(link, np.zeros(6))
        physics.apply_wrench()
    assert not physics.data.xfrc_applied.any()


def test_only_what_moves_can_be_pushed():
    physics = Physics(URDF, SimulationSettings())
    for link in ('base_link', 'nothing', ''):
        with pytest.raises(UnknownNameError, match='moving link'):
            physics.push(link, [1.0] * 6)
    with pytest.raises(ConfigurationError, match='finite'):
        physics.push('tool0', [float('nan')] * 6)
