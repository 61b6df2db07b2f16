"""What a closed-loop method needs of a recording, and what is known of its parameters before."""

import dataclasses
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...exceptions import ControllerError, DivergenceError, RecordingError, UnknownNameError
from ..arrays import Array, column_sizes, Indices, interpolated, Mask
from ..excitation.trajectory import Motion, Waypoints
from ..findings import select
from ..identification_settings import ReplaySettings
from ..model.dynamics import inverse_dynamics
from ..model.robot import BaseParameters, Robot
from ..parameters.physical_consistency import (
    BodyPrior,
    consistent_parameters,
    scaled_coordinates,
    SolverError,
)
from ..parameters.standard import nonnegative_columns
from ..regression.delays import hold_delay
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import decimate, GaussianPrior, observe, Rows
from ..signals.filters import power_edge
from ..signals.recording import Controller, Recording, Samples
from .control_laws import control_law_of, CONTROL_LAWS, ControlLaw, RecordedTorque
from .simulation import direct_model, mass_matrices, simulate, Simulation, smallest_eigenvalue

# Share of the power of the reference's velocity below its bandwidth.
BANDWIDTH_POWER = 0.99
# Strides this close to a whole number of updates, relative, are one: stamps jitter by less.
STRIDE_TOLERANCE = 0.02
# Longest gap that is interpolated [s], where it is not 1.5 times the usual spacing.
MAX_GAP = 0.05
# Smallest eigenvalue of M, scaled to a unit diagonal, that counts as positive: above rounding.
MIN_EIGENVALUE = 1e-9
# Time left out at the start, over 1/ω_n of the slowest joint or the longest integral time; and
# the share of the recording that may be left out for the latter: long ones would leave no data.
TRANSIENT, MAX_TRANSIENT_SHARE = 5.0, 0.2
# Cut-off of the decimation over the bandwidth of the motion, so that its harmonics pass.
CUTOFF_RATIO = 5.0
# Rows per row that is kept, at most: slow motions have to leave enough rows to estimate the noise.
MAX_DECIMATION = 50
# Decimated rows at both ends of a run that the transient of the filter distorts.
FILTER_EDGE = 3
# Of an open-loop simulation: time between two starts [s], long enough for torques to move the
# robot by more than encoders are noisy, short enough for it to stay near; rows kept of each.
START_INTERVAL, ROWS_PER_START = 0.5, 25
# Share of the velocity that one update's damping may take, d h/J: the velocity changes its sign
# with every update from 1 on, and the sampled loop is unstable from 2 on.
MAX_DAMPING_PER_UPDATE = 0.5
# Standard deviation of a link's inertial parameters, over their values.
LINK_SIGMA = 0.5
# Least radius of gyration, over its largest, of a link of which that is a share: to describe a
# link as a rod is not to say that its centre of mass is on the axis.
SLENDERNESS = 0.2
# Least own inertia of a joint as a share of J_ap: ω_n at most doubles.
MIN_INERTIA_SHARE = 0.25
# Least relative σ of a torque for a fit with constraints, which takes equations for infeasible.
EXACT = 0.01


class Torque(NamedTuple):
    """Measured torque where it can be compared with a simulated one."""

    row: Array  # (N,) of the simulation in which it acted, fractional where rates differ
    tau: Array  # (N, n) [N·m or N]
    valid: Mask  # (N,) False where it was not measured
    rate: float  # of its rows [Hz]


def reference_on_grid(recording: Recording, rate: float) -> tuple[float, Motion]:
    """
    Return the recorded reference at every update of the controller, at its rate [Hz].

    Where stamps jitter, repeat or are missing, it is interpolated by quintics that meet position,
    velocity and acceleration at both ends, as the controller itself does. A RecordingError where
    it was not recorded. The time of the first update [s, the recording's clock] comes first.
    """
    reference = recording.reference
    if reference is None or reference.time.size < 2:
        raise RecordingError(
            f'{recording.source or "the recording"} does not hold the reference: record the '
            "controller's state, or identify by WLS"
        )
    time, rows = np.unique(reference.time, return_index=True)
    start, time = float(time[0]), time - time[0]
    q, dq, ddq = (value[rows] for value in (reference.q, reference.dq, reference.ddq))
    dq = np.where(np.isfinite(dq), dq, np.gradient(q, time, axis=0))
    ddq = np.where(np.isfinite(ddq), ddq, 0.0)
    # Controllers that have no acceleration in their reference report none, or zeros.
    ddq = np.where(ddq.any(axis=0), ddq, np.gradient(dq, time, axis=0))
    grid = np.minimum(np.arange(round(time[-1] * rate) + 1) / rate, time[-1])
    return start, Waypoints(recording.joints, time, q, dq, ddq).sample(grid)


def torque_on_grid(
    recording: Recording,
    effort: Array,
    start: float,
    updates: int,
    rate: float,
    delay: float = 0.0,
) -> Torque:
    """
    Return the measured torque at the updates that a simulation has rows for.

    `effort` (N, n) is the torque at the recording's stamps [N·m or N], `start` the time of the
    first of so many updates [s], `rate` the controller's [Hz], `delay` from the start of a hold to
    the stamp that reports its torque, in updates.
    """
    time, rows = np.unique(recording.time, return_index=True)
    effort = effort[rows]
    spacing = float(np.median(np.diff(time)))
    stride = max(1.0, spacing * rate)
    stride = round(stride) if abs(stride - round(stride)) < STRIDE_TOLERANCE * stride else stride
    lag = start + delay / rate
    first = np.ceil((time[0] - lag) * rate - 1e-3)
    # Rows coincide with stamps, so that torques are interpolated only where stamps jitter.
    first += stride * np.ceil(max(-first, 0.0) / stride)
    last = min(updates - 1.0, np.floor((time[-1] - lag) * rate + 1e-3))
    row = np.arange(first, last + 1e-9, stride)
    at = lag + row / rate
    tau = interpolated(at, time, effort)
    after = np.clip(np.searchsorted(time, at), 1, time.size - 1)
    close = time[after] - time[after - 1] <= max(MAX_GAP, 1.5 * spacing)
    return Torque(row, np.nan_to_num(tau), close & np.isfinite(tau).all(axis=1), rate / stride)


def interpolate_rows(values: Array, row: Array) -> Array:
    """Interpolate the rows of `values` (K, n) linearly at fractional rows (N,)."""
    low = np.minimum(row.astype(int), values.shape[0] - 1)
    high = np.minimum(low + 1, values.shape[0] - 1)
    share = (row - low)[:, None]
    return values[low] if not share.any() else values[low] * (1 - share) + values[high] * share


def bandwidth(dq: Array, rate: float) -> Array:
    """Return the angular frequency below which the velocity (K, n) has 99 % of its power, (n,)."""
    power = np.abs(np.fft.rfft(dq * np.hanning(dq.shape[0])[:, None], axis=0)) ** 2
    reached = np.maximum(power_edge(power, BANDWIDTH_POWER), 1)
    return np.asarray(2.0 * np.pi * reached * rate / dq.shape[0])


@dataclasses.dataclass(frozen=True)
class ReplayProblem:
    """A recorded motion that can be simulated with any parameters."""

    robot: Robot
    base: BaseParameters
    law: ControlLaw  # by which the robot was controlled
    desired: Motion  # (K, n) reference at each update of the law
    torque: Torque  # measured, at some of these updates
    measured: Motion  # (K, n) for comparison, and for methods that fit positions
    settings: ReplaySettings = dataclasses.field(default_factory=ReplaySettings)
    a_priori_inertia: Array | None = None  # (n,) that the law was tuned for; None: estimated
    method: str = 'didim'  # or 'clie', 'cloe', 'oe', see `simulated_observation`
    restart: int = 0  # updates after which a simulation starts anew from `desired`; 0: never
    start: float = 0.0  # time of the first update [s, the recording's clock]
    samples: Samples | None = None  # the measured motion as it was sampled

    @property
    def time(self) -> Array:
        """Times of the updates (K,) [s]."""
        return self.start + np.arange(len(self.desired.q)) / self.law.rate

    @cached_property
    def decimation(self) -> int:
        """One row in so many is kept of the observation matrix."""
        if self.settings.decimation:
            return self.settings.decimation
        if self.restart:
            return max(1, self.restart // ROWS_PER_START)
        fastest = float(bandwidth(self.desired.dq, self.law.rate).max()) / (2.0 * np.pi)
        cutoff = CUTOFF_RATIO * fastest
        return int(max(1, min(MAX_DECIMATION, 0.4 * self.torque.rate / cutoff)))

    @property
    def transient(self) -> float:
        """Time [s] in which the initial state decays: `5/ω_n`, and time constants of integrals."""
        if self.restart:
            return 0.0
        slowest = TRANSIENT / float(self.loop_dynamics(self.tuned_inertia)[0].min())
        longest = MAX_TRANSIENT_SHARE * self.desired.q.shape[0] / self.law.rate
        return max(slowest, min(TRANSIENT * float(self.law.loop.integral_time.max()), longest))

    @cached_property
    def runs(self) -> list[tuple[Indices, slice]]:
        """Gapless rows of the torque that are fitted, and which of them are kept, decimated."""
        torque, keep = self.torque, self.decimation
        rows = np.flatnonzero(torque.valid & (torque.row >= self.transient * self.law.rate))
        edge = FILTER_EDGE if keep > 1 else 0
        runs = [
            (run, slice(edge, -(-len(run) // keep) - edge))
            for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
            if len(run) > 2 * edge * keep
        ]
        if not runs:
            raise RecordingError(
                'no measured torque is left after the transient and the edges of the filter: '
                'record longer'
            )
        return runs

    @property
    def fitted_rows(self) -> Array:
        """Rows of a simulation (N',) that are fitted, one in `decimation` of the runs."""
        kept = [run[:: self.decimation][kept] for run, kept in self.runs]
        return self.torque.row[np.concatenate(kept)]

    def inertia(self, chi: Array) -> Array:
        """Return J_j (n,) (DIDIM eq. 51); a DivergenceError if M(q) is not positive definite."""
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
        return np.asarray(np.diagonal(mass, axis1=1, axis2=2).max(axis=0))

    def simulate(self, chi: Array, gain_scale: Array | float = 1.0) -> Simulation:
        """Run the loop with standard parameters `chi` (p,) and gains times `gain_scale` (n,)."""
        return simulate(
            direct_model(self.robot, chi),
            self.law.scaled(gain_scale),
            self.desired,
            step=self.settings.step,
            restart=self.restart,
        )

    def loop_dynamics(self, inertia: Array) -> tuple[Array, Array]:
        """Return ω_n [rad/s] and ζ (n,) of loops with joint inertias (n,) (DIDIM eq. 56)."""
        loop = self.law.loop
        omega = np.sqrt(np.maximum(loop.stiffness, 0.0) / inertia)
        return omega, loop.damping / np.maximum(2.0 * omega * inertia, 1e-300)

    def minimum_damped_inertia(self) -> Array:
        """Return the least inertias (n,) with which the sampled loops are well damped."""
        loop, h, most = self.law.loop, 1.0 / self.law.rate, MAX_DAMPING_PER_UPDATE
        return np.maximum(np.maximum(loop.damping * h, loop.stiffness * h**2 / most) / most, 1e-12)

    @cached_property
    def tuned_inertia(self) -> Array:
        """
        J_ap (n,): what the law was tuned for, estimated where that is unknown.

        Each joint's torque is fitted along the reference itself by the prior's rigid body, scaled,
        an inertia of its own, and friction: `τ_j = α τ_prior,j + J q̈_j + F_v q̇_j + F_c sign(q̇_j)
        + o`, α and J never negative: good enough to scale the gains of the first simulation. Where
        friction hides the inertia, the least of a well damped loop is taken: the robot's own loop
        is stable.
        """
        from scipy.optimize import lsq_linear

        if self.a_priori_inertia is not None:
            return self.a_priori_inertia
        robot, torque, keep = self.robot, self.torque, self.decimation
        row, valid = torque.row[::keep], torque.valid[::keep]
        q, dq, ddq = (interpolate_rows(x, row) for x in self.desired)
        rigid = robot.of_links(robot.prior)
        predicted = inverse_dynamics(robot, rigid, q, dq, ddq)
        tau = decimate(torque.tau.T, keep).T
        try:
            inertia = self.inertia(rigid)
        except DivergenceError:
            inertia = np.zeros(robot.n)
        low = np.array([0.0, 0.0, -np.inf, -np.inf, -np.inf])
        fitted = []
        for j, largest in enumerate(inertia):
            y, own, speed, acceleration = (x[valid, j] for x in (tau, predicted, dq, ddq))
            one = np.ones_like(speed)
            columns = np.column_stack([own, acceleration, speed, np.sign(speed), one])
            scale = column_sizes(columns)
            alpha, more = (lsq_linear(columns / scale, y, (low, np.inf)).x / scale)[:2]
            fitted.append(alpha * largest + more)
        return np.maximum(fitted, self.minimum_damped_inertia())

    def filled_prior(self) -> Array:
        """Return the prior (p,); links without a mass get 1 kg, a direct model needs one."""
        chi = self.robot.prior.copy()
        masses = self.robot.first_columns + 9
        chi[masses] = np.where(chi[masses] > 0.0, chi[masses], 1.0)
        return chi

    def standard_parameters(self, value: Array) -> Array:
        """Return standard parameters (p,) equivalent to base ones (b,), else as in the prior."""
        chi = self.filled_prior()
        chi[self.base.columns] += value - self.base.of(chi)
        return chi

    def prior_parameters(self) -> Array:
        """
        Return the prior (p,) with rotor inertias with which the sampled loops are well damped.

        Descriptions leave rotors out, and light wrists without them are not stable at the robot's
        own gains. With least inertias D, the least t D with `M(q) + t D ⪰ D` on the reference is
        added.
        """
        chi, least = self.filled_prior(), self.minimum_damped_inertia()
        mass = mass_matrices(direct_model(self.robot, chi), self.desired.q)
        scaled = mass / np.sqrt(np.outer(least, least))
        missing = max(0.0, 1.0 - float(np.linalg.eigvalsh(scaled).min()))
        chi[own_inertia_columns(self.robot)] += missing * least
        return chi

    @cached_property
    def body_prior(self) -> BodyPrior:
        """Prior of the standard parameters, σ by that of friction and couplings."""
        robot, torque, inertia = self.robot, self.torque, self.tuned_inertia
        effort = np.sqrt(np.mean(torque.tau[torque.valid] ** 2, axis=0))
        speed = np.sqrt(np.mean(self.desired.dq**2, axis=0)).max()
        driven = {joint: [j] for j, joint in enumerate(robot.joints)}
        driven |= {each.name: np.flatnonzero(each.ratios).tolist() for each in robot.couplings}
        sigma = np.zeros(robot.p)
        for k, parameter in enumerate(robot.parameters):
            joints, unit = driven[parameter.joint], parameter.unit
            if parameter.symbol == 'Ia':
                sigma[k] = inertia[joints].max()
            elif unit != '1':
                sigma[k] = effort[joints].max() / (speed if 's/' in unit else 1.0)
            sigma[k] = 1.0 if unit == '1' else max(sigma[k], abs(robot.prior[k]), 1e-12)
        starts, signs = robot.first_columns.tolist(), nonnegative_columns(robot)
        return BodyPrior(self.prior_parameters(), starts, signs, sigma, LINK_SIGMA)

    @cached_property
    def prior(self) -> GaussianPrior:
        """
        Prior of the base parameters, (b,) and (b, b).

        With it a fit is Tikhonov's regularisation, weighted by noise and prior (Gelman et al.
        2013, 14.8): what the motion does not excite stays there, whatever the start.

        Links are those of the description to LINK_SIGMA, in the coordinates of their
        pseudo-inertia. A joint's own inertia is as uncertain as the one that its loop was tuned
        for, friction may take all of its torque, and neither is known to less than what the
        description says.
        """
        robot, matrix = self.robot, self.base.matrix
        T, origin, weight = scaled_coordinates(self.body_prior, SLENDERNESS)
        root = T / weight
        if not robot.rotor_inertia:
            rotors = np.eye(robot.p)[:, own_inertia_columns(robot)] * self.tuned_inertia
            root = np.column_stack([root, rotors])
        root = matrix @ root
        return GaussianPrior(matrix @ T @ origin, root @ root.T)

    def consistent_fit(self, system: Rows, estimate: Estimate) -> Array:
        """
        Fit standard parameters (p,) that a real robot can have, with the same prior.

        Their M(q) is positive definite, whatever motion the observation matrix is of, with a share
        of the a-priori inertia on its diagonal. They stand in for a fit that cannot be simulated.
        A SolverError where the solver finds none.
        """
        robot = self.robot
        effort = np.sqrt(np.mean(system.Y**2, axis=1))
        sigma = np.maximum(estimate.sigma_torque, EXACT * np.maximum(effort, EXACT * effort.max()))
        rows = [np.column_stack(system.rows(j)) / sigma[j] for j in range(robot.n)]
        triangle = np.asarray(np.linalg.qr(np.vstack(rows), mode='r'))
        factor, least = triangle[:-1, :-1] @ self.base.matrix, np.zeros(robot.p)
        least[own_inertia_columns(robot)] = MIN_INERTIA_SHARE * self.tuned_inertia
        target = triangle[:-1, -1] - factor @ least
        return consistent_parameters(factor, target, self.body_prior).value + least

    def initial_parameters(self, start: str = '') -> Array:
        """
        Return standard parameters (p,) to start from, those of the settings or others.

        The regular ones make M(q) the identity, Ia_j = 1 and all else 0 (DIDIM eq. 61), or
        ZZ_j = 1 (eq. 63), which is also taken where the robot has no rotor inertias; on a
        prismatic joint the mass stands for ZZ. 'idim' is the solution of the measured motion;
        bodies near it where that cannot be simulated.
        """
        start = start or self.settings.start
        if start == 'auto':
            start = 'regular' if self.method == 'didim' else 'idim'
        if start == 'prior':
            return self.prior_parameters()
        if start != 'idim':
            chi = np.zeros(self.robot.p)
            chi[own_inertia_columns(self.robot, rotors=start == 'regular')] = 1.0
            return self.standard_parameters(self.base.of(chi))
        assert self.samples is not None
        system = observe(self.samples, self.robot, self.base)
        system = dataclasses.replace(system, prior=self.prior)
        estimate = fit(system, 'wls')
        chi = self.standard_parameters(estimate.value)
        try:
            self.inertia(chi)
        except DivergenceError as error:
            try:
                return self.consistent_fit(system, estimate)
            except SolverError:
                raise error from None
        return chi


def own_inertia_columns(robot: Robot, rotors: bool = True) -> Indices:
    """Return the column (n,) of what adds to each M_jj alone: Ia, or ZZ (M) without rotors."""
    links = robot.first_columns[: robot.n] + np.where(robot.prismatic, 9, 5)
    return robot.first_columns[: robot.n] + 10 if rotors and robot.rotor_inertia else links


def _refuse_held_motion(samples: Samples) -> None:
    if select(samples.notes, 'efforts_slower'):
        raise ControllerError(
            'efforts arrive more rarely than positions: record both at one rate to simulate the '
            'loop; method wls needs no simulation'
        )


def make_replay_problem(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: ReplaySettings,
    samples: Samples,
    method: str = 'didim',
) -> ReplayProblem:
    """
    Collect what a method needs: efforts, reference, controller; 'oe' needs the samples alone.

    A control law of the settings replaces the recorded one; samples are the measured motion, for
    comparison, for the start 'idim', and for methods that fit positions. ControllerError,
    UnknownNameError: the control law, or a gain of the settings, is not known; RecordingError:
    there is no reference.
    """
    if method == 'oe':
        return make_open_loop_problem(samples, robot, base, settings)
    _refuse_held_motion(samples)
    recording = recording.select(robot.joints)
    controller, given = recording.controller, settings.law and settings.rate and settings.gains
    if controller is None and not given:
        raise ControllerError(
            f'{recording.source or "the recording"} does not hold the controller: record it, '
            "or give law, rate and gains under 'identification.replay'"
        )
    controller = controller or Controller('', '', 0.0, robot.joints, ('effort',), {})
    controller = dataclasses.replace(
        controller,
        type=settings.law or controller.type,
        rate=settings.rate or controller.rate,
        gains=settings.gains or controller.gains,
        command_interfaces=('effort',) if settings.law else controller.command_interfaces,
    )
    law = control_law_of(controller, robot.joints, robot.drive_gain)
    names = (name for gains in settings.gains.values() for name in gains)  # recorded ones: any
    UnknownNameError.check('gain of the control law', names, CONTROL_LAWS[controller.type].gains)
    start, desired = reference_on_grid(recording, law.rate)
    effort, delay = robot.efforts_to_torques(recording.effort), find_effort_delay(recording)
    torque = torque_on_grid(recording, effort, start, len(desired.q), law.rate, delay)
    time = start + np.arange(len(desired.q)) / law.rate
    motion = samples.q, samples.dq, samples.ddq
    measured = Motion(*(interpolated(time, samples.time, x) for x in motion))
    return ReplayProblem(
        robot, base, law, desired, torque, measured, settings, method=method, start=start,
        samples=samples,
    )  # fmt: skip


def make_open_loop_problem(
    samples: Samples, robot: Robot, base: BaseParameters, settings: ReplaySettings
) -> ReplayProblem:
    """Collect what an open-loop simulation needs: the torque drives it, the motion starts it."""
    _refuse_held_motion(samples)
    # The torque of an update is the mean until the next one. A stretch between two starts in which
    # samples were made up is left out.
    rate, tau = 1.0 / float(np.median(np.diff(samples.time))), samples.tau
    restart = max(2, round(START_INTERVAL * rate))
    measured = np.ones(len(tau), bool) if samples.measured is None else samples.measured
    stretch = np.arange(len(tau)) // restart
    valid = (np.bincount(stretch, ~measured) == 0)[stretch]
    motion = Motion(samples.q, samples.dq, samples.ddq)
    law = RecordedTorque(rate, 0.5 * (tau + np.vstack([tau[1:], tau[-1:]])))
    torque = Torque(np.arange(len(tau), dtype=float), tau, valid, rate)
    return ReplayProblem(
        robot, base, law, motion, torque, motion, settings, method='oe', restart=restart,
        start=float(samples.time[0]), samples=samples,
    )  # fmt: skip


def find_effort_delay(recording: Recording) -> float:
    """
    Return the updates from a torque to the stamp that reports it, by the recorded commands.

    Without commands, hardware under ros2_control reports the torque of the update before, other
    logs that of the update itself.
    """
    controller, held = recording.controller, hold_delay(recording)
    if controller is None:
        return 0.0
    if held is not None:
        # A command that is held acts half a period after its update on average.
        return held * controller.rate + 0.5
    return 1.0 if '/' in controller.type else 0.0
