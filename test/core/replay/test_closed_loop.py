"""The loop around the integrator: steps of an update, restarts, divergence."""

import numpy as np
import pinocchio
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.replay.control_laws import RecordedTorque
from robotid_ros.core.replay.simulation import DirectModel, simulate, smallest_eigenvalue
from robotid_ros.exceptions import DivergenceError

from .arms import arm, stepper

RATE = 100.0


def gantry():
    """Return two rails across each other, which carry 1 kg without friction."""
    model, parent, placement = pinocchio.Model(), 0, pinocchio.SE3.Identity()
    for kind in (pinocchio.JointModelPX(), pinocchio.JointModelPY()):
        parent = model.addJoint(parent, kind, placement, f'rail_{parent}')
    model.appendBodyToJoint(parent, pinocchio.Inertia(1.0, np.zeros(3), np.eye(3)), placement)
    return DirectModel(model, np.zeros((2, 2)), np.zeros(2), np.empty((0, 2)), np.empty(0))


def run_of(direct, torque, q, dq, **settings):
    """Simulate a robot under torques that do not depend on its state."""
    desired = Motion(q, dq, 0.0 * q)
    return simulate(direct, RecordedTorque(RATE, torque), desired, **settings)


def test_each_update_is_so_many_steps_of_the_integrator():
    direct, rng = arm(friction=(0.0, 0.0)), np.random.default_rng(0)
    torque, q, dq = rng.normal(size=(3, 20, 2))
    run = run_of(direct, torque, q, dq, step=0.005, restart=8)
    advance = stepper(direct, 0.005)
    for k in range(20):
        if k % 8 == 0:
            state = q[k], dq[k]
        np.testing.assert_array_equal([run.q[k], run.dq[k], run.tau[k]], [*state, torque[k]])
        for _ in range(2):
            state = advance(*state, torque[k])[:2]


@pytest.mark.parametrize('sign', [1.0, -1.0])
@pytest.mark.parametrize(
    ('travel', 'joint', 'bound'), [(0.0, 1, 1e-3), (4.0, 0, 40.0), (4.0, 1, 4.0)]
)
def test_a_joint_has_diverged_at_ten_times_its_travel(travel, joint, bound, sign):
    """Where it is at rest, at ten times a tenth of what others travel; looked at each second."""
    count = 400
    q, dq = np.full((count, 2), 1e3), np.zeros((count, 2))
    q[:, 0] += np.linspace(0.0, travel, count)
    dq[:, 0] = travel * RATE / (count - 1)
    # At the checks after 1 and 2 s: 0.6 and 2.4 times the bound.
    torque = np.zeros((count, 2))
    torque[:, joint] = sign * 1.2 * bound
    with pytest.raises(DivergenceError, match=f'at 2 s, joint {joint + 1} first'):
        run_of(gantry(), torque, q, dq, step=1.0 / RATE)


def test_definiteness_does_not_depend_on_units():
    """Of both signs; [[1, r], [r, 1]] has the eigenvalues 1 ± r."""
    units = np.array([1e3, 1e-4, 1.0])
    for diagonal in ((1.0, 1.0, 1.0), (1.0, -2.0, 3.0)):
        mass = np.diag(diagonal)[None] + 0.3 * (1.0 - np.eye(3))
        least = smallest_eigenvalue(mass)
        assert smallest_eigenvalue(mass * np.outer(units, units)) == pytest.approx(least)
        assert (least > 0.0) == (np.linalg.eigvalsh(mass).min() > 0.0)
    assert smallest_eigenvalue(np.array([[[4.0, 1.0], [1.0, 1.0]]])) == pytest.approx(0.5)
    assert not smallest_eigenvalue(np.zeros((1, 2, 2))) > 0.0
