"""Coulomb friction that grows with the load: the load of the links, iterated around the fit."""

from collections.abc import Iterable
import dataclasses

import numpy as np

from ...exceptions import ConfigurationError
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..identification_settings import IdentificationSettings, SIMULATED
from ..model.base_parameters import base_parameters, BaseParameters
from ..model.parameters import INERTIAL
from ..model.robot import ElasticRobot, Robot
from ..parameters.standard import basic_solution
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import observe
from ..signals.recording import Recording
from ..timing.delays import prepare_without_delay

# Most iterations, and the relative change of the links' torques that ends them: each step is some
# ten times less than the one before, and no torque is known so well.
MAX_ITERATIONS, TOLERANCE = 20, 1e-3


def iterate_friction_load(
    recording: Recording | Iterable[Recording], robot: Robot, settings: IdentificationSettings
) -> tuple[Robot, list[Finding]]:
    """
    Replace the load of friction that grows with it by that of the identified links.

    τ_f = Fl |τ_l| sign(dq) with τ_l = W_l χ_l, the torque of the links (Hamon, Gautier and Garrec
    2010), is a product of parameters. With the load of an earlier estimate, at first the URDF's,
    it is linear; the estimate gives the next load, until both agree. A rotor inertia that is
    regrouped with a link's counts as load.

    Returns
    -------
    The robot, and notes on what was not possible

    Raises
    ------
    ConfigurationError : such friction is asked of springs, or of a closed-loop simulation

    """
    if not robot.load_dependent:
        return robot, []
    if isinstance(robot, ElasticRobot) or settings.method in (*SIMULATED, 'both'):
        raise ConfigurationError(
            "friction 'load_coulomb' needs rigid joints and a method that simulates nothing: take "
            "it out of robot.friction, or use method 'wls'"
        )
    if not isinstance(recording, Recording):
        return robot, [finding('load_of_urdf')]
    base = base_parameters(robot)
    observed = prepare_without_delay(recording, robot, base, settings.signals)
    system = observed.system
    torque = np.zeros_like(system.Y)
    for _ in range(MAX_ITERATIONS):
        load = link_parameters(robot, base, fit(system, 'wls'))
        previous, torque = torque, system.predict(base.of(load))
        robot = dataclasses.replace(robot, load_parameters=load)
        if np.linalg.norm(torque - previous) <= TOLERANCE * np.linalg.norm(torque):
            return robot, []
        base = base_parameters(robot)
        system = observe(observed.samples, robot, base)
    return robot, [finding('load_not_converged', steps=MAX_ITERATIONS)]


def link_parameters(robot: Robot, base: BaseParameters, estimate: Estimate) -> Array:
    """Return the basic solution (p,) of an estimate, with the parameters of links only."""
    inertial = [p.symbol in INERTIAL for p in robot.parameters]
    return np.where(inertial, basic_solution(base, estimate.value), 0.0)
