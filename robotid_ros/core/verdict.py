"""
What an identified model can be used for, on other motions of the same robot.

Two errors add up: that of the parameters, which more motion reduces, and that of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array
from .diagnostics.data_quality import white_noise
from .excitation.working_motion import working_errors
from .findings import Finding, MISREAD, select, Severity

if TYPE_CHECKING:
    from .pipeline.identification import Identification
    from .regression.validation import Validation

GOOD, FAIR, POOR, UNUSABLE = 'good', 'fair', 'poor', 'unusable'
LEVELS = (GOOD, FAIR, POOR, UNUSABLE)
SIMULATION, FEED_FORWARD, CONTACT, PAYLOAD = 'simulation', 'feed_forward', 'contact', 'payload'
ROUGH_USES, EXACT_USES = (SIMULATION, FEED_FORWARD), (CONTACT, PAYLOAD)
PURPOSES = {GOOD: (*ROUGH_USES, *EXACT_USES), FAIR: ROUGH_USES, POOR: (), UNUSABLE: ()}
# What decided about a level: the unit of the efforts; the residual on a motion that was not
# fitted; the covariance; the model; the residual with its noise; findings; no validation.
UNIT, MEASURED, PARAMETERS, MODEL = 'effort_unit', 'measured', 'parameters', 'model'
RESIDUAL = 'residual'
BY_FINDINGS, NOT_VALIDATED, NOTHING = 'findings', 'not_validated', 'nothing'


# Bounds of errors, shares of a joint's effort in motion: of the worst joint by level, others.
THRESHOLDS = {
    # Contact and payload stand out of the error: a payload of a tenth of what the arm bears
    # changes the effort by about twice as much.
    GOOD: 0.05,
    # The default leaves 1 to 10 % of real arms (14 public logs); feed-forward with 15 % error
    # still leaves the controller a seventh of the effort.
    FAIR: 0.15,
    # Without any model the error is 100 %: a worse one does not even halve it.
    POOR: 0.5,
    # Of the parameters, up to which a validation shows the error of the model, and not theirs.
    'determined': 0.15,
    # Residual of a simulated robot, whose model lacks nothing: noise leaves below 2 %.
    'recovered': 0.03,
    # Share of the true parameters within ±3 σ: 99.7 % if σ were perfect.
    'recovered_share': 0.9,
}

# Third differences underestimate noise of decimated rows, which is white up to Ω = 0.8 π only. Its
# variance is Ω/π, that of its third differences 1/π ∫₀^Ω (2 − 2 cos ω)³ dω =
# 2/π (10 Ω − 15 sin Ω + 3 sin 2Ω − sin 3Ω/3), of white noise 20. Factor: √(20 · first/second).
IN_BAND = 1.383


@dataclasses.dataclass(frozen=True)
class JointError:
    """Relative error of prediction of one joint, ‖τ − τ̂‖/‖τ‖ while it moves; NaN: not known."""

    joint: str
    # Expected on other motions by the covariance of the parameters; more motion reduces it.
    from_parameters: float = math.nan
    # What the model leaves on rows that were not fitted, noise apart; more motion does not.
    from_model: float = math.nan
    measured: float = math.nan  # on the validation motion, noise apart

    @property
    def expected(self) -> float:
        """Both errors together; NaN where neither is known."""
        known = [x for x in (self.from_parameters, self.from_model) if not math.isnan(x)]
        return math.hypot(*known) if known else math.nan

    @property
    def worst(self) -> float:
        """The larger one of what is expected and of what was measured; 0 where nothing is."""
        return max((x for x in (self.expected, self.measured) if not math.isnan(x)), default=0.0)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What an identified model can be used for."""

    level: str  # one of `LEVELS`
    reason: str  # what decided
    joints: tuple[JointError, ...] = ()
    validated: bool = False  # whether a motion that was not fitted was predicted
    cause: int | None = None  # index in the findings of the most likely cause
    severe: int = 0  # number of findings that may make parameters wrong
    # Limits that the description lacks ('position', 'velocity', 'acceleration'): recording or rule
    # replaced them.
    unlimited: tuple[str, ...] = ()
    effort_unit: str = ''  # '' where efforts are N·m or N; else their unit, '?' for an unknown one
    residual: float = math.nan  # largest relative one of a joint in any motion, with its noise

    @property
    def usable(self) -> bool:
        """Whether it predicts other motions at all."""
        return self.level != UNUSABLE

    @property
    def purposes(self) -> tuple[str, ...]:
        """What it can be used for."""
        return PURPOSES[self.level]

    @property
    def worst(self) -> JointError | None:
        """The joint with the largest error, None without joints."""
        return max(self.joints, key=lambda joint: joint.worst, default=None)


def judge(identification: Identification) -> Verdict:
    """Judge an identification by what it will predict of other motions of the same robot."""
    found, data = identification, identification.quality
    parameters, unlimited = parameter_error(found)
    raw, band = [_moving(found.fitted)], IN_BAND if data and data.decimation > 1 else 1.0
    fit, noise = without_noise(found.fitted, band)
    # Without rows that were not fitted, the error of the fit stands for theirs.
    held_out, measured = fit, np.full(len(fit), math.nan)
    chosen = None if found.mixed is None else found.mixed.shrinkage
    if chosen is not None and len(chosen.joint_residuals) == len(fit):
        # The folds include rows at rest, where friction has no model.
        worse = chosen.joint_residuals / np.maximum(found.fitted.relative_residual, 1e-300)
        held_out = np.fmax(fit, _remainder(raw[0] * worse, noise))
    # What was fitted validates nothing.
    validated = found.validation is not None and not select(found.findings, 'validation_copied')
    if found.validation is not None and validated:
        raw.append(_moving(found.validation))
        measured = without_noise(found.validation, band)[0]
        told = np.isfinite(measured) & ~(parameters > THRESHOLDS['determined'])
        rest = _remainder(measured, np.nan_to_num(parameters))
        held_out = np.where(told, np.fmax(fit, rest), held_out)
    rows = zip(found.fitted.joints, parameters, held_out, measured, strict=True)
    units = select(found.findings, 'effort_unit', 'effort_unit_of_log')
    return decide_level(
        [JointError(joint, *map(float, values)) for joint, *values in rows],
        found.findings,
        residual=float(np.nanmax(raw, initial=0.0)),
        validated=validated,
        unlimited=unlimited,
        effort_unit=str(units[0].values['unit']) if units else '',
        cause=found.findings.index(units[0]) if units else None,
    )


def decide_level(
    joints: Sequence[JointError], findings: Sequence[Finding] = (), *, residual: float,
    validated: bool, unlimited: tuple[str, ...] = (), effort_unit: str = '',
    cause: int | None = None,
) -> Verdict:  # fmt: skip
    """
    Draw the verdict from errors of joints and findings.

    What is read wrongly is poor however well it fits. Unless given, the cause is the first error
    that concerns the worst joint, or else the first.
    """
    severe = [k for k, each in enumerate(findings) if each.severity == Severity.ERROR]
    worst = max(joints, key=lambda joint: joint.worst, default=None)
    if worst is None:
        return Verdict(UNUSABLE, NOTHING)
    if cause is None and severe:
        of_worst = (k for k in severe if worst.joint in (findings[k].joints or [worst.joint]))
        cause = next(of_worst, severe[0])
    bounds = {level: THRESHOLDS[level] for level in (GOOD, FAIR, POOR)}
    level = next((name for name, most in bounds.items() if worst.worst <= most), UNUSABLE)
    reason = _largest(worst)
    if level == GOOD and (severe or not validated):
        level, reason = FAIR, BY_FINDINGS if severe else NOT_VALIDATED
    if level in (GOOD, FAIR) and select(findings, *MISREAD):
        level, reason = POOR, BY_FINDINGS
    # Such residuals make the parameters uncertain, too: they come first.
    unexplained = any(joint.from_model > bounds[POOR] for joint in joints)
    if unexplained or (residual > bounds[POOR] and level != UNUSABLE):
        level, reason = UNUSABLE, RESIDUAL
    if effort_unit:
        level, reason = UNUSABLE, UNIT
    given = validated, cause, len(severe), unlimited, effort_unit, residual
    return Verdict(level, reason, tuple(joints), *given)


def parameter_error(identification: Identification) -> tuple[Array, tuple[str, ...]]:
    """
    Return the relative error that the parameters are expected to make on other motions, (n,).

    √(E[w C wᵀ]/E[τ²]) over `working_motion`, with C the covariance that noise leaves: what a model
    leaves out is an error of its own, which more motion does not reduce. NaN where the model says
    nothing of other motions; with it, which limits the description lacks.
    """
    found, data = identification, identification.quality
    if data is None or len(found.base.columns) != len(found.estimate.value):
        return np.full(found.robot.n, math.nan), ()
    of = found.estimate.value, found.estimate.reducible_covariance
    reached, recorded = data.reached, found.fitted.moving_effort
    error, _, unlimited = working_errors(found.robot, found.base, *of, reached, recorded)
    return error, unlimited


def _largest(joint: JointError) -> str:
    """Return which of a joint's errors is the largest."""
    parameters, model = np.nan_to_num((joint.from_parameters, joint.from_model))
    uncertain = parameters >= model and parameters > THRESHOLDS['determined']
    if not uncertain and joint.measured > max(joint.expected, 0.0) * (1.0 + 1e-9):
        return MEASURED
    return PARAMETERS if parameters >= model else MODEL


def _moving(efforts: Validation) -> Array:
    """Return relative residuals in motion (n,), NaN of joints that do not move."""
    return np.where(efforts.valid.any(axis=0), efforts.moving_residual, math.nan)


def _remainder(residual: Array, known: Array) -> Array:
    """Return what is left of relative residuals (n,) without a part that is known."""
    return np.sqrt(np.maximum(residual**2 - known**2, 0.0))


def without_noise(efforts: Validation, band: float) -> tuple[Array, Array]:
    """
    Return relative residuals in motion without white noise, and that noise, (n,) each.

    Noise of the measured efforts is no error of a prediction.
    """
    effort = efforts.moving_effort
    white = band * white_noise(efforts.measured - efforts.predicted)
    noise = np.divide(white, effort, out=np.zeros(len(effort)), where=effort > 0.0)
    return _remainder(_moving(efforts), noise), noise
