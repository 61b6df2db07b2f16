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
from ..parameters.physical_consistency import (
    consistent_parameters,
    mass_properties,
    pseudo_inertia,
)
from ..parameters.standard import physically_consistent_links
from ..pipeline.choices import choose_model
from ..pipeline.chunked_estimation import RecordingOrChunks
from ..pipeline.estimation import estimate_base_parameters, Progress
from ..regression.estimate import Estimate

# Smallest singular value over the largest, columns scaled, of what the data determine. Well above
# rounding: base parameters are combinations known to 1e-7 or so.
RANK_TOLERANCE = 1e-6
SIGNIFICANT = 3.0  # a mass below so many σ is none, a body so many σ off contradicts the data
# Relative standard deviation of the shape that a payload is pulled to where its best fit is none,
# and the least share of it that a body may have: as good as no pull, and plates of a millimetre.
PULL, MARGIN = 1.0, 1e-3


@dataclasses.dataclass(frozen=True)
class Payload:
    """
    A body that the last link carries, at the frame of the last joint.

    Attributes
    ----------
    names, units : `XX XY XZ YY YZ ZZ MX MY MZ M`
    value : (10,) of the body that can exist and explains the data best
    sigma : (10,) without that condition; infinite where the data do not determine a parameter
    unconstrained : (10,) best fit, possible or not; of minimum norm where σ is infinite

    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: Array
    sigma: Array
    unconstrained: Array

    def __post_init__(self) -> None:
        freeze_fields(self, 'value', 'sigma', 'unconstrained')

    @property
    def consistent(self) -> bool:
        """Whether a body can have the parameters of the best fit."""
        return bool(physically_consistent_links(self.unconstrained, [0])[0])

    @property
    def distance(self) -> float:
        """Largest distance of a parameter from the best fit, over its σ."""
        change = np.abs(self.value - self.unconstrained)
        return float(np.max(change / np.maximum(self.sigma, 1e-300)))

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
            'no body can have the parameters that fit best: these are of the nearest one that can '
            f'exist, up to {payload.distance:.1f} σ away; '
            + (
                'record longer for more exact inertias'
                if payload.distance < SIGNIFICANT
                else 'check which recording is which, and the robot description'
            )
        )
    return notes


def identify_payload(
    robot: Robot, base: BaseParameters, empty: Estimate, loaded: Estimate
) -> Payload:
    """
    Find a payload from the base parameters without and with it.

    A payload adds its π to the standard parameters of the last link: χ_b' − χ_b = A_last π,
    weighted as if residuals were white; σ count them as they are. Of a π that no body can have the
    nearest one that a body has is taken, by the same weights. Friction and offsets may change
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
    A = np.asarray(np.linalg.solve(root, base.matrix[rows, start : start + 10]))
    target = np.asarray(np.linalg.solve(root, change))
    size = np.linalg.norm(A, axis=0)
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
    U, s, Vt = np.linalg.svd(A * scale, full_matrices=False)
    kept = s > RANK_TOLERANCE * s[0]
    inverse = scale[:, None] * (Vt[kept].T / s[kept]) @ np.linalg.solve(root.T, U[:, kept]).T
    free = inverse @ change
    sigma = np.sqrt(np.diag(inverse @ covariance @ inverse.T))
    unknown = np.linalg.norm(Vt[kept], axis=0) < 1.0 - 1e-6
    sigma[unknown] = np.inf
    body = _nearest_body(A, target, free)
    return Payload(INERTIAL, INERTIAL_UNITS, body, sigma, free)


def _nearest_body(factor: Array, target: Array, free: Array) -> Array:
    """Return the possible π (10,) of least ‖F π − g‖, whose least squares solution is `free`."""
    if physically_consistent_links(free, [0])[0]:
        return free
    return consistent_parameters(factor, target, free, [0], link_sigma=PULL, margin=MARGIN).value


def depends_on_links(robot: Robot, base: BaseParameters) -> npt.NDArray[np.bool_]:
    """Return which base parameters (b,) contain inertial parameters of links."""
    links = (robot.first_columns[:, None] + np.arange(10)).ravel()
    return np.asarray(base.matrix[:, links].any(axis=1))
