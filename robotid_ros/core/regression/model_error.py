"""What the model may leave out of joint torques, and how far that moves the estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.special import chdtrc

from ..arrays import Array, diagonal_scale, Indices
from ..model.robot import BaseParameters, INERTIAL, Robot
from ..signals.recording import Samples
from .observation_system import read_only, Rows, System

# Speeds over which friction at low speed fades, over the rms of the joint's own: of the first few
# degrees per second of an arm, and of much of its range.
FADING = (0.1, 0.5)
# Half waves over the recording of a zero that wanders.
WAVES = 3
# A group counts from this p-value on: of white noise one in a hundred does, and σ stay within some
# per cent (benchmarks/coverage.py); 0.05 would hardly find more.
SIGNIFICANT = 0.01
# What makes a joint's load: links, and a rotor whose bearings carry its torque.
RIGID = (*INERTIAL, 'Ia')
RCOND = 1e-10  # least singular value over the largest of the fit that tells the load
# Share of a column that the model's own must leave: of less, nothing can be seen.
VISIBLE = 1e-8
# Times that groups are added. Most iterations for their variances, and the relative change of
# these that ends it. A group that explains less than NOTHING of the noise's variance is dropped.
ROUNDS, ITERATIONS, TOLERANCE, NOTHING = 10, 100, 0.01, 1e-3
# Groups are added together whose statistics are at least this share of the largest.
CLEAR = 0.5


class JointMotion(NamedTuple):
    """What the torque of a joint depends on, (N,) each."""

    v: Array  # speed over its root mean square
    x: Array  # position less its mean, over its standard deviation
    t: Array  # time from the middle of the recording, over its duration
    torque: Array  # of the load [N·m or N]
    rate: Array  # of that


class Effect(NamedTuple):
    """What plain friction leaves out: how σ counts it, and what predicts it."""

    # Smooth functions of the motion, whose amounts share a variance.
    columns: Callable[[JointMotion], Sequence[Array]]
    # Entries of `FRICTION_TERMS` with which the default model predicts it, and what they are.
    terms: Mapping[str, str] = {}
    # Whether all joints share the variance, whose gears are alike: of joints where friction that
    # grows with the load is seen it is known for those where it looks like Coulomb's.
    of_load: bool = False


EFFECTS = {
    'speed': Effect(
        lambda m: [
            *(np.sign(m.v) * np.exp(-np.abs(m.v) / speed) for speed in FADING),
            m.v * np.abs(m.v),
        ],
        {'low_speed': 'friction at low speed', 'rounded_sign': 'a gradual change of sign'},
    ),
    'dry load': Effect(
        lambda m: [np.abs(m.torque) * np.sign(m.v)], {'load': 'friction by load'}, of_load=True
    ),
    'viscous load': Effect(lambda m: [np.abs(m.torque) * m.v], of_load=True),
    'path': Effect(lambda m: [], {'slip': 'presliding'}),
    'drift': Effect(lambda m: [m.t * np.sign(m.v), m.t * m.v]),
    # Springs, friction that changes with the position, and that depends on the direction.
    'position': Effect(
        lambda m: [m.x, m.x**2, m.x * np.sign(m.v), np.abs(m.v)],
        {'position': 'springs', 'direction': 'friction by direction'},
    ),
    # A delay of its effort that is too short to be removed.
    'delay': Effect(lambda m: [m.rate]),
    # A zero that wanders, slow half waves and their mean. What the fit took of that mean nobody
    # sees, but the waves say how large it may be.
    'zero': Effect(lambda m: [np.cos(np.pi * (m.t + 0.5) * k) for k in range(WAVES + 1)]),
}
_NOTHING = JointMotion(*np.zeros((5, 1)))
# Columns of one joint by their effect's place, and the places of those of the load.
GROUPS = np.repeat(
    np.arange(len(EFFECTS)), [len(each.columns(_NOTHING)) for each in EFFECTS.values()]
)
COLUMNS = len(GROUPS)
OF_LOAD = [k for k, each in enumerate(EFFECTS.values()) if each.of_load]


@dataclasses.dataclass(frozen=True)
class ModelErrors:
    """Shapes of torques that a model of rigid links with simple friction may leave out."""

    speed: Array  # (n,) root mean square
    centre: Array  # (n,) mean position
    spread: Array  # (n,) standard deviation of the position
    middle: float  # of the recording or its first part [s]
    duration: float  # [s]
    rigid: Array  # (b,) parameters of links and rotors, by least squares

    @classmethod
    def of(
        cls, samples: Samples, system: Rows, robot: Robot, base: BaseParameters, least: float = 0.0
    ) -> ModelErrors:
        """Take the scales of a recording, or of the first part of one of so many seconds."""
        start, stop = float(system.time[0]), float(system.time[-1])
        duration = max(stop - start, least, 1e-300)
        rigid = np.array([robot.parameters[k].symbol in RIGID for k in base.columns])
        return cls(
            np.sqrt(np.mean(samples.dq**2, axis=0)),
            samples.q.mean(axis=0),
            samples.q.std(axis=0),
            start + duration / 2.0,
            duration,
            np.where(rigid, _least_squares(system), 0.0),
        )

    def attach(self, samples: Samples, system: Rows) -> Rows:
        """Return the system with the columns of all joints (n, N, d)."""
        keep, D = samples.decimation, []
        for j in range(len(system.joints)):
            D.append(self.columns(j, samples.q[::keep, j], samples.dq[::keep, j], system))
        return dataclasses.replace(system, D=read_only(np.stack(D)))

    def columns(self, joint: int, q: Array, dq: Array, system: Rows) -> Array:
        """Return the columns of one joint (N, d), effect after effect."""
        torque = system.W[joint] @ self.rigid
        motion = JointMotion(
            dq / max(self.speed[joint], 1e-300),
            (q - self.centre[joint]) / max(self.spread[joint], 1e-300),
            (system.time - self.middle) / self.duration,
            torque,
            np.gradient(torque, system.time),
        )
        return np.column_stack([c for each in EFFECTS.values() for c in each.columns(motion)])


def _least_squares(system: Rows) -> Array:
    """Return the parameters (b,), rows in units of the σ that their joint's own fit leaves."""
    rows = []
    for w, y in system.blocks:
        own = np.linalg.lstsq(w, y, rcond=RCOND)[0] if len(y) else np.zeros(w.shape[1])
        sigma = float(np.linalg.norm(y - w @ own)) / np.sqrt(max(len(y), 1))
        sigma = max(sigma, 1e-9 * float(np.linalg.norm(y)), 1e-300)
        rows.append(np.column_stack([w, y]) / sigma)
    both = np.vstack(rows)
    return np.asarray(np.linalg.lstsq(both[:, :-1], both[:, -1], rcond=RCOND)[0])


def count_model_error(samples: Samples, system: Rows, robot: Robot, base: BaseParameters) -> Rows:
    """Return the system with what the model may leave out, so that a fit of it counts that."""
    return ModelErrors.of(samples, system, robot, base).attach(samples, system)


def model_error_covariance(
    system: System, value: Array, gain: Array, correlation: float
) -> npt.NDArray[np.float64]:
    """
    Return how far an estimate (b,) may be off for what the model leaves out, as a covariance.

    The torques are taken as Y = W χ + D δ + ρ with δ ~ N(0, Λ): a mixed model, in which D δ is
    the discrepancy of the model (Kennedy and O'Hagan 2001). The fit without D is off by H δ; the
    mean square of that, given the data, is H E[δ δᵀ] Hᵀ. Blocks of time cannot show it: where a
    motion repeats, so does the error. The `gain` is H (b, n·d), `correlation` the variance of sums
    of the noise over that of as many independent rows.
    """
    information, score, scale = _information(system, value)
    joints = np.repeat(np.arange(len(system.joints)), COLUMNS)
    groups = np.tile(GROUPS, len(system.joints))
    own = np.column_stack([np.where(np.isin(groups, OF_LOAD), 0, joints), groups])
    labels = np.unique(own, axis=0, return_inverse=True)[1].ravel()
    moment = _second_moment(information / correlation, score / correlation, labels)
    H = gain * scale
    return np.asarray(H @ moment @ H.T)


def _information(system: System, value: Array) -> tuple[Array, Array, Array]:
    """Return Dᵀ M D, Dᵀ M Y and scales (n·d,) of columns, M the projection off W; rows over σ."""
    crossed, own, scores, scales = [], [], [], []
    normal, right = np.zeros((len(value), len(value))), np.zeros(len(value))
    for j, (count, (w, y)) in enumerate(zip(system.equations, system.blocks, strict=True)):
        D, error = system.discrepancies(j), y - w @ value
        sigma = max(float(np.linalg.norm(error)), 1e-12 * float(np.linalg.norm(y)), 1e-300)
        size = np.linalg.norm(D, axis=0)
        scale = np.divide(sigma, size, out=np.zeros_like(size), where=size > 0.0)
        scale = np.where(np.isin(GROUPS, OF_LOAD), 1.0, scale)
        root = np.sqrt(max(count, 1)) / sigma
        w, error, D = (x * root for x in (w, error, D * scale))
        normal, right = normal + w.T @ w, right + w.T @ error
        crossed.append(w.T @ D)
        own.append(D.T @ D)
        scores.append(D.T @ error)
        scales.append(scale)
    length = diagonal_scale(normal)
    both = np.column_stack([*crossed, right]) / length[:, None]
    solved = np.linalg.lstsq(normal / np.outer(length, length), both, rcond=1e-13)[0]
    total = block_diag(*own)
    information = total - both[:, :-1].T @ solved[:, :-1]
    score = np.concatenate(scores) - both[:, :-1].T @ solved[:, -1]
    hidden = np.diag(information) <= VISIBLE * np.diag(total)
    information[hidden], information[:, hidden], score[hidden] = 0.0, 0.0, 0.0
    return information, score, np.concatenate(scales)


def _second_moment(information: Array, score: Array, labels: Indices) -> Array:
    """
    Return E[δ δᵀ | Y], the variance of each group being the one that makes Y likeliest.

    Groups count whose score test is significant beside those that count already. The clearest
    ones come first: others may then have nothing left to explain.
    """
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    variance, mean = np.zeros(len(groups)), np.zeros(len(score))
    posterior = np.zeros_like(information)
    for _ in range(ROUNDS):
        rest = score - information @ mean
        unexplained = information - information @ posterior @ information
        new, clear = np.transpose([_score_test(unexplained, rest, group) for group in groups])
        new = np.where(variance > 0.0, 0.0, new)
        new[clear < CLEAR * np.max(clear, where=new > 0.0, initial=0.0)] = 0.0
        if not new.any():
            break
        variance, mean, posterior = _likeliest(information, score, groups, variance + new)
    return np.outer(mean, mean) + posterior


def _likeliest(
    information: Array, score: Array, groups: list[Indices], variance: Array
) -> tuple[Array, Array, Array]:
    """
    Return the variances of groups (g,) of the largest restricted likelihood, and δ given them.

    λ = |δ̂|²/γ, γ the parameters that data determine (Patterson and Thompson 1971; MacKay 1992).
    """
    size = np.array([np.diag(information)[own].max() for own in groups])
    for _ in range(ITERATIONS):
        root = np.zeros(len(score))
        for own, each in zip(groups, np.sqrt(variance), strict=True):
            root[own] = each
        scaled = root[:, None] * information * root + np.eye(len(root))
        posterior = root[:, None] * np.linalg.inv(scaled) * root
        mean, found = posterior @ score, np.zeros_like(variance)
        for k in np.flatnonzero(variance):
            own = groups[k]
            known = max(np.sum(1.0 - np.diag(posterior)[own] / variance[k]), 1e-12)
            found[k] = mean[own] @ mean[own] / known
        found[found * size < NOTHING] = 0.0
        if np.allclose(found, variance, rtol=TOLERANCE):
            break
        variance = found
    return variance, mean, posterior


def _score_test(information: Array, score: Array, group: Indices) -> tuple[float, float]:
    """Return a first variance, zero where a group is not significant, and its statistic."""
    inner = information[np.ix_(group, group)]
    size = float(np.diag(inner).mean())
    if size <= 0.0:
        return 0.0, 0.0
    solved, _, rank, _ = np.linalg.lstsq(inner, score[group], rcond=1e-9)
    statistic = float(score[group] @ solved)
    return (statistic / size if chdtrc(rank, statistic) <= SIGNIFICANT else 0.0), statistic
