"""From a recording to an estimate: rows, fit, whether logs agree, load of friction, springs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ...exceptions import (
    ConfigurationError,
    ControllerError,
    DivergenceError,
    RankDeficientError,
    RecordingError,
    UnknownNameError,
)
from ..arrays import rms
from ..excitation.trajectory import Motion
from ..findings import Finding, finding
from ..identification_settings import IdentificationSettings, MODEL_ERROR, SIMULATED
from ..mixed.mixed_model import MixedModel
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..regression.estimate import agreement, Estimate
from ..regression.estimators import add_instruments, fit, MIXED
from ..regression.observation_system import Observed, Rows, System
from ..signals.recording import Recording, Samples
from .observation import LogSet, observe_recording, RecordingOrChunks, short_names

if TYPE_CHECKING:
    from ..replay.didim import History

Progress = Callable[[str], None]
# Methods that need all rows at once, not factors of them; that simulate or instrument one motion.
WHOLE = (*SIMULATED, 'iv', 'irls')
OF_ONE_LOG = (*SIMULATED, 'both', 'iv')
# Chance of saying that logs disagree which do not.
SIGNIFICANT = 0.01
# A log does not agree with the others when its residual is so large a share and so many times
# that of a fit to it alone: noise and what the model lacks are in both.
LARGE_RESIDUAL, MANY_TIMES = 0.1, 2.0


@dataclasses.dataclass(frozen=True)
class Estimation(Observed[System]):
    """Base parameters of a recording, with the samples, and the system that was solved."""

    _: dataclasses.KW_ONLY
    estimate: Estimate  # of the base parameters
    remarks: tuple[Finding, ...] = ()  # findings on the estimate
    history: History | None = None  # of an iterative method, or None

    def without_shrunk(self) -> Estimation:
        """Return it without the shrunk part of a mixed model; else as it is."""
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

    def motion(self) -> tuple[Motion | None, float]:
        """Return the motion in memory, and the usual time between two of its samples [s]."""
        samples, systems = self.samples, self.sampled_systems
        if len(systems) == 1:
            return Motion(samples.q, samples.dq, samples.ddq), 1.0 / samples.rate
        rows = [
            (s.q, s.dq, np.gradient(s.dq, s.time, axis=0), np.gradient(s.time))
            for s in systems
            if s.q is not None and s.dq is not None and len(s.time) > 1
        ]
        if not rows:
            return None, 0.0
        *motion, steps = (np.concatenate(each) for each in zip(*rows, strict=True))
        return Motion(*motion), float(np.median(steps))


def check_method(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> None:
    """
    Check that what is asked for can be had of what was recorded.

    Raises a ConfigurationError where it needs one log, rigid joints or other friction, a
    RecordingError where it needs the whole of a recording that comes in chunks.
    """
    method, elastic = settings.method, isinstance(robot, ElasticRobot)
    if any(term.name == 'load_coulomb' for terms in robot.friction for term in terms):
        raise ConfigurationError(
            "friction 'load_coulomb' is of --method commands: leave it out of "
            'robot.friction: identification.model mixed then finds friction under load'
        )
    if elastic and method in (*SIMULATED, 'both'):
        raise ConfigurationError(
            f"method '{method}' replays rigid robots: use 'wls', or empty robot.elastic.joints"
        )
    asked = method in (OF_ONE_LOG if isinstance(recording, LogSet) else WHOLE)
    if isinstance(recording, Recording) or not (asked or elastic):
        return
    what = f"method '{method}'" if asked else 'an elastic robot'
    if isinstance(recording, LogSet):
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
    Raises a RecordingError where the recording cannot be used, or the method needs all of it at
    once, a RankDeficientError where the motion leaves parameters undetermined.
    """
    check_method(recording, robot, settings)
    whole = settings.method in WHOLE or isinstance(robot, ElasticRobot)
    attach = mixed.attach if mixed is not None and settings.method == MIXED else lambda s: s
    try:
        observed = observe_recording(recording, robot, base, settings.signals, whole)
        sampled, notes = observed.sampled_systems, observed.notes
        check_deflections(observed.samples, robot)
        progress('estimating')
        system = attach(as_configured(observed.system, settings))
        system, estimate, remarks, history = _fit(
            recording, observed.samples, system, robot, base, settings, progress
        )
        if isinstance(recording, LogSet):
            parts = [attach(part.system) for part in observed.parts]
            remarks = [*remarks, *_agreement(recording, parts, estimate)]
        elif isinstance(system, Rows):
            sampled = (system,)
        else:
            notes = (*notes, finding('long_recording', count=len(sampled)))
    except RankDeficientError as error:
        weak = {name.removesuffix('R') for name in error.names}
        joints = dict.fromkeys(p.joint for p in robot.parameters if p.name in weak)
        raise RankDeficientError(error.names, error.singular_values, tuple(joints)) from error
    return Estimation(
        system, observed.samples, sampled, observed.delays, notes,
        estimate=estimate, remarks=tuple(remarks), history=history,
    )  # fmt: skip


def as_configured(system: System, settings: IdentificationSettings) -> System:
    """Return the system without the columns D of model errors where σ does not include them."""
    included = settings.covariance == MODEL_ERROR and settings.method not in SIMULATED
    return system if included else dataclasses.replace(system, D=None)


def _fit(
    recording: RecordingOrChunks,
    samples: Samples,
    system: System,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
) -> tuple[System, Estimate, Sequence[Finding], History | None]:
    """Return the system that was solved, its estimate, findings on it, and the iterations."""
    method, iterations, replay = settings.method, settings.iterations, settings.replay
    if not (isinstance(recording, Recording) and isinstance(system, Rows)):
        return system, fit(system, method, iterations), [], None
    if isinstance(robot, ElasticRobot):
        # The instruments of springs follow from a weighted fit.
        estimate = fit(system, 'wls' if method == 'iv' else method, iterations)
        if estimate.method == 'wls':
            system, estimate = fit_with_instruments(system, robot, estimate)
        return system, estimate, spring_warnings(system, robot, estimate), None
    if method not in (*SIMULATED, 'iv'):
        return system, fit(system, method, iterations), [], None
    # The replay takes longer to import than most logs to fit.
    from ..replay.didim import describe_iteration, didim, fit_with_simulated_instruments
    from ..replay.replay_problem import make_replay_problem

    if method in SIMULATED:
        # The replay knows its delays and takes efforts as recorded.
        problem = make_replay_problem(recording, robot, base, replay, samples, method)
        result = didim(
            problem, problem.initial_parameters(),
            lambda iteration: progress(describe_iteration(iteration, method)),
        )  # fmt: skip
        estimate, history = result.estimate, result.history
        if method == 'didim':
            return result.system, estimate, history.findings, history
        # Sensitivities predict no torque: the rows of the measured motion judge the parameters.
        errors = [y - w @ estimate.value for w, y in map(system.rows, range(robot.n))]
        estimate = dataclasses.replace(
            estimate,
            method='ml',
            residual=system.relative_residual(estimate.value),
            total_residual=system.total_residual(estimate.value),
            sigma_torque=np.array([np.linalg.norm(e) / max(len(e), 1) ** 0.5 for e in errors]),
        )
        return system, estimate, history.findings, history
    remarks = list[Finding]()
    try:
        problem = make_replay_problem(recording, robot, base, replay, samples)
        system, estimate = fit_with_simulated_instruments(problem, system, iterations)
    except (ConfigurationError, ControllerError, DivergenceError, UnknownNameError) as error:
        # Instruments of the reference, where no motion is simulated; a fit without is refused.
        reference = recording.select(robot.joints).reference
        if reference is not None and reference.time.size > 1:
            motion = reference.q, reference.dq, reference.ddq
            system = add_instruments(system, samples, reference.time, motion, robot, base)
        estimate = fit(system, 'iv', iterations)
        remarks = [finding('reference_instruments', reason=str(error))]
    return system, estimate, remarks, None


def _agreement(logs: LogSet, parts: list[System], estimate: Estimate) -> list[Finding]:
    """Name logs that are predicted far worse than by their own fit; test whether those agree."""
    far, own = list[tuple[str, float, float]](), list[tuple[str, Estimate]]()
    for name, system in zip(short_names(logs.logs), parts, strict=True):
        rows = [system.rows(joint) for joint in range(len(system.joints))]
        W, Y = (np.concatenate([pair[k] for pair in rows]) for k in (0, 1))
        alone = system.total_residual(np.linalg.lstsq(W, Y, rcond=None)[0])
        share = system.total_residual(estimate.value)
        if share > max(LARGE_RESIDUAL, MANY_TIMES * alone):
            far.append((name, share, alone))
        with contextlib.suppress(RankDeficientError):
            own.append((name, fit(system, estimate.method)))
    remarks = list[Finding]()
    if far:
        names, shares, alones = zip(*far, strict=True)
        remarks.append(finding('logs_far_apart', logs=names, shares=shares, own=alones))
    if len(own) < 2:
        return [*remarks, finding('agreement_not_tested')]
    values, sigmas = (np.array([getattr(e, k) for _, e in own]) for k in ('value', 'sigma'))
    p, place, session = agreement(values, sigmas)
    test = {'p': p, 'parameter': estimate.names[place]}
    if p > SIGNIFICANT:
        return [*remarks, finding('logs_agree', **test)]
    test |= {'logs': [name for name, _ in own], 'outlier': own[session][0]}
    figures = {'values': values[:, place], 'sigmas': sigmas[:, place]}
    return [*remarks, finding('logs_disagree', **test, **figures)]


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


def fit_with_instruments(
    system: Rows, robot: ElasticRobot, estimate: Estimate
) -> tuple[Rows, Estimate]:
    """
    Estimate again by instrumental variables, without the bias of springs from encoder noise.

    A deflection is a small difference of two encoders, and in least squares its noise correlates
    with itself: every spring is estimated softer than it is. In Z the deflection that the link's
    torque predicts, −(W χ − W_K K)/K, replaces the measured one, until it converges. Returns the
    system with its instruments, and the estimate; both as given, by least squares, where noise is
    too small to matter, or where a stiffness is not found positive.
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
    for j in robot.elastic_joints:
        motor = robot.motors[j]
        deflection = np.ptp(samples.q[:, j] - samples.q[:, motor])
        if deflection < MIN_DEFLECTION:
            raise RecordingError(
                f'{robot.joints[j]} and {robot.joints[motor]} never differ by more than '
                f'{deflection:.1g}: take the joint out of robot.elastic.joints, or record the '
                "link's and the motor's own encoder"
            )


def spring_warnings(system: Rows, robot: ElasticRobot, estimate: Estimate) -> list[Finding]:
    """Name the springs whose deflection the torque of the link does not explain."""
    warnings = list[Finding]()
    for j in robot.elastic_joints:
        column = system.names.index(f'K{j + 1}')
        W, stiffness = system.rows(int(j))[0], float(estimate.value[column])
        measured = W[:, column] * stiffness
        left, power = W @ estimate.value, float(measured @ measured)
        explained = 1.0 - float(left @ left) / power if power else 0.0
        if stiffness <= 0.0 or explained < MIN_EXPLAINED:
            spring = {'parameter': f'K{j + 1}', 'stiffness': stiffness}
            shown = {'deflection': rms(W[:, column]), 'explained': max(explained, 0.0)}
            warnings.append(finding('spring_not_shown', [robot.joints[j]], **spring, **shown))
    return warnings
