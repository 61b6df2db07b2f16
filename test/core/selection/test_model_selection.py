"""What is left open is chosen by what predicts, and only where that is asked for."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.selection.model_selection import select_model
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.signals.samples import SignalSettings

from ..conftest import motion, RATE, URDF

OPEN = IdentificationSettings(essential=False)
PLAIN = {'default': ('viscous', 'coulomb', 'offset')}


def recorded() -> Recording:
    """Record the arm with friction that is smooth at zero, which plain friction is not."""
    terms = {'default': ('viscous', 'smooth_coulomb')}
    constants = {'default': {'tanh_steepness': 15.0}}
    settings = RobotSettings(friction=terms, friction_constants=constants)
    robot = build_robot(URDF, settings)
    chi = np.array(robot.prior)
    for k, parameter in enumerate(robot.parameters):
        chi[k] = {'Fv': 1.0, 'Fc': 4.0, 'Ia': 0.2}.get(parameter.symbol, chi[k])
    time = np.arange(0.0, 20.0, 1.0 / RATE)
    q, dq, ddq = motion(time, 0)
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += np.random.default_rng(0).normal(0.0, 0.02, tau.shape)
    return Recording(robot.joints, time, q, tau)


def test_friction_that_is_smooth_at_zero_is_chosen():
    recording, robot = recorded(), build_robot(URDF, RobotSettings())
    found = identify(recording, robot, OPEN)
    assert found.selection.residual < found.selection.plain_residual
    chosen = [{term.name for term in terms} for terms in found.robot.friction]
    assert all(names & {'smooth_coulomb', 'makkar'} for names in chosen)
    assert found.method in ('ols', 'wls')


def test_what_is_fixed_is_not_searched():
    recording, robot = recorded(), build_robot(URDF, RobotSettings(friction=PLAIN))
    settings = dataclasses.replace(OPEN, method='ols', signals=SignalSettings(cutoff=8.0))
    chosen, found, selection = select_model(recording, robot, settings)
    assert chosen.friction == robot.friction
    assert (found.method, found.signals.cutoff) == ('ols', 8.0)
    assert selection is None or selection.candidate.cutoff == pytest.approx(8.0)


def test_nothing_is_searched_unasked():
    robot = build_robot(URDF, RobotSettings())
    chosen, found, selection = select_model(
        recorded(), robot, IdentificationSettings(selection=False)
    )
    assert selection is None and chosen is robot and found.method == 'wls'
