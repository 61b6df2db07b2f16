"""From a recording to an identification: the steps in their order, and the result."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any, TYPE_CHECKING

import numpy as np

from ...exceptions import ControllerError, DivergenceError, RecordingError
from ..arrays import Array
from ..diagnostics.data_quality import (
    data_quality,
    DataQuality,
    disagreement_warnings,
    identifiability_warnings,
)
from ..diagnostics.data_warnings import data_warnings
from ..diagnostics.plausibility import dissipation_warnings, exact_fit_warnings, FittedModel
from ..excitation.trajectory import Motion
from ..findings import Finding, finding, in_order, select, Severity
from ..identification_settings import IdentificationSettings, SIMULATED
from ..mixed.mixed_model import MixedModel
from ..model.base_parameters import base_parameters
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..parameters.essential import Essential, find_essential
from ..parameters.plain_friction import plain_friction, PlainFriction
from ..parameters.posterior import draw
from ..parameters.standard import basic_solution, Standard, standard_parameters
from ..regression.estimate import Estimate
from ..regression.estimators import MIXED
from ..regression.goodness_of_fit import validate_samples, validate_system
from ..regression.validation import Validation
from ..signals.invalid_samples import find_copies
from ..signals.preparation import prepare
from ..signals.recording import Recording
from .choices import choose_model
from .estimation import check_method, estimate_base_parameters, Progress
from .observation import LogSet, RecordingOrChunks, validate, without_delays

if TYPE_CHECKING:
    from ..replay.didim import History

MAX_COPIED = 0.1  # share of a validation that what is fitted may hold as well


@dataclasses.dataclass(frozen=True)
class Identification:
    """
    The result of an identification.

    Attributes
    ----------
    robot : what was identified
    method : 'ols', 'wls', 'mle', 'irls', 'tls', 'iv', 'didim', 'clie', 'cloe' or 'oe'
    base : which parameters can be identified
    estimate : of the base parameters
    essential : of the essential ones, or None
    standard : standard parameters with their consistency
    fitted : efforts on the identification motion; on parts of it where it is long
    validation : efforts on another motion, or None
    findings : what matters most first; `findings.render` makes their text
    history : iterations of an iterative method, or None
    compared : the identification by another method, or None
    mixed : what was chosen by folds of the motion, or None
    quality : of the data, or None
    plain_friction : that stands for the friction of each joint and coupling, by name

    """

    robot: Robot
    method: str
    base: BaseParameters
    estimate: Estimate
    essential: Essential | None
    standard: Standard
    fitted: Validation
    validation: Validation | None = None
    findings: tuple[Finding, ...] = ()
    history: History | None = None
    compared: Identification | None = None
    mixed: MixedModel | None = None
    quality: DataQuality | None = None
    plain_friction: Mapping[str, PlainFriction] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        residual = f'{100.0 * self.fitted.total_residual():.2f} % residual of the fit'
        if self.validation is not None:
            residual += f', {100.0 * self.validation.total_residual():.2f} % of the validation'
        warned = sum(found.severity > Severity.INFO for found in self.findings)
        return (
            f'<{self.robot.name} by {self.method}: {len(self.estimate.names)} base '
            f'parameters, {residual}, {warned} warnings>'
        )

    def sample(self, n: int, seed: int = 0) -> Array:
        """
        Draw standard parameters (n, p), in the order of `robot.parameters`, of possible robots.

        They have the estimate's covariance, model error included, and where the data tell little
        the prior's, truncated to links with a positive definite pseudo-inertia and to friction
        coefficients that are not negative. If no such robot explains the data (finding
        `not_physical`), the draws are still of this distribution: they predict worse than the base
        parameters. More draws with the same seed begin with the same ones.

        Raises
        ------
        SolverError : there are no consistent parameters to start from, or draws do not mix

        """
        found, spread = self.estimate, self.standard.spread
        return draw(self.robot, self.base, found.value, found.covariance, spread, n, seed)

    def to_pandas(self) -> Any:
        """Return the base parameters as a `pandas.DataFrame`: value, sigma, percent, unit."""
        return self.estimate.to_pandas()


def identify(
    recording: RecordingOrChunks,
    robot: Robot,
    settings: IdentificationSettings,
    validation: RecordingOrChunks | None = None,
    progress: Progress | None = None,
) -> Identification:
    """
    Identify a robot from a recording, from successive chunks of it, or from several logs.

    The validation is another motion; `progress` is called with the name of each step.
    RecordingError: the recording cannot be used; RankDeficientError: the motion leaves parameters
    undetermined; ControllerError, DivergenceError: a closed-loop method lacks the control law, or
    does not converge.
    """
    robot, progress = robot.elastic or robot, progress or (lambda _: None)
    check_method(recording, robot, settings)
    if settings.method == 'both':
        return _by_wls_and_didim(recording, robot, settings, validation, progress)
    copied = _copied(recording, validation, robot.recorded_joints)
    progress('choosing filters, rows and friction')
    recording, robot, settings, mixed, notes = choose_model(recording, robot, settings)
    progress('preparing signals')
    base = base_parameters(robot)
    estimation = estimate_base_parameters(recording, robot, base, settings, progress, mixed)
    samples, systems = estimation.samples, estimation.sampled_systems
    # Without what is shrunk: diagnostics look at what that leaves.
    estimate, plain, essential = estimation.estimate, estimation.without_shrunk(), None
    if settings.essential:
        progress('finding the essential parameters')
        method = 'wls' if estimate.method == MIXED else estimate.method
        bound = settings.essential_sigma
        essential = find_essential(plain.system, plain.estimate, bound, method)
        if (penalty := estimation.system.penalty) is not None:
            places = np.flatnonzero(~penalty.shrunk)[essential.indices]
            essential = dataclasses.replace(essential, indices=places)
    progress('finding standard parameters')
    pull = settings.prior_spread, settings.prior_cost
    standard = standard_parameters(robot, base, estimate, estimation.system, *pull)
    progress('validating')
    chi = basic_solution(base, estimate.value)
    held_out = other = None
    if validation is not None:
        prompt = without_delays(validation, estimation.delays, settings.signals.stamps)
        if isinstance(prompt, Recording):  # plain friction is judged by all samples, not by rows
            tried = prepare(prompt, robot, settings.signals)
            held_out = validate_samples(tried, robot, chi)
            other = Motion(tried.q, tried.dq, tried.ddq)
        else:
            held_out = validate(prompt, robot, chi, settings)
            other = held_out.motion
    # A replay has rows of the simulated motion, and rows of springs are combinations: what is
    # compared with other methods is the measured motion.
    if settings.method in SIMULATED or isinstance(robot, ElasticRobot):
        fitted = validate_samples(samples, robot, chi)
    else:
        parts = [validate_system(rows, robot, base, estimate.value) for rows in systems]
        fitted = Validation.concatenate(parts)
    whole, judged = FittedModel(robot, base, systems, estimate.value), (robot, base)
    if mixed is not None and robot is mixed.robot:
        judged = (mixed.plain, mixed.base)
    described, fit = judged[0], plain.estimate
    of_log = getattr(recording, 'notes', ())
    # Of efforts of other instants, nothing else can be told.
    told = select((*notes, *estimation.notes), 'clocks_differ')
    data = [] if told else data_warnings(*judged, samples, plain.sampled_systems, fit, whole)
    # The log says its unit itself, the configuration what its efforts are worth.
    said, seen = select(of_log, 'effort_unit_of_log'), select(data, 'effort_unit')
    # Gravity was not missing where it has another direction.
    mistaken = select(notes, 'no_gravity') if select(data, 'gravity_direction') else ()
    # Of an effort with the opposite sign, friction gives energy.
    turned = {joint for each in select(data, 'effort_sign') for joint in each.joints}
    giving = dissipation_warnings(whole, estimate.covariance)
    findings = [
        *described.warnings,
        *(each for each in notes if each not in mistaken),
        *filter(None, [standard.obstacle]),
        *(each for each in of_log if not (described.drive_gain_given and each in said)),
        *estimation.notes,
        *(each for each in data if not (said and each in seen)),
        *exact_fit_warnings(described, samples, fit),
        *(each for each in giving if not turned.issuperset(each.joints)),
        *identifiability_warnings(described, samples, fit),
        *estimation.remarks,
        *copied,
    ]
    motion, period = estimation.motion()
    return Identification(
        robot, settings.method, base, estimate, essential, standard, fitted, held_out,
        in_order(findings), estimation.history,
        mixed=mixed,
        quality=data_quality(recording, robot, samples, estimate, estimation.delays),
        plain_friction=plain_friction(robot, standard.value, motion, other, period),
    )  # fmt: skip


def _copied(
    recording: RecordingOrChunks, validation: RecordingOrChunks | None, joints: tuple[str, ...]
) -> list[Finding]:
    """Note that a validation is a copy of what is fitted."""
    logs = [each.logs if isinstance(each, LogSet) else (each,) for each in (recording, validation)]
    parts = list[Array]()
    for each in logs:
        own = [x.select(joints) for x in each if isinstance(x, Recording) and x.size]
        if len(own) < len(each):
            return []  # it is too long for memory, or there is nothing
        rows = [np.column_stack([x.position, x.effort]) for x in own]
        parts.append(np.concatenate(rows))
    share = float(find_copies(parts[1], parts[0]).mean())
    return [finding('validation_copied', share=share)] if share > MAX_COPIED else []


def _by_wls_and_didim(
    recording: RecordingOrChunks,
    robot: Robot,
    settings: IdentificationSettings,
    validation: RecordingOrChunks | None,
    progress: Progress,
) -> Identification:
    """Identify by WLS, and by DIDIM to compare; where that fails, the first result stands."""
    wls, didim = (dataclasses.replace(settings, method=name) for name in ('wls', 'didim'))
    found = identify(recording, robot, wls, validation, progress)
    try:
        other = identify(recording, robot, didim, validation, progress)
    except (ControllerError, DivergenceError, RecordingError) as error:
        note = finding('nothing_to_compare', reason=str(error))
        return dataclasses.replace(found, findings=in_order((*found.findings, note)))
    notes = [each.of('DIDIM') for each in other.findings if each not in found.findings]
    notes += disagreement_warnings(found.estimate, other.estimate)
    findings = in_order((*found.findings, *notes))
    return dataclasses.replace(found, findings=findings, history=other.history, compared=other)
