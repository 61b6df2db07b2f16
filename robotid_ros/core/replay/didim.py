"""DIDIM and output error: least squares along the closed loop, simulated again and again."""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import DivergenceError
from ..arrays import Array, rms
from ..findings import Finding, finding
from ..identification_settings import ReplaySettings
from ..model.friction import DRY
from ..parameters.physical_consistency import SolverError
from ..regression.estimate import Estimate
from ..regression.estimators import add_instruments, fit
from ..regression.observation_system import GaussianPrior, Rows
from .replay_problem import bandwidth, ReplayProblem
from .simulated_observation import linearise, relative_size, with_all_rows


@dataclasses.dataclass(frozen=True)
class Iteration:
    """One simulation, and the errors of the parameters it was run with."""

    number: int  # 0 for the initial parameters
    value: Array  # (b,) base parameters
    torque_error: Array  # (n,) ‖Y_j − W_j χ_k‖/‖Y_j‖ with W from this simulation
    position_error: Array  # (n,) ‖q_ddm − q‖/‖q‖ of the simulated positions
    inertia: Array  # (n,) J_j [kg·m² or kg]
    gain_scale: Array  # (n,) of the simulated gains, Ĵ/J_ap
    # Share of the full step that was taken to get here, less than 1 after step control, 0 where
    # the nearest bodies stood in for the fit, with gains scaled to them.
    step_length: float
    chi: Array  # (p,) standard parameters that it was run with
    estimate: Estimate  # by the fit along its motion
    error: float  # of what is fitted, relative, of all joints


@dataclasses.dataclass(frozen=True)
class History:
    """The iterations of an identification."""

    columns: tuple[str, ...]  # names of the b base parameters
    joints: tuple[str, ...]
    iterations: tuple[Iteration, ...]  # from the initial parameters to the result
    findings: tuple[Finding, ...] = ()  # reasons to doubt the result, with remedies

    @property
    def steps(self) -> int:
        """Number of least-squares steps from the initial parameters to the result."""
        return len(self.iterations) - 1

    def rows(self) -> Iterator[dict[str, float]]:
        """Yield the figures of each iteration: of the worst joint, of all joints, parameters."""
        for before, record in zip((None, *self.iterations), self.iterations, strict=False):
            row = {'iteration': record.number, 'torque_error': record.torque_error.max()}
            if before is not None:
                change = np.linalg.norm(record.value - before.value)
                row['parameter_change'] = change / np.linalg.norm(record.value)
            row['position_error'] = record.position_error.max()
            row['share'] = record.step_length
            series = {'torque error': record.torque_error, 'position error': record.position_error}
            for name, values in series.items():
                row |= {f'{name} {j}': v for j, v in zip(self.joints, values, strict=True)}
            row |= dict(zip(self.columns, record.value, strict=True))
            yield {name: float(value) for name, value in row.items()}


# Share of the torque that benchmarks/studies/scara.py leaves: 2 % with the right gains, 11 to 28 %
# with half of the loop's bandwidth.
MAX_RESIDUAL = 0.2
# ω_n over the bandwidth of the motion. In that study, with 0.8 of the loop's bandwidth, Coulomb
# friction is 2 % off at a ratio of 5 and 30 % at 2.5.
MIN_BANDWIDTH_RATIO = 5.0
# Distance between simulated and measured motion, over the tracking error. A loop of two thirds of
# the bandwidth comes to 0.5 and biases friction; half of it comes to 1, a third to 2, and with
# these every parameter is biased.
DOUBTFUL_RATIO, WRONG_RATIO = 0.5, 1.5
Progress = Callable[[Iteration], None]
# Changes below so many σ are noise: to wait for smaller ones costs iterations and gains nothing.
MAX_SIGMA_CHANGE = 1.0
# Change of the relative residual that rounding leaves where data are without noise.
NOISE_FREE_RESIDUAL = 1e-9
# Change of a parameter over its σ that ends the iteration: instruments need not be exact.
CONVERGED, MAX_ROUNDS = 0.1, 10
# Full steps that are combined, and the largest sum of |γ|: beyond it the steps are nearly
# parallel, and the extrapolation leaves the region that they describe.
ANDERSON_DEPTH, MAX_MIXING_WEIGHT = 2, 3.0
# A step whose torque error grows by more than this is refused: a smaller bound shortens steps that
# noise makes slightly worse, a larger one lets a diverging iteration run on.
MAX_ERROR_GROWTH = 1.2
# How often a refused step is halved before the iteration gives up.
MAX_HALVINGS = 4


def anderson_mixing(values: Array, fits: Array, sigma: Array) -> Array | None:
    """
    Extrapolate the newest fit g(χ_k) by Anderson's mixing of the last full steps.

    `χ_{k+1} = g_k − Σ γ_i (g_{i+1} − g_i)`, γ the least squares of `f_k − Σ γ_i (f_{i+1} − f_i)`,
    `f = g − χ` in units of σ (b,), of χ and g(χ) (m, b) of the last steps, the newest last. The
    fixed point of the iteration does not change. None where the steps are too parallel.
    """
    sigma = np.maximum(sigma, 1e-9 * np.abs(fits).max())
    steps = (fits - values) / sigma
    mixing = np.linalg.lstsq(np.diff(steps, axis=0).T, steps[-1], rcond=1e-6)[0]
    if np.abs(mixing).sum() > MAX_MIXING_WEIGHT:
        return None
    return np.asarray(fits[-1] - mixing @ np.diff(fits, axis=0))


# A simulation to try: share of the full step (0: nearest bodies with scaled gains), whether the
# gains are the robot's own, and standard parameters (p,).
Candidate = tuple[float, bool, Array]


def start_candidates(replay: ReplayProblem, chi: Array) -> list[Candidate]:
    """Return how initial parameters (p,) are tried."""
    # A priori inertias that are far off may scale the gains beyond what a sampled loop can bear.
    # Sensitivities are those of the robot's loop only with its own gains.
    gains = (False, True) if replay.method == 'didim' else (True, False)
    return [(1.0, own_gains, chi) for own_gains in gains]


def step_candidates(
    replay: ReplayProblem, iterates: list[Iteration], system: Rows
) -> Iterator[Candidate]:
    """
    Yield how the newest fit is tried: extrapolated, as it is, as bodies, by shorter steps.

    Bodies that can exist near it and shorter steps to them are for fits that cannot be simulated,
    as in the first iterations above all.
    """
    last, is_didim = iterates[-1], replay.method == 'didim'
    recent = iterates[-1 - ANDERSON_DEPTH :]
    full = len(recent) > 1 and all(iterate.step_length == 1.0 for iterate in recent)
    # Sensitivities converge quadratically by themselves.
    if full and is_didim:
        values, fits = np.array([(x.value, x.estimate.value) for x in recent]).swapaxes(0, 1)
        ahead = anderson_mixing(values, fits, last.estimate.sigma)
        if ahead is not None:
            yield 1.0, True, replay.standard_parameters(ahead)
    newest = replay.standard_parameters(last.estimate.value)
    yield 1.0, True, newest
    if is_didim:
        try:
            newest = replay.consistent_fit(system, last.estimate)
        except SolverError:
            pass
        else:
            yield 1.0, True, newest
            yield 0.0, False, newest
    for step_length in 0.5 ** np.arange(1, MAX_HALVINGS + 1):
        yield float(step_length), not is_didim, last.chi + step_length * (newest - last.chi)


def next_iterate(
    replay: ReplayProblem, candidates: Iterable[Candidate], iterates: list[Iteration]
) -> tuple[Iteration, Rows]:
    """
    Return the first candidate that can be simulated without a larger error, and its system.

    A DivergenceError where there is none: M(q) is not positive definite, the simulation diverges
    or the error grows.
    """
    number, failure = len(iterates), None
    before, estimate = (iterates[-1].error, iterates[-1].estimate) if iterates else (np.inf, None)
    for step_length, own_gains, chi in candidates:
        try:
            found, system = _simulate_and_fit(replay, chi, number, step_length, own_gains)
        except DivergenceError as error:
            failure = failure or error
            continue
        if found.error <= MAX_ERROR_GROWTH * before:
            return found, system
        failure = failure or DivergenceError(
            f'the error grows from {before:.3g} to {found.error:.3g}: the control law or its '
            "gains may not be the robot's, or its natural frequency is too low for this motion",
            number,
        )
    method = replay.method.upper()
    head = f'iteration {number} of {method}' if iterates else f'{method} cannot start'
    raise DivergenceError(f'{head}: {failure}', number, estimate) from failure


def gain_scale_of(replay: ReplayProblem, inertia: Array, own_gains: bool) -> Array:
    """
    Return the scale (n,) of the simulated gains: `Ĵ/J_ap` (DIDIM eq. 59), or 1, the robot's own.

    With eq. 59 the simulated loop has the actual ω_n times √(J_a/J_ap), whatever the parameters
    are (eq. 60): for those that are far off. With the robot's gains it has √(J_a/Ĵ) times it,
    which tends to 1: for a fit (`own_gains`), which no error of J_ap biases then.
    """
    update = replay.settings.gain_update
    if update == 'never' or (update == 'initial' and own_gains):
        return np.ones_like(inertia)
    return inertia / replay.tuned_inertia


def _simulate_and_fit(
    replay: ReplayProblem, chi: Array, number: int, step_length: float, own_gains: bool
) -> tuple[Iteration, Rows]:
    """Simulate standard parameters (p,) and fit along their motion."""
    inertia = replay.inertia(chi)
    gain_scale = gain_scale_of(replay, inertia, own_gains)
    simulation = replay.simulate(chi, gain_scale)
    value = replay.base.of(chi)
    system, output_error, torque_error = linearise(replay, simulation, chi, gain_scale)
    prior, seen = replay.prior, system.equations > 0
    if not seen.all():
        # No row tells of dry friction that holds a joint all the time but that it is enough; the
        # prior's would let the joint slip again. How far it is from that of the prior is no
        # knowledge: the variance grows by the square of it.
        joints = {replay.robot.joints[j] for j in np.flatnonzero(~seen)}
        owners = [replay.robot.parameters[column] for column in replay.base.columns]
        held = [owner.joint in joints and owner.symbol in DRY for owner in owners]
        moved = np.where(held, value - prior.mean, 0.0)
        prior = GaussianPrior(prior.mean + moved, prior.covariance + np.diag(moved**2))
    system = dataclasses.replace(system, prior=prior)
    q = replay.measured.q.T
    position_error = relative_size(simulation.q.T - q, q)
    return Iteration(
        number, value, torque_error, position_error, inertia, gain_scale, step_length, chi,
        fit(system, 'wls'), rms(output_error),
    ), system  # fmt: skip


class ReplayResult(NamedTuple):
    """The result of the iteration, with the system that it was fitted on."""

    estimate: Estimate  # of the base parameters
    system: Rows
    history: History


def didim(replay: ReplayProblem, chi: Array, progress: Progress | None = None) -> ReplayResult:
    """
    Identify by closed-loop output error on the torque (DIDIM eq. 44-48), or by `replay.method`.

    Every fit has the prior of the problem: what the motion does not excite stays there. It starts
    from standard parameters χ (p,), see `ReplayProblem.initial_parameters`. DivergenceError:
    simulation or iteration do not converge, and what could be simulated does not explain the
    torque; it holds the last good estimate.
    """
    report = progress or (lambda _: None)
    iterate, system = next_iterate(replay, start_candidates(replay, chi), [])
    iterates = [iterate]
    report(iterate)
    try:
        while len(iterates) < replay.settings.iterations:
            candidates = step_candidates(replay, iterates, system)
            iterate, system = next_iterate(replay, candidates, iterates)
            iterates.append(iterate)
            report(iterate)
            full_step = iterate.step_length == 1.0
            if full_step and _converged(iterates[-2].estimate, iterate.estimate, replay.settings):
                # A last simulation checks the result and gives its torque error.
                newest = 1.0, True, replay.standard_parameters(iterate.estimate.value)
                last, _ = next_iterate(replay, [newest], iterates)
                report(last)
                history = _history(replay, [*iterates, last], system)
                return ReplayResult(iterate.estimate, system, history)
        raise DivergenceError(
            f'{replay.method.upper()} has not converged after {len(iterates)} iterations, its '
            f'relative error is {iterate.error:.3g}: use a slower motion or a stiffer control '
            'loop, check the gains, or start from an IDIM solution',
            len(iterates),
            iterate.estimate,
        )
    except DivergenceError as error:
        return _without_convergence(replay, iterates, system, error)


def _without_convergence(
    replay: ReplayProblem, iterates: list[Iteration], system: Rows, error: DivergenceError
) -> ReplayResult:
    """Return the last simulated parameters; raise where they do not explain the torque."""
    first, last = iterates[0], iterates[-1]
    value = last.value
    left = system.total_residual(value) if replay.method == 'didim' else last.error
    if last.error > first.error or left > MAX_RESIDUAL:
        raise error
    # They are as uncertain as the fit along their motion, and by how far they are from it.
    change = last.estimate.value - value
    estimate = dataclasses.replace(
        last.estimate,
        value=value,
        covariance=last.estimate.covariance + np.outer(change, change),
        residual=system.relative_residual(value),
        total_residual=system.total_residual(value),
    )
    notes = list[Finding]()
    # What friction hardly lets move may have a fit that no robot has, within its σ.
    if not _converged(estimate, last.estimate, replay.settings):
        moved = np.abs(change) > MAX_SIGMA_CHANGE * last.estimate.sigma
        names, method = [system.names[k] for k in np.flatnonzero(moved)], replay.method.upper()
        notes = [finding('not_converged', method=method, parameters=names, reason=str(error))]
    return ReplayResult(estimate, system, _history(replay, iterates, system, *notes))


def _converged(before: Estimate, after: Estimate, settings: ReplaySettings) -> bool:
    """Test DIDIM eq. 34; changes of a parameter within its noise count as none."""
    old, new = before.total_residual, after.total_residual
    residual = abs(new - old) <= settings.residual_tolerance * old + NOISE_FREE_RESIDUAL
    relative = settings.parameter_tolerance * np.abs(before.value)
    allowed = np.maximum(relative, MAX_SIGMA_CHANGE * np.asarray(after.sigma))
    return bool(residual and np.all(np.abs(after.value - before.value) <= allowed))


def _history(
    replay: ReplayProblem, iterates: list[Iteration], system: Rows, *notes: Finding
) -> History:
    last, joints, findings = iterates[-1], replay.robot.joints, [*notes]
    estimate, left = last.estimate, rms(last.torque_error)
    if estimate.from_prior:
        names = [estimate.names[k] for k in estimate.from_prior]
        findings.append(finding('near_description', parameters=names))
    if replay.method == 'didim':
        omega, _ = replay.loop_dynamics(last.inertia / last.gain_scale)
        band = bandwidth(replay.desired.dq, replay.law.rate)
        left = with_all_rows(system).total_residual(estimate.value)
        findings += [
            finding('loop_slow', [joint], omega=w, ratio=w / b, band=b)
            for joint, w, b in zip(joints, omega, band, strict=True)
            if w < MIN_BANDWIDTH_RATIO * b
        ]
    if left > MAX_RESIDUAL:
        findings.append(finding('torque_unexplained', residual=left))
    if not replay.restart:
        # ‖q_ddm − q‖ / ‖q − q_r‖ is small where control law and gains are the robot's. A PD loop
        # of s times the bandwidth lags 1/s times as much, so that it comes to 1/s − 1. The
        # measured position is only compared with the result, it does not enter it.
        q = replay.measured.q
        lag = np.maximum(np.linalg.norm(q - replay.desired.q, axis=0), 1e-300)
        ratios = last.position_error * np.linalg.norm(q, axis=0) / lag
        for joint, ratio in zip(joints, ratios, strict=True):
            if ratio > DOUBTFUL_RATIO:
                kind = 'motion_wrong' if ratio > WRONG_RATIO else 'motion_doubtful'
                findings.append(finding(kind, [joint], ratio=ratio))
    return History(replay.base.names, joints, tuple(iterates), tuple(findings))


def describe_iteration(record: Iteration, method: str = 'didim') -> str:
    """Return one line on an iteration, for a progress display."""
    what, values = 'torque', record.torque_error
    if method == 'oe':
        what, values = 'position', record.position_error
    errors = ', '.join(f'{100.0 * error:.1f}' for error in values)
    return f'{method.upper()} iteration {record.number}: {what} error {errors} %'


def fit_with_simulated_instruments(
    replay: ReplayProblem, system: Rows, iterations: int = 1
) -> tuple[Rows, Estimate]:
    """
    Fit a system by instrumental variables, the loop simulated with each estimate in turn.

    IDIM-IV (Janot, Vandanjon and Gautier 2014): noise of the measured positions is in W and in its
    own products, which biases least squares. The observation matrix along the simulated motion is
    as correlated with W as can be, and knows nothing of that noise. Also returns the system with
    its instruments. A DivergenceError where the first estimate cannot be simulated.
    """
    assert replay.samples is not None
    chi = replay.initial_parameters('idim')
    found: Estimate | None = None
    for _ in range(MAX_ROUNDS):
        try:
            replay.inertia(chi)
            run = replay.simulate(chi)
        except DivergenceError:
            if found is None:
                raise
            break
        motion = replay.time, run[:3], replay.robot, replay.base
        system = add_instruments(system, replay.samples, *motion)
        previous, found = found, fit(system, 'iv', iterations)
        limit = CONVERGED * found.sigma
        if previous is not None and np.all(np.abs(found.value - previous.value) <= limit):
            break
        chi = replay.standard_parameters(found.value)
    assert found is not None
    return system, found
