"""The data of a closed-loop method: robot, control law, reference and measured torque."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...exceptions import DivergenceError
from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.gaussian_prior import GaussianPrior
from .laws.control_loop import ControlLaw, Desired
from .reference_and_torque import bandwidth, Torque
from .settings import ReplaySettings
from .simulation.closed_loop import (
    joint_inertia,
    mass_matrices,
    simulate,
    Simulation,
    smallest_eigenvalue,
)
from .simulation.direct_model import direct_model

Motion = tuple[Array, Array, Array]

# Smallest eigenvalue of M, scaled to a unit diagonal, that counts as positive: above rounding.
MIN_EIGENVALUE = 1e-9
# Share of the recording that may be left out for the transient of an integral: long integral times
# would leave no data.
MAX_TRANSIENT_SHARE = 0.2
# Cut-off of the decimation over the bandwidth of the motion, so that its harmonics pass.
CUTOFF_RATIO = 5.0
# Rows per row that is kept, at most: slow motions have to leave enough rows to estimate the noise.
MAX_DECIMATION = 50


@dataclasses.dataclass(frozen=True)
class ReplayProblem:
    """
    A recorded motion that can be simulated with any parameters.

    Attributes
    ----------
    robot : the model
    base : its base parameters
    law : how the robot was controlled
    desired : (K, n) reference at each update of the law
    torque : measured torque, at some of these updates
    settings : of the replay
    measured : (K, n) measured q, dq, ddq for comparison alone, or None
    external : (K, n) known torque that acted besides the motors', or None
    a_priori_inertia : (n,) joint inertias J_ap that the law was tuned for, None: unknown
    prior : of the base parameters, or None
    method : what is fitted, and along which sensitivities: 'didim', 'clie', 'cloe' or 'oe'
    restart : updates after which a simulation starts anew from `desired`; 0: never
    start : time of the first update [s, the recording's clock]

    """

    robot: Robot
    base: BaseParameters
    law: ControlLaw
    desired: Desired
    torque: Torque
    settings: ReplaySettings = dataclasses.field(default_factory=ReplaySettings)
    measured: Motion | None = None
    external: Array | None = None
    a_priori_inertia: Array | None = None
    prior: GaussianPrior | None = None
    method: str = 'didim'
    restart: int = 0
    start: float = 0.0

    @property
    def time(self) -> Array:
        """Times of the updates (K,) [s]."""
        return self.start + np.arange(self.desired.q.shape[0]) / self.law.rate

    @property
    def decimation(self) -> int:
        """One row in so many is kept of the observation matrix."""
        if self.settings.decimation:
            return self.settings.decimation
        cutoff = (
            CUTOFF_RATIO * float(bandwidth(self.desired.dq, self.law.rate).max()) / (2.0 * np.pi)
        )
        return int(max(1, min(MAX_DECIMATION, 0.4 * self.torque.rate / cutoff)))

    @property
    def filtered(self) -> bool:
        """Whether rows are low-passed before decimation: not where a simulation starts anew."""
        return self.decimation > 1 and not self.restart

    @property
    def transient(self) -> float:
        """
        Time after which the initial state of the loops has decayed [s].

        `5/ω_n`, and as many time constants of an integral as fit into a part of the recording.
        """
        if self.a_priori_inertia is None or self.restart:
            return 0.0
        loop = 1.0 / float(self.loop_dynamics(self.a_priori_inertia)[0].min())
        longest = MAX_TRANSIENT_SHARE * self.desired.q.shape[0] / self.law.rate
        integral = min(self.settings.transient * float(self.law.integral_time.max()), longest)
        return max(self.settings.transient * loop, integral)

    def standard_parameters(self, value: Array) -> Array:
        """
        Return standard parameters (p,) that are equivalent to base parameters `value` (b,).

        They differ from the prior only in the columns that represent the base parameters.
        """
        chi = self.filled_prior()
        chi[self.base.columns] += value - self.base.of(chi)
        return chi

    def filled_prior(self) -> Array:
        """Return the prior (p,); links without a mass get 1 kg, a direct model needs one."""
        chi = self.robot.prior.copy()
        masses = self.robot.first_columns + 9
        chi[masses] = np.where(chi[masses] > 0.0, chi[masses], 1.0)
        return chi

    def inertia(self, chi: Array) -> Array:
        """
        Return J_j (n,) of standard parameters (DIDIM eq. 51).

        Raises
        ------
        DivergenceError : M(q) is not positive definite somewhere on the reference

        """
        mass = mass_matrices(direct_model(self.robot, chi), self.desired.q)
        least = smallest_eigenvalue(mass)
        if not least > MIN_EIGENVALUE:
            joint = self.robot.joints[int(np.argmin(np.diagonal(mass, axis1=1, axis2=2).min(0)))]
            raise DivergenceError(
                'the mass matrix M(q) of these parameters is not positive definite (smallest '
                f'eigenvalue {least:.2g} of its scaled form, weakest at {joint}): the motion does '
                'not excite the inertias enough, or the torques are not those of this robot',
                0,
            )
        return joint_inertia(mass)

    def simulate(self, chi: Array, gain_scale: Array) -> Simulation:
        """Run the loop with standard parameters `chi` (p,) and gains times `gain_scale` (n,)."""
        return simulate(
            direct_model(self.robot, chi),
            self.law.scaled(gain_scale),
            self.desired,
            external=self.external,
            integrator=self.settings.integrator,
            step=self.settings.step,
            restart=self.restart,
        )

    def loop_dynamics(self, inertia: Array) -> tuple[Array, Array]:
        """Return ω_n [rad/s] and ζ (n,) of loops with joint inertias (n,) (DIDIM eq. 56)."""
        omega = np.sqrt(np.maximum(self.law.stiffness, 0.0) / inertia)
        return omega, self.law.damping / np.maximum(2.0 * omega * inertia, 1e-300)
