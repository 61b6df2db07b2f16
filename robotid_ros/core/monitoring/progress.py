"""What an experiment knows while it runs, and whether that is enough."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import math

import numpy as np

from ...exceptions import ConfigurationError, RankDeficientError, use_one_of
from ..arrays import Array
from ..excitation.problem import Known
from ..excitation.settings import Until
from ..excitation.working_motion import working_errors
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import base_parameters
from ..model.pinocchio_model import BodyFrame
from ..model.robot import ElasticRobot, Robot
from ..payload.payload import expected_mass_sigma, payload_identification
from ..pipeline.choices import choose_model
from ..pipeline.estimation import as_configured
from ..pipeline.observation import observe_so_far
from ..regression.covariance import SECONDS
from ..regression.estimators import fit, MIXED
from ..regression.goodness_of_fit import validate_system
from ..regression.validation import Validation
from ..signals.recording import Recording
from ..verdict import IN_BAND, without_noise

# Where the parameters add less to what the model leaves, more motion is wasted: of an error that
# is a third of another one, both together have 5 %.
WASTED = 1.0 / 3.0
BAND = 2.0  # standard deviations of a band
MASS = 'mass'  # what is known of a payload, in `until.sigma`


@dataclasses.dataclass(frozen=True)
class Knowledge:
    """What is known so far."""

    joints: tuple[str, ...]
    time: float  # motion that was seen [s]
    # (n,) relative error of prediction that the parameters are expected to make on working
    # motions, which more motion reduces, see `verdict.parameter_error`.
    error: Array
    highest: Array  # (n,) the same, which it is hardly above: by the spread of such parameters
    model: Array  # (n,) relative residual without noise: what the model leaves, in the fit
    # σ, with what the model leaves out: a payload's mass, then what costs most of the prediction.
    sigma: Mapping[str, float]
    # Of an arm, for the design of a next motion, with the friction that was chosen.
    design: tuple[Known, Robot] | None = None

    @property
    def worst(self) -> int:
        """Joint with the largest error; what is not known is larger than all."""
        return int(np.argmax(np.where(np.isnan(self.error), math.inf, self.error)))

    def error_after(self, seconds: float) -> float:
        """Return the largest error that is expected after so much more of the same motion."""
        return float(self.error[self.worst] * math.sqrt(self.time / (self.time + seconds)))

    def enough(self, until: Until) -> bool:
        """Whether all goals are met, or the model error is so many times the parameters'."""
        # A parameter may be gone with gravity, where the efforts hold none.
        sigma = {name: self.sigma.get(name, math.inf) for name in until.sigma}
        if any(not sigma[name] <= bound for name, bound in until.sigma.items()):
            return False
        error = float(self.error[self.worst])
        left = float(np.nanmax(self.model, initial=0.0))
        goal = until.prediction
        return not goal or error <= max(goal, WASTED * left)


def follow(
    chunks: Iterable[Recording], robot: Robot | ElasticRobot, settings: IdentificationSettings,
    until: Until, carrier: BodyFrame | None = None,
) -> Iterator[Knowledge]:  # fmt: skip
    """
    Yield what is known after each chunk of a motion, in bounded memory.

    What the configuration leaves open is chosen from the first chunk that moves, whose filters and
    delays count; other methods than the default's count as WLS. Nothing is yielded while some
    parameter is undetermined. Of a motion for payloads of a `carrier`, the mass has the σ of two
    sessions which tell as much. ConfigurationError: `until.sigma` names nothing that is found, or
    springs, MLE and averages of periods, which need the same number of periods whatever is known;
    RecordingError: the motion cannot be used.
    """
    whole = settings.method == 'mle' or settings.signals.averaging
    if isinstance(robot, ElasticRobot) or whole:
        raise ConfigurationError('springs, mle and averaging need all periods')
    names, what = base_parameters(robot).names, 'base parameter'
    if carrier is not None:
        names, what = (MASS,), 'figure of a payload'
        settings = payload_identification(settings)
    for name in until.sigma:
        if name not in names:
            raise ConfigurationError(
                f"excitation.until.sigma: '{name}' is no {what}: {use_one_of(name, names)}"
            )
    recording, robot, settings, mixed, _ = choose_model(chunks, robot, settings)
    assert not isinstance(recording, Recording)
    base, method = base_parameters(robot), MIXED if settings.method == MIXED else 'wls'
    for so_far in observe_so_far(recording, robot, base, settings.signals, SECONDS):
        observed = so_far()
        system, sampled = as_configured(observed.system, settings), observed.sampled_systems
        if mixed is not None and method == MIXED:
            system = mixed.attach(system)
        try:
            estimate = fit(system, method, settings.iterations)
        except RankDeficientError:
            continue
        fitted = Validation.concatenate(
            [validate_system(rows, robot, base, estimate.value) for rows in sampled]
        )
        q, dq = (np.concatenate([getattr(rows, name) for rows in sampled]) for name in ('q', 'dq'))
        reached = q.min(axis=0), q.max(axis=0), np.abs(dq).max(axis=0)
        of = estimate.value, estimate.reducible_covariance
        error, goals, _ = working_errors(robot, base, *of, reached, fitted.moving_effort)
        products = goals @ of[1]
        # Of normal parameters, the mean and the variance of the squared error.
        mean = np.maximum(np.trace(products, axis1=1, axis2=2), 0.0)
        variance = 2.0 * np.sum(products * products.swapaxes(1, 2), axis=(1, 2))
        highest = np.sqrt(mean + BAND * np.sqrt(np.maximum(variance, 0.0)))
        model, _ = without_noise(fitted, IN_BAND if sampled[0].band < 1.0 else 1.0)
        sigma = dict[str, float]()
        if carrier is not None:
            sigma[MASS] = expected_mass_sigma(robot, base, estimate, carrier)
        cost = np.diag(goals.max(axis=0)) * np.diag(estimate.covariance)
        sigma |= {estimate.names[k]: float(estimate.sigma[k]) for k in np.argsort(-cost)}
        seconds = float(fitted.time[-1] - fitted.time[0])
        # Rows count as far as they are independent, by what predictions lose: of a design's rows
        # the errors are white.
        white = float(np.sum(goals * estimate.classical))
        excess = max(float(mean.sum()) / max(white, 1e-300), 1.0)
        rate = float(estimate.rows.sum()) / excess / robot.n / seconds
        effort = np.sqrt(np.mean(fitted.measured**2, axis=0))
        told = robot.joints, base.names, estimate.value, excess * estimate.classical
        known = Known(*told, error, fitted.rms, effort, rate)
        design = (known, robot) if carrier is None else None
        yield Knowledge(robot.joints, seconds, error, highest, model, sigma, design)
