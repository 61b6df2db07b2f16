"""From a recording to an estimate: rows, fit, whether logs agree, load of friction, springs."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
from itertools import product

import numpy as np

from ...exceptions import (
    ConfigurationError,
    ControllerError,
    DivergenceError,
    RankDeficientError,
    RecordingError,
    UnknownNameError,
)
from ..arrays import Array, rms
from ..excitation.trajectory import Motion
from ..finding_codes import finding
from ..findings import Finding
from ..identification_settings import IdentificationSettings, MODEL_ERROR, SIMULATED
from ..mixed.mixed_model import MixedModel
from ..model.base_parameters import base_parameters, BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.standard import basic_solution
from ..regression.delays import prepare_without_delay
from ..regression.estimate import agreement, Estimate
from ..regression.estimators import add_reference_instruments, fit, MIXED
from ..regression.goodness_of_fit import Validation
from ..regression.observation_system import Factors, observe, Observed, Rows, System
from ..replay.convergence_history import History, Iteration
from ..replay.didim import describe_iteration, fit_with_simulated_instruments, identify_closed_loop
from ..signals.recording import Recording
from ..signals.samples import Samples
from .observation import LogSet, observe_recording, RecordingOrChunks, short_names
from .validation import validate_system

Progress = Callable[[str], None]
# Methods that need all rows at once, not triangular factors of them; that simulate or instrument
# one motion.
WHOLE = (*SIMULATED, 'iv', 'irls')
OF_ONE_LOG = (*SIMULATED, 'both', 'iv')
# Chance of saying that logs disagree which do not.
SIGNIFICANT = 0.01
# A log does not agree with the others when its residual is so large a share and so many times
# that of a fit to it alone: noise and what the model lacks are in both.
LARGE_RESIDUAL, MANY_TIMES = 0.1, 2.0


@dataclasses.dataclass(frozen=True)
class Estimation(Observed[System]):
    """
    Base parameters of a recording, with the samples and rows that they come from.

    Attributes
    ----------
    system : that was solved
    estimate : of the base parameters
    remarks : findings on the estimate
    history : of an iterative method, or None

    """

    _: dataclasses.KW_ONLY
    estimate: Estimate
    remarks: tuple[Finding, ...] = ()
    history: History | None = None

    def less_shrunk(self) -> Estimation:
        """Return what is left for plain friction, of a mixed model; else all as it is."""
        penalty = self.system.penalty
        if penalty is None:
            return self
        gone, value = penalty.shrunk, self.estimate.value
        return dataclasses.replace(
            self,
            sampled_systems=tuple(s.without(gone, value) for s in self.sampled_systems),
            system=self.system.without(gone, value),
            estimate=self.estimate.select(np.flatnonzero(~gone)),
        )

    @property
    def motions(self) -> list[Motion]:
        """Motions that the recording shows: of a long one, or of several, those in memory."""
        samples = self.samples
        if len(self.sampled_systems) == 1:
            return [Motion(samples.q, samples.dq, samples.ddq)]
        return [
            Motion(rows.q, rows.dq, np.gradient(rows.dq, rows.time, axis=0))
            for rows in self.sampled_systems
            if rows.q is not None and rows.dq is not None and len(rows.time) > 1
        ]

    @property
    def period(self) -> float:
        """Usual time between two samples of the motions [s]."""
        if len(self.sampled_systems) == 1:
            return 1.0 / self.samples.rate
        steps = [step for rows in self.sampled_systems for step in np.diff(rows.time)]
        return float(np.median(steps)) if steps else 0.0

    def fitted(self, robot: Robot, base: BaseParameters) -> Validation:
        """Compare the torques of the rows in memory with those of the estimate."""
        value = self.estimate.value
        return Validation.concatenate(
            [validate_system(rows, robot, base, value) for rows in self.sampled_systems]
        )


def check_method(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> None:
    """
    Check that what is asked for can be had of what was recorded.

    Raises
    ------
    ConfigurationError : it needs one log, and there are several
    RecordingError : it needs the whole recording, which comes in chunks

    """
    several = isinstance(recording, LogSet)
    methods = OF_ONE_LOG if several else WHOLE
    asked = settings.method in methods
    if isinstance(recording, Recording) or not (asked or isinstance(robot, ElasticRobot)):
        return
    what = f"method '{settings.method}'" if asked else 'an elastic robot'
    if several:
        raise ConfigurationError(
            f"{what} takes one log and not several: give the longest one, or use method 'wls'"
        )
    raise RecordingError(
        f'{what} needs a recording in memory as a whole, and this one is too long: choose a part '
        "of it, or method 'wls'"
    )


def estimate_base_parameters(
    recording: RecordingOrChunks,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
    mixed: MixedModel | None = None,
) -> Estimation:
    """
    Estimate the base parameters from a recording in memory, in chunks, or of several logs.

    `progress` is called with the name of each step; penalties of `mixed` count with its method.

    Raises
    ------
    RecordingError : the recording cannot be used, or the method needs all of it at once
    RankDeficientError : the motion leaves parameters undetermined

    """
    check_method(recording, robot, settings)
    whole = settings.method in WHOLE or isinstance(robot, ElasticRobot)
    try:
        observed = observe_recording(recording, robot, base, settings.signals, whole)
        samples, sampled, notes = observed.samples, observed.sampled_systems, observed.notes
        check_deflections(samples, robot)
        progress('estimating')

        def penalised(system: System) -> System:
            """Return the system with the penalties of a mixed model where they count."""
            used = mixed is not None and settings.method == MIXED
            return mixed.attach(system) if used and mixed is not None else system

        system, history = penalised(as_asked(observed.system, settings)), None
        remarks = list[Finding]()
        if settings.method in SIMULATED and isinstance(recording, Recording):
            system, estimate, history = _fit_by_simulation(
                recording, samples, system, robot, base, settings, progress
            )
            remarks = list(history.findings)
        elif settings.method == 'iv' and not isinstance(robot, ElasticRobot):
            assert isinstance(recording, Recording) and isinstance(system, Rows)
            system, estimate, remarks = _fit_by_instruments(
                recording, samples, system, robot, base, settings
            )
        else:
            # The instruments of springs follow from a weighted fit.
            method = 'wls' if settings.method == 'iv' else settings.method
            estimate = fit(system, method, settings.iterations)
        if isinstance(recording, LogSet):
            parts = [penalised(part.system) for part in observed.parts]
            remarks += _disagreement(recording, parts, estimate.value)
            remarks += _agreement(recording, parts, estimate)
        elif isinstance(system, Factors):
            notes = (*notes, finding('long_recording', count=len(sampled)))
        elif isinstance(recording, Recording) and isinstance(system, Rows):
            if settings.method not in SIMULATED:
                remarks += second_encoder_warnings(recording, robot)
                if isinstance(robot, ElasticRobot):
                    if estimate.method == 'wls':
                        system, estimate = fit_with_instruments(system, robot, estimate)
                    remarks += spring_warnings(system, robot, estimate)
            sampled = (system,)
    except RankDeficientError as error:
        weak = {name.removesuffix('R') for name in error.names}
        joints = dict.fromkeys(p.joint for p in robot.parameters if p.name in weak)
        raise RankDeficientError(error.names, error.singular_values, tuple(joints)) from error
    return Estimation(
        system, samples, sampled, observed.delays, notes,
        estimate=estimate, remarks=tuple(remarks), history=history,
    )  # fmt: skip


def as_asked(system: System, settings: IdentificationSettings) -> System:
    """Return the system without what the model may leave out where that is not to count."""
    counted = settings.covariance == MODEL_ERROR and settings.method not in SIMULATED
    return system if counted else dataclasses.replace(system, D=None)


def _fit_by_instruments(
    recording: Recording,
    samples: Samples,
    system: Rows,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
) -> tuple[Rows, Estimate, list[Finding]]:
    """Fit by instruments of the simulated motion; of the reference where none is simulated."""
    try:
        if robot.load_dependent:
            raise ConfigurationError("friction 'load_coulomb' is not simulated")
        found = fit_with_simulated_instruments(
            recording, samples, system, robot, base, settings.replay, settings.iterations
        )
        return *found, []
    except (ConfigurationError, ControllerError, DivergenceError, UnknownNameError) as error:
        system = add_reference_instruments(system, samples, recording, robot, base)
        note = finding('reference_instruments', reason=str(error))
        return system, fit(system, 'iv', settings.iterations), [note]


def _fit_by_simulation(
    recording: Recording,
    samples: Samples,
    system: System,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
) -> tuple[System, Estimate, History]:
    """Fit along a simulated motion; the replay knows its delays and takes efforts as recorded."""
    method, replay = settings.method, settings.replay

    def report(iteration: Iteration) -> None:
        progress(describe_iteration(iteration, method))

    result = identify_closed_loop(recording, robot, base, replay, samples, report, method)
    estimate, history = result.estimate, result.history
    if method == 'didim':
        return result.system, estimate, history
    # Sensitivities predict no torque: the rows of the measured motion judge the parameters.
    errors = [y - w @ estimate.value for w, y in map(system.rows, range(robot.n))]
    estimate = dataclasses.replace(
        estimate,
        method='ml',
        residual=system.relative_residual(estimate.value),
        total_residual=system.total_residual(estimate.value),
        sigma_torque=np.array([np.linalg.norm(e) / max(len(e), 1) ** 0.5 for e in errors]),
    )
    return system, estimate, history


def _disagreement(logs: LogSet, parts: list[System], value: Array) -> list[Finding]:
    """Name the logs that the base parameters (b,) predict far worse than their own do."""
    worse = []
    for name, system in zip(short_names(logs.logs), parts, strict=True):
        rows = [system.rows(joint) for joint in range(len(system.joints))]
        W, Y = (np.concatenate([pair[k] for pair in rows]) for k in (0, 1))
        own = system.total_residual(np.linalg.lstsq(W, Y, rcond=None)[0])
        share = system.total_residual(value)
        if share > max(LARGE_RESIDUAL, MANY_TIMES * own):
            worse.append((name, share, own))
    if not worse:
        return []
    far, shares, alone = zip(*worse, strict=True)
    return [finding('logs_far_apart', logs=far, shares=shares, own=alone)]


def _agreement(logs: LogSet, parts: list[System], estimate: Estimate) -> list[Finding]:
    """Test whether the logs by themselves agree on the parameters, within their σ."""
    own, names = list[Estimate](), list[str]()
    for name, system in zip(short_names(logs.logs), parts, strict=True):
        with contextlib.suppress(RankDeficientError):
            own.append(fit(system, estimate.method))
            names.append(name)
    if len(own) < 2:
        return [finding('agreement_not_tested')]
    values, sigmas = (np.array([getattr(e, k) for e in own]) for k in ('value', 'sigma'))
    p, place, session = agreement(values, sigmas)
    test = {'p': p, 'parameter': estimate.names[place]}
    if p > SIGNIFICANT:
        return [finding('logs_agree', **test)]
    figures = {'logs': names, 'values': values[:, place], 'sigmas': sigmas[:, place]}
    return [finding('logs_disagree', outlier=names[session], **figures, **test)]


# Most iterations, and the relative change of the links' torques that ends them: each step is some
# ten times less than the one before, and no torque is known so well.
LOAD_ITERATIONS, LOAD_TOLERANCE = 20, 1e-3


def iterate_friction_load(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> tuple[Robot, list[Finding]]:
    """
    Replace the load of friction that grows with it by that of the identified links.

    τ_f = Fl |τ_l| sign(dq) with τ_l = W_l χ_l, the torque of the links (Hamon, Gautier and Garrec
    2010), is a product of parameters. With the load of an earlier estimate, at first the URDF's,
    it is linear; the estimate gives the next load, until both agree. A rotor inertia that is
    regrouped with a link's counts as load. Returns the robot, and notes on what was not possible.

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
    for _ in range(LOAD_ITERATIONS):
        load = robot.of_links(basic_solution(base, fit(system, 'wls').value))
        previous, torque = torque, system.predict(base.of(load))
        robot = dataclasses.replace(robot, load_parameters=load)
        if np.linalg.norm(torque - previous) <= LOAD_TOLERANCE * np.linalg.norm(torque):
            return robot, []
        base = base_parameters(robot)
        system = observe(observed.samples, robot, base)
    return robot, [finding('load_not_converged', steps=LOAD_ITERATIONS)]


# Most rounds of instruments, computations of the weights in each, and the change over σ that ends
# them: a hundredth of the uncertainty matters to nobody.
ROUNDS, REWEIGHTINGS, CONVERGED = 8, 3, 0.01
# Relative residual of links, of encoder noise. Its square is the bias of least squares, up to the
# first one in a million; instruments remove it, see docs/guide/elastic.md.
HARMLESS = 1e-3
# Deflections below this are rounding [rad or m]; encoders resolve some 1e-6.
MIN_DEFLECTION = 1e-9
# Share of a deflection's power that the link's torque has to explain: none of noise, all of a
# spring but its noise.
MIN_EXPLAINED = 0.5
# A second encoder of a joint: largest deflection over motion, least correlation of deflection and
# effort, and what both are averaged over, which is longer than noise and shorter than motions [s].
MAX_DEFLECTION_SHARE, MIN_CORRELATION, AVERAGING = 0.1, 0.7, 0.05


def fit_with_instruments(
    system: Rows, robot: ElasticRobot, estimate: Estimate
) -> tuple[Rows, Estimate]:
    """
    Estimate again by instrumental variables, without the bias of springs from encoder noise.

    A deflection is a small difference of two encoders, and in least squares its noise correlates
    with itself: every spring is estimated softer than it is. In Z the deflection that the link's
    torque predicts, −(W χ − W_K K)/K, replaces the measured one, until it converges.

    Parameters
    ----------
    estimate : by least squares, the initial one

    Returns
    -------
    The system with its instruments, and the estimate; both as given where noise is too small to
    matter, or where a stiffness is not found positive

    """
    if estimate.residual[robot.elastic_joints].max() < HARMLESS:
        return system, estimate
    springs = [(int(j), system.names.index(f'K{j + 1}')) for j in robot.elastic_joints]
    instrumented, found = system, estimate
    for _ in range(ROUNDS):
        Z = np.array(system.W)
        for row, column in springs:
            if not found.value[column] > 0.0:
                return system, estimate
            spring = system.W[row][:, column] * found.value[column]
            Z[row][:, column] = (spring - system.W[row] @ found.value) / found.value[column]
        instrumented, previous = dataclasses.replace(system, Z=Z), found.value
        found = fit(instrumented, 'iv', REWEIGHTINGS)
        if np.all(np.abs(found.value - previous) <= CONVERGED * found.sigma):
            break
    softest = min(found.value[column] for _, column in springs)
    return (instrumented, found) if softest > 0.0 else (system, estimate)


def check_deflections(samples: Samples, robot: Robot) -> None:
    """Raise a `RecordingError` where the two positions of an elastic joint never differ."""
    if not isinstance(robot, ElasticRobot):
        return
    for j in robot.elastic_joints:
        deflection = np.ptp(samples.q[:, j] - samples.q[:, robot.motors[j]])
        if deflection < MIN_DEFLECTION:
            raise RecordingError(
                f'{robot.joints[j]} and {robot.joints[robot.motors[j]]} never differ by more than '
                f'{deflection:.1g}: take the joint out of robot.elastic.joints, or record the '
                "link's and the motor's own encoder"
            )


def spring_warnings(system: Rows, robot: ElasticRobot, estimate: Estimate) -> list[Finding]:
    """Name the springs whose deflection the torque of the link does not explain."""
    warnings = list[Finding]()
    for j in robot.elastic_joints:
        name = f'K{j + 1}'
        W, _ = system.rows(int(j))
        column = system.names.index(name)
        stiffness = float(estimate.value[column])
        measured = W[:, column] * stiffness
        link = -(W @ estimate.value - measured)
        power = float(measured @ measured)
        explained = 1.0 - float(np.sum((measured - link) ** 2)) / power if power else 0.0
        if stiffness <= 0.0 or explained < MIN_EXPLAINED:
            spring = {'parameter': name, 'stiffness': stiffness, 'deflection': rms(W[:, column])}
            share = max(explained, 0.0)
            warnings.append(
                finding('spring_not_shown', [robot.joints[j]], explained=share, **spring)
            )
    return warnings


def second_encoder_warnings(recording: Recording, robot: Robot) -> list[Finding]:
    """Name recorded channels that are a joint's position on the other side of a spring."""
    rigid = [joint for joint in robot.links if joint in recording.joints]
    others = [joint for joint in recording.joints if joint not in robot.joints]
    if isinstance(robot, ElasticRobot):
        rigid = [joint for joint in rigid if not robot.unactuated[robot.joints.index(joint)]]
    warnings = list[Finding]()
    for joint, other in product(rigid, others):
        from scipy.ndimage import uniform_filter1d  # hardly any recording comes so far

        j, c = recording.joints.index(joint), recording.joints.index(other)
        deflection = recording.position[:, c] - recording.position[:, j]
        finite = np.isfinite(deflection) & np.isfinite(recording.effort[:, j])
        if finite.sum() < 3:
            continue
        step = float(np.median(np.diff(recording.time)))
        rows = max(1, round(AVERAGING / step)) if step > 0.0 else 1
        deflection, effort, position = (
            uniform_filter1d(x[finite], rows)
            for x in (deflection, recording.effort[:, j], recording.position[:, j])
        )
        largest = MAX_DEFLECTION_SHARE * np.std(position)
        if not MIN_DEFLECTION < np.std(deflection) < largest or not np.ptp(effort):
            continue
        correlation = float(np.corrcoef(deflection, effort)[0, 1])
        if abs(correlation) > MIN_CORRELATION:
            size = float(np.abs(deflection).max())
            values = {'encoder': other, 'deflection': size, 'correlation': correlation}
            warnings.append(finding('second_encoder', [joint], **values))
    return warnings
