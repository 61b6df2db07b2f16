"""The result of an identification."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from html import escape
from typing import Any

from ..arrays import Array
from ..diagnostics.data_quality import DataQuality
from ..findings import Finding, render, Severity
from ..mixed.mixed_model import MixedModel
from ..model.robot import BaseParameters, Robot
from ..parameters.essential import Essential
from ..parameters.plain_friction import PlainFriction
from ..parameters.posterior import draw
from ..parameters.standard import Standard
from ..regression.estimate import Estimate
from ..regression.validation import Validation
from ..replay.didim import History


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
        return self.estimate.table().to_pandas()

    def _repr_html_(self) -> str:
        found = ''.join(f'<li>{escape(render(each))}</li>' for each in self.findings)
        return f'<p>{escape(repr(self))}</p>{self.estimate.table().to_html()}<ul>{found}</ul>'
