"""What an identification had to work with: stamps, motion, noise, and how well they tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from ..findings import Finding, finding
from ..signals.recording import Recording, Samples

# What nodes need of a verdict they import without SciPy.
if TYPE_CHECKING:
    from ..model.robot import Robot
    from ..regression.delays import Delays
    from ..regression.estimate import Estimate

GAP = 2.5  # a step between stamps that is so many times the usual one is a gap
# Standard deviation of a normal variable over its median absolute value, and of the third
# differences of white noise over that of the noise, √(1 + 9 + 9 + 1).
NORMAL, THIRD_DIFFERENCES = 1.4826, 20.0**0.5
# Decimals of correlations: with fewer, what the data tell best would be lost.
DECIMALS = 9


@dataclasses.dataclass(frozen=True)
class JointQuality:
    """How one joint moved, its limits [unit], the noise and delay of its effort."""

    unit: str  # rad or m
    lowest: float  # positions and speed that were reached
    highest: float
    fastest: float
    lower: float  # limits of the description
    upper: float
    velocity: float
    noise: float  # standard deviation of the effort's white noise [N·m or N]
    delay: float  # of the effort behind the position, removed [s]


@dataclasses.dataclass(frozen=True)
class DataQuality:
    """What the data of an identification are like, and how well they tell."""

    rate: float  # of the stamps [Hz]
    jitter: float  # standard deviation of the steps between stamps over their median
    gaps: int
    longest_gap: float  # the longest step [s]
    cutoff: float  # of the positions' filter [Hz]
    decimation: int  # one row in so many is kept
    whole: bool  # False where all this is of the first part of a long recording
    joints: Mapping[str, JointQuality]
    singular_values: Sequence[float]  # of the weighted rows, columns scaled to length one
    correlation: Sequence[Sequence[float]]  # of the base parameters, lower triangle

    def of_joints(self, name: str) -> Array:
        """Return a figure of each joint, (n,)."""
        return np.array([getattr(joint, name) for joint in self.joints.values()])

    @property
    def reached(self) -> tuple[Array, Array, Array]:
        """Lowest and highest position, and largest speed, (n,) each."""
        return self.of_joints('lowest'), self.of_joints('highest'), self.of_joints('fastest')


def data_quality(
    recording: Recording | Iterable[Recording], robot: Robot, samples: Samples,
    estimate: Estimate, delays: Delays,
) -> DataQuality:  # fmt: skip
    """Describe the data of an identification."""
    steps = np.diff(recording.time if isinstance(recording, Recording) else samples.time)
    steps = steps[steps > 0.0]
    usual = float(np.median(steps)) if steps.size else 0.0
    near = steps[steps <= GAP * usual]
    figures = {
        'unit': np.array([length for length, _ in robot.units.values()]),
        'lowest': samples.q.min(axis=0),
        'highest': samples.q.max(axis=0),
        'fastest': np.abs(samples.dq).max(axis=0),
        **{name: getattr(robot.limits, name) for name in ('lower', 'upper', 'velocity')},
        'noise': white_noise(samples.tau),
        'delay': np.array([delays.get(joint, 0.0) for joint in samples.joints]),
    }
    return DataQuality(
        rate=1.0 / usual if usual else 0.0,
        jitter=float(near.std() / usual) if usual else 0.0,
        gaps=int(np.sum(steps > GAP * usual)),
        longest_gap=float(steps.max(initial=0.0)),
        cutoff=samples.cutoff,
        decimation=samples.decimation,
        whole=isinstance(recording, Recording),
        joints={
            joint: JointQuality(**{name: each[j].item() for name, each in figures.items()})
            for j, joint in enumerate(robot.joints)
        },
        singular_values=estimate.singular.tolist(),
        correlation=correlation(estimate),
    )


def correlation(estimate: Estimate) -> list[list[float]]:
    """Return the correlation matrix of an estimate, lower triangle, rounded."""
    sigma = np.where(estimate.sigma > 0.0, estimate.sigma, np.inf)
    matrix = estimate.covariance / np.outer(sigma, sigma)
    np.fill_diagonal(matrix, 1.0)
    return [np.round(row[: k + 1], DECIMALS).tolist() for k, row in enumerate(matrix)]


def white_noise(values: Array) -> Array:
    """Return the standard deviation (n,) of the white noise in uniform samples (N, n)."""
    differences = np.abs(np.diff(values, n=3, axis=0))
    if not len(differences):
        return np.zeros(values.shape[1])
    return np.asarray(NORMAL * np.median(differences, axis=0) / THIRD_DIFFERENCES)


# Two methods disagree on a parameter with %σ below the first in both, as `essential_sigma` is by
# default, when it differs by 3 σ and by more than the second, a share that users would notice.
WELL_DETERMINED, LARGEST_DIFFERENCE = 10.0, 0.05
UNCERTAIN = 100.0  # %σ above which a parameter is smaller than its σ
HARDLY_MOVED = 0.1  # of the time; below it, a joint has few rows for its friction
# Of its moving rows that a joint turns the other way; below it, few tell friction from an offset.
MIN_REVERSED_SHARE = 0.02


def identifiability_warnings(robot: Robot, samples: Samples, estimate: Estimate) -> list[Finding]:
    """Name the joints that hardly moved, or one way, and the parameters below their σ."""
    shares = samples.moving.mean(axis=0)
    ways = samples.moving[:, :, None] & (np.sign(samples.dq)[:, :, None] == (-1.0, 1.0))
    less, total = ways.sum(axis=0).min(axis=1), ways.sum(axis=0).sum(axis=1)
    found = [
        finding(name, [robot.joints[j]], share=share[j])
        for name, few, share in (
            ('hardly_moved', shares < HARDLY_MOVED, shares),
            ('one_way', less < MIN_REVERSED_SHARE * total, less / np.maximum(total, 1)),
        )
        for j in np.flatnonzero(few)
    ]
    small = np.flatnonzero(estimate.relative_sigma > UNCERTAIN)
    if small.size:
        names, percent = [estimate.names[k] for k in small], estimate.relative_sigma[small]
        found.append(finding('smaller_than_sigma', parameters=names, percent=percent))
    return found


def disagreement_warnings(found: Estimate, other: Estimate) -> list[Finding]:
    """Name the parameters that both estimates determine well and that differ nevertheless."""
    percent = np.maximum(found.relative_sigma, other.relative_sigma)
    noise = 3.0 * np.hypot(found.sigma, other.sigma)
    most = np.maximum(noise, LARGEST_DIFFERENCE * np.abs(found.value))
    differ = (percent < WELL_DETERMINED) & (np.abs(found.value - other.value) > most)
    names = [found.names[k] for k in np.flatnonzero(differ)]
    method = found.method.upper()
    return [finding('methods_disagree', method=method, parameters=names)] if names else []
