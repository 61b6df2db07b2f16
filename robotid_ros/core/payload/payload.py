"""A payload: a body in a named frame, or, where that is known, the drive gains."""

from collections.abc import Iterable
import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from ...exceptions import ConfigurationError, RecordingError
from ..arrays import Array, column_sizes, DEPENDENT, Mask, ReadOnlyArrays
from ..diagnostics.data_warnings import data_warnings
from ..findings import Finding, finding, MISREAD, select
from ..identification_settings import IdentificationSettings
from ..model import regressor, Robot
from ..model.base_parameters import base_parameters
from ..model.pinocchio_model import body_frame, BodyFrame
from ..model.robot import BaseParameters, INERTIAL, INERTIAL_UNITS
from ..parameters.carried_body import CENTRAL, frame_change, inertia_matrix, ROUNDING, UPPER
from ..parameters.physical_consistency import BodyPrior, consistent_parameters
from ..parameters.standard import physically_consistent_links
from ..pipeline.choices import without_choice
from ..pipeline.estimation import estimate_base_parameters, Progress
from ..pipeline.observation import RecordingOrChunks
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.least_squares import project_out
from ..regression.observation_system import decimate, observe, Rows
from ..signals.preparation import prepare
from ..signals.recording import Recording, SignalSettings

# Terms that cancel up to this share have cancelled: base parameters are known to 1e-7 or so, and
# what the data leave open changes by much more.
CANCELLED = 1e-3
# Share of a parameter in a direction that the data leave open below which it is rounding.
OPEN_SHARE = 1e-3
# Rows so near to standstill are left out, as in `signals.guard`, whatever serves the arm's own
# parameters: friction that the filters blur there differs between recordings, and the others are
# enough. On a simulated UR10 with 1 kg the first moments were off by 0.45 g·m instead of 1.3.
GUARD = 2.0
SIGNIFICANT = 3.0  # a mass below so many σ is none, a body so many σ off contradicts the data
# Relative standard deviation of the shape that a payload is pulled to where its best fit is none,
# and the least share of it that a body may have: as good as no pull, and plates of a millimetre.
PULL, MARGIN = 1.0, 1e-3


@dataclasses.dataclass(frozen=True)
class Payload(ReadOnlyArrays):
    """A body that a link carries, by `XX XY XZ YY YZ ZZ MX MY MZ M`."""

    frame: str  # name of the frame that everything is expressed in
    value: Array  # (10,) of the body that can exist and explains the data best
    covariance: Array  # (10, 10) without that condition, of what the data determine
    undetermined: Array  # (10, k) directions of which the data say nothing
    # (10,) best fit, possible or not; of minimum norm where the data leave it open.
    unconstrained: Array
    names: ClassVar[tuple[str, ...]] = INERTIAL
    units: ClassVar[tuple[str, ...]] = INERTIAL_UNITS

    @property
    def sigma(self) -> Array:
        """σ (10,); infinite where the data do not determine a parameter."""
        return self._sigma(np.eye(10))

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
        """Centre of mass (3,) [m]."""
        return np.asarray(self.value[6:9] / self.mass)

    @property
    def inertia(self) -> Array:
        """Inertia at the centre of mass, axes of the frame, (3, 3) [kg·m²]."""
        return inertia_matrix(self.central)

    @property
    def central(self) -> Array:
        """Mass, centre of mass and inertia at it, (10,) in the order of `CENTRAL`."""
        return central_of(self.value)

    @property
    def central_sigma(self) -> Array:
        """σ (10,) of `central` to first order; infinite where the data do not determine it."""
        # What is determined is so wherever along the undetermined directions the body may be.
        elsewhere = self.value + np.abs(self.undetermined).sum(axis=1)
        unknown = _product(central_gradient(elsewhere), self.undetermined).any(axis=1)
        return np.where(unknown, np.inf, self._sigma(central_gradient(self.value)))

    def moved(self, frame: str, change: Array) -> 'Payload':
        """Return it in another frame, of this name, with the parameters T π; T (10, 10)."""
        value, covariance = change @ self.value, change @ self.covariance @ change.T
        unknown = _product(change, self.undetermined)
        return Payload(frame, value, covariance, unknown, change @ self.unconstrained)

    def _sigma(self, rows: Array) -> Array:
        """Return σ (m,) of combinations (m, 10), infinite where the data leave them open."""
        variance = np.einsum('ij,jk,ik->i', rows, self.covariance, rows)
        unknown = _product(rows, self.undetermined).any(axis=1)
        return np.where(unknown, np.inf, np.sqrt(np.maximum(variance, 0.0)))


def central_of(value: Array) -> Array:
    """Return m, c = h/m and I = J − (hᵀh 1 − h hᵀ)/m of π (10,), in the order of `CENTRAL`."""
    J, h, m = value[:6], value[6:9], value[9]
    return np.array([m, *(h / m), *(J - ((h @ h) * np.eye(3) - np.outer(h, h))[UPPER] / m)])


def central_gradient(value: Array) -> Array:
    """Differentiate `central_of` by π, (10, 10), by complex steps (Squire and Trapp 1998)."""
    return np.array([central_of(value + 1e-30j * e).imag / 1e-30 for e in np.eye(10)]).T


def _product(rows: Array, columns: Array) -> Array:
    """Return rows @ columns, zero where the terms of a sum cancel."""
    result = rows @ columns
    terms = np.abs(rows) @ np.abs(columns)
    size = np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(columns, axis=0))
    return np.where(np.abs(result) > np.maximum(CANCELLED * terms, ROUNDING * size), result, 0.0)


class KnownArm(NamedTuple):
    """Base parameters (b,) of an arm that is identified already, as of an `Estimate`."""

    names: tuple[str, ...]
    value: Array
    covariance: Array
    classical: Array


def payload_from_recordings(
    empty: RecordingOrChunks | KnownArm, loaded: RecordingOrChunks, robot: Robot,
    settings: IdentificationSettings, progress: Progress, frame: str = '',
) -> tuple[Payload, tuple[Finding, ...]]:  # fmt: skip
    """
    Find a payload from a recording with it and one without it, or the identified arm.

    Returns it in a frame of the description that is fixed to the link that carries it, '': that of
    the last joint, and findings on the recordings and on it. RecordingError: a recording cannot be
    used; UnknownNameError, ConfigurationError: there is no such frame, or the models differ.
    """
    robot.check_no_mimic_joints('identifying a payload')
    robot = robot.elastic or robot
    carrier = body_frame(robot, frame)
    settings = payload_identification(settings)
    base, notes = base_parameters(robot), list(robot.warnings)

    def estimate(name: str, recording: RecordingOrChunks) -> Estimate:
        progress(f'identifying, {name}')
        found = estimate_base_parameters(recording, robot, base, settings, lambda _: None)
        systems = found.sampled_systems
        warnings = data_warnings(robot, base, found.samples, systems, found.estimate)
        notes.extend(each.of(name) for each in (*found.notes, *warnings))
        return found.estimate

    if isinstance(empty, KnownArm):
        without: Estimate | KnownArm = empty
        advice = 'the identification without payload'
    else:
        without, advice = estimate('empty', empty), 'which recording is which'
    payload = identify_payload(robot, base, without, estimate('loaded', loaded), carrier)
    return payload, (*notes, *payload_notes(payload, robot.links[carrier.link], advice))


def payload_identification(settings: IdentificationSettings) -> IdentificationSettings:
    """Return how each recording of a payload is identified: one method, no rows near rest."""
    guard = max(settings.signals.guard, GUARD)
    signals = dataclasses.replace(settings.signals, rows='moving', guard=guard)
    method = 'wls' if settings.method == 'both' else settings.method
    settings = dataclasses.replace(settings, method=method, model='plain', signals=signals)
    return without_choice(settings)


def stands_out(payload: Payload) -> bool:
    """Tell whether the mass of a payload stands out of its σ."""
    return bool(payload.mass > SIGNIFICANT * payload.central_sigma[0])


def obstacle(payload: Payload, findings: Iterable[Finding]) -> str:
    """Return why a payload cannot be used, as a sentence; '' where it can be."""
    if codes := sorted({each.code for each in select(findings, *MISREAD)}):
        return f'its recordings are read wrongly, as {" and ".join(codes)} says'
    return '' if stands_out(payload) else 'its mass does not stand out of its σ'


def payload_notes(payload: Payload, joint: str, advice: str) -> list[Finding]:
    """Say what to doubt of a payload at a joint; `advice`: what to check where it cannot be."""
    notes, sigma = list[Finding](), payload.central_sigma[0]
    if not stands_out(payload):
        figures = {'mass': payload.mass, 'sigma': sigma}
        notes.append(finding('payload_uncertain', [joint], advice=advice, **figures))
    parts = ((payload.names, payload.sigma), (CENTRAL, payload.central_sigma))
    unknown, central = (
        [name for name, sigma in zip(names, sigmas, strict=True) if not np.isfinite(sigma)]
        for names, sigmas in parts
    )
    if unknown:
        notes.append(finding('payload_not_told', [joint], parameters=unknown, central=central))
    elif not payload.consistent:
        near = payload.distance < SIGNIFICANT
        remedy = {'inexact': 'inertias'} if near else {'advice': advice}
        notes.append(finding('payload_impossible', [joint], distance=payload.distance, **remedy))
    return notes


def identify_payload(
    robot: Robot, base: BaseParameters, empty: Estimate | KnownArm, loaded: Estimate,
    carrier: BodyFrame | None = None,
) -> Payload:  # fmt: skip
    """
    Find a payload from the base parameters without and with it.

    A payload adds its π to the standard parameters of its link: χ_b' − χ_b = A_link π, weighted
    as if residuals were white; σ count them as they are. Of a π that no body can have the
    nearest one that a body has is taken, by the same weights. Friction and offsets may change
    between the sessions: base parameters that hold nothing else are left out. The carrier is where
    it is, and the frame of the result; None: the last joint's. ConfigurationError: the estimates
    are of other parameters.
    """
    if not empty.names == loaded.names == base.names:
        raise ConfigurationError(
            'the two sessions were not identified with the same model: use one configuration'
        )
    carrier, change = carrier or body_frame(robot), loaded.value - empty.value
    covariances = loaded.covariance + empty.covariance, loaded.classical + empty.classical
    A, target, found = _of_change(robot, base, change, *covariances, carrier)
    value = nearest_possible(A, target, found.unconstrained)
    found = dataclasses.replace(found, value=value)
    return found.moved(carrier.name, frame_change(carrier.placement))


def expected_mass_sigma(
    robot: Robot, base: BaseParameters, estimate: Estimate, carrier: BodyFrame
) -> float:
    """Return σ of a payload's mass by two recordings that tell as much as this estimate [kg]."""
    covariances = 2.0 * estimate.covariance, 2.0 * estimate.classical
    change = np.zeros_like(estimate.value)
    return float(_of_change(robot, base, change, *covariances, carrier)[2].sigma[9])


def _of_change(
    robot: Robot, base: BaseParameters, change: Array, covariance: Array, white: Array,
    carrier: BodyFrame,
) -> tuple[Array, Array, Payload]:  # fmt: skip
    """Return A and g of ‖A π − g‖, of a change (b,), and the π (10,) that makes it least."""
    rows = np.flatnonzero(depends_on_links(robot, base))
    square = np.ix_(rows, rows)
    root = np.linalg.cholesky(white[square] + 1e-12 * np.diag(np.diag(white[square])))
    columns = base.matrix[np.ix_(rows, robot.body_columns[carrier.link])]
    A, target = (np.asarray(np.linalg.solve(root, x)) for x in (columns, change[rows]))
    half, basis, unknown = open_factors(A)
    inverse = half @ np.linalg.solve(root.T, basis).T
    free, link = inverse @ change[rows], robot.links[carrier.link]
    return A, target, Payload(link, free, inverse @ covariance[square] @ inverse.T, unknown, free)


def open_factors(A: Array) -> tuple[Array, Array, Array]:
    """
    Factor the pseudoinverse of rows A (N, p) of rank r: A⁺ = R Uᵀ, (AᵀA)⁺ = R Rᵀ.

    Returns R (p, r), U (N, r), and the directions (p, p − r) that the rows leave open.
    """
    size = column_sizes(A)
    scale = np.where(np.isfinite(size), 1.0 / size, 1.0)
    U, s, Vt = np.linalg.svd(A / size, full_matrices=len(A) < len(size))
    rank = int(np.sum(s > DEPENDENT * s[0]))
    unknown = np.where(np.abs(Vt[rank:]) > OPEN_SHARE, Vt[rank:], 0.0).T
    return scale[:, None] * (Vt[:rank].T / s[:rank]), U[:, :rank], scale[:, None] * unknown


def nearest_possible(A: Array, target: Array, free: Array) -> Array:
    """Return π (10,) of least ‖A π − g‖ that a body has; `free` is the least of all."""
    if physically_consistent_links(free, [0])[0]:
        return free
    prior = BodyPrior(free, [0], link_sigma=PULL, margin=MARGIN)
    return consistent_parameters(A, target, prior).value


def depends_on_links(robot: Robot, base: BaseParameters) -> Mask:
    """Return which base parameters (b,) contain inertial parameters of links."""
    return np.asarray(base.matrix[:, robot.body_columns.ravel()].any(axis=1))


@dataclasses.dataclass(frozen=True)
class DriveGains(ReadOnlyArrays):
    """Torque per unit of published effort, and its σ, (n,) of joints."""

    joints: tuple[str, ...]
    value: Array
    sigma: Array


def identify_drive_gains(
    robot: Robot, empty: Recording, loaded: Recording, payload: Array,
    settings: SignalSettings | None = None,
) -> DriveGains:  # fmt: skip
    """
    Find the drive gains with a payload that is known (Gautier and Briot 2012).

    Of each joint, v_j = (W_j χ_b + W_Lj χ_L)/g_j, the payload's torque W_L χ_L being zero in the
    session without it: its coefficient is 1/g_j. That of W_j is free, and friction may change
    between the sessions. Noise of the effort, on the left side, causes no bias. χ_L (10,) is
    `XX … M` at the frame of the last joint; the robot's own drive gains do not matter.
    RecordingError: a recording cannot be used, or a joint does not feel the payload.
    """
    robot = dataclasses.replace(robot, drive_gain=np.ones(robot.n))
    base, settings = base_parameters(robot), settings or SignalSettings()
    samples = [prepare(recording, robot, settings) for recording in (empty, loaded)]
    systems = [observe(s, robot, base) for s in samples]
    # W_L χ_L (n, N), through the decimation's filter.
    moved, last = samples[1], robot.body_columns[-1]
    W_L = regressor(robot, moved.q, moved.dq, moved.ddq, columns=last)
    torque = decimate(W_L @ np.asarray(payload, dtype=float), moved.decimation)
    bodies = depends_on_links(robot, base)
    value, sigma = np.zeros((2, robot.n))
    for j, joint in enumerate(robot.joints):
        (first, v1), (second, v2) = (system.rows(j) for system in systems)
        drives = block_diag(first[:, ~bodies], second[:, ~bodies])
        W = np.hstack([np.vstack([first, second])[:, bodies], drives])
        p = np.concatenate([np.zeros(len(v1)), torque[j][systems[1].valid[j]]])
        time = np.concatenate([each.time[each.valid[j]] for each in systems])
        # The coefficient of p in the least squares of v on [W p], and its σ.
        own, target = map(project_out(W, DEPENDENT), (p, np.concatenate([v1, v2])))
        inverse, sigma_inverse = 0.0, np.inf
        if float(own @ own) > 1e-12 * max(float(p @ p), 1e-300):
            rows = np.ones((1, len(p)), dtype=bool), time
            columns, band = own[None, :, None], systems[1].band
            row = Rows(('1/g',), ('1',), ('',), columns, target[None], *rows, band=band)
            found = fit(row, 'ols')
            inverse, sigma_inverse = float(found.value[0]), float(found.sigma[0])
        if not inverse > SIGNIFICANT * sigma_inverse:
            raise RecordingError(
                f'the payload loads {joint} too little for its drive gain: '
                'take a heavier payload, or a motion that moves the joint more'
            )
        value[j], sigma[j] = 1.0 / inverse, sigma_inverse / inverse**2
    return DriveGains(robot.joints, value, sigma)
