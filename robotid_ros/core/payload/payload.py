"""The payload from two sessions, one without and one with it at the last link."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import ConfigurationError
from ..arrays import Array, freeze_fields
from ..diagnostics.assumptions import data_warnings
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import base_parameters, BaseParameters
from ..model.parameters import INERTIAL, INERTIAL_UNITS
from ..model.robot import Robot
from ..parameters.physical_consistency import mass_properties, pseudo_inertia
from ..parameters.standard import physically_consistent_links
from ..pipeline.choices import choose_model
from ..pipeline.chunked_estimation import RecordingOrChunks
from ..pipeline.estimation import estimate_base_parameters, Progress
from ..regression.estimate import Estimate

# Smallest singular value over the largest, columns scaled, of what the data determine. Well above
# rounding: base parameters are combinations known to 1e-7 or so.
RANK_TOLERANCE = 1e-6
SIGNIFICANT = 3.0  # a mass below so many σ is none


@dataclasses.dataclass(frozen=True)
class Payload:
    """
    A body that the last link carries, at the frame of the last joint.

    Attributes
    ----------
    names, units : `XX XY XZ YY YZ ZZ MX MY MZ M`
    value, sigma : (10,); the minimum-norm solution where the data do not determine all, σ is then
        infinite
    consistent : whether a body can have these parameters

    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: Array
    sigma: Array
    consistent: bool

    def __post_init__(self) -> None:
        freeze_fields(self, 'value', 'sigma')

    @property
    def mass(self) -> float:
        """M [kg]."""
        return float(self.value[9])

    @property
    def centre_of_mass(self) -> Array:
        """Centre of mass in the frame of the last joint, (3,) [m]; NaN without a mass."""
        return np.asarray(self.value[6:9] / self.mass) if self.mass else np.full(3, np.nan)

    @property
    def relative_sigma(self) -> Array:
        """%σ (10,); inf for a parameter that is zero."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.where(self.value == 0.0, np.inf, 100.0 * self.sigma / np.abs(self.value))

    @property
    def inertia(self) -> Array:
        """Inertia at the centre of mass, axes of the last joint, (3, 3) [kg·m²]."""
        central = mass_properties(pseudo_inertia(self.value))[2]
        return central if self.mass else np.full((3, 3), np.nan)


def payload_from_recordings(
    empty: RecordingOrChunks,
    loaded: RecordingOrChunks,
    robot: Robot,
    settings: IdentificationSettings,
    progress: Progress,
) -> tuple[Payload, tuple[str, ...]]:
    """
    Find a payload from a recording without and one with it.

    Parameters
    ----------
    empty, loaded : recordings, or their successive chunks
    robot : the model
    settings : how each is identified
    progress : called with the name of each step

    Returns
    -------
    The payload, and notes on the recordings and on it

    Raises
    ------
    RecordingError : a recording cannot be used; says which

    """
    robot.check_no_mimic_joints('identifying a payload')
    robot = robot.elastic or robot
    if settings.method == 'both':
        settings = dataclasses.replace(settings, method='wls')
    empty, robot, settings, _ = choose_model(empty, robot, settings)
    base, found, notes = base_parameters(robot), [], list(robot.warnings)
    for name, recording in (('empty', empty), ('loaded', loaded)):
        progress(f'identifying, {name}')
        estimation = estimate_base_parameters(recording, robot, base, settings, lambda _: None)
        estimate = estimation.estimate
        found.append(estimate)
        systems = estimation.sampled_systems
        warnings = data_warnings(robot, base, estimation.samples, systems, estimate)
        notes += [f'{name}: {text}' for text in (*estimation.signal_notes, *warnings)]
    payload = identify_payload(robot, base, *found)
    return payload, (*notes, *_payload_notes(payload, robot.links[-1]))


def _payload_notes(payload: Payload, joint: str) -> list[str]:
    notes = []
    if not payload.mass > SIGNIFICANT * payload.sigma[9]:
        notes.append(
            f'the mass, {payload.mass:.3g} ± {payload.sigma[9]:.2g} kg, does not stand out of its '
            'σ: check which recording is which, take a heavier body, or a motion against gravity'
        )
    unknown = [n for n, s in zip(payload.names, payload.sigma, strict=True) if not np.isfinite(s)]
    if unknown:
        notes.append(
            f'the motion does not tell {", ".join(unknown)} apart (σ is infinite): move the '
            f'joints up to {joint} more, about other axes, if these matter'
        )
    elif not payload.consistent:
        notes.append(
            'no body has exactly these parameters: small ones are within their σ, take mass and '
            'centre of mass, or record longer'
        )
    return notes


def identify_payload(
    robot: Robot, base: BaseParameters, empty: Estimate, loaded: Estimate
) -> Payload:
    """
    Find a payload from the base parameters without and with it.

    A payload adds its π to the standard parameters of the last link: χ_b' − χ_b = A_last π,
    weighted as if residuals were white; σ count them as they are. Friction and offsets may change
    between the sessions: base parameters that hold nothing else are left out.

    Parameters
    ----------
    robot, base : what both were identified with
    empty, loaded : their estimates

    Raises
    ------
    ConfigurationError : the estimates are of other parameters

    """
    if not empty.names == loaded.names == base.names:
        raise ConfigurationError(
            'the two sessions were not identified with the same model: use one configuration'
        )
    start = int(robot.first_columns[-1])
    rows = np.flatnonzero(depends_on_links(robot, base))
    change = (loaded.value - empty.value)[rows]
    white, covariance = (
        (getattr(loaded, name) + getattr(empty, name))[np.ix_(rows, rows)]
        for name in ('classical', 'covariance')
    )
    root = np.linalg.cholesky(white + 1e-12 * np.diag(np.diag(white)))
    A = np.linalg.solve(root, base.matrix[rows, start : start + 10])
    size = np.linalg.norm(A, axis=0)
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
    U, s, Vt = np.linalg.svd(A * scale, full_matrices=False)
    kept = s > RANK_TOLERANCE * s[0]
    inverse = scale[:, None] * (Vt[kept].T / s[kept]) @ np.linalg.solve(root.T, U[:, kept]).T
    value = inverse @ change
    sigma = np.sqrt(np.diag(inverse @ covariance @ inverse.T))
    unknown = np.linalg.norm(Vt[kept], axis=0) < 1.0 - 1e-6
    sigma[unknown] = np.inf
    return Payload(
        INERTIAL, INERTIAL_UNITS, value, sigma, bool(physically_consistent_links(value, [0])[0])
    )


def depends_on_links(robot: Robot, base: BaseParameters) -> npt.NDArray[np.bool_]:
    """Return which base parameters (b,) contain inertial parameters of links."""
    links = (robot.first_columns[:, None] + np.arange(10)).ravel()
    return np.asarray(base.matrix[:, links].any(axis=1))
