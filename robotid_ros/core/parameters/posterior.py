"""
Draws of the standard parameters that an identification leaves possible.

The data give base parameters the estimate's covariance, model error included; the prior gives the
links S ~ N(I, σ_S²), see `physical_consistency`, with the largest likely σ_S (empirical Bayes).
Their product, a Gaussian, is truncated to robots that can exist: links with S ≻ 0, and drives that
give no energy.

Slice sampling (Neal 2003) along random directions of the whitened space needs no chord of the
cones. What constraints make of the Gaussian is thin along some directions and long along others: a
basis is orthonormal by the covariance of many chains.
"""

import numpy as np
import numpy.typing as npt

from ..arrays import Array, whitening
from ..model.robot import BaseParameters, Robot
from .physical_consistency import (
    BodyPrior,
    IDENTITY,
    minimiser_and_root,
    project,
    scaled_coordinates,
    SolverError,
    UPPER,
)
from .standard import nonnegative_columns, prior_sigma, THIN

# Parallel chains from one start: each gives one draw a round, so that those are independent.
CHAINS = 1000
# A round is long enough when it forgets: of each coordinate, the correlation of its ends over the
# chains, the change of the mean in σ and that of σ are below FORGOTTEN (a thousand independent
# pairs show up to 0.13). Rounds double up to LONGEST sweeps.
FORGOTTEN, LONGEST = 0.15, 256
# By how much more than the pull of standard parameters says the prior may be off.
LOOSER = np.geomspace(1.0, 100.0, 25)
# By how much more than the least −2 log p of a σ_S may be that 95 % of true ones keep (χ², one
# degree). The most likely σ_S alone makes bands of 95 % hold 80 % of torques.
LIKELY = 3.84
# Least eigenvalue of S, well inside of which chains start.
LEAST = 0.1 * THIN
# Least variance of chains over the largest one.
FLATTEST = 1e-12
# After so many halvings of a slice rounding decides: the chain stays where it is.
HALVINGS = 60


def draw(
    robot: Robot,
    base: BaseParameters,
    value: Array,
    covariance: Array,
    spread: float,
    count: int,
    seed: int = 0,
) -> Array:
    """
    Draw physically consistent standard parameters (count, p).

    Of an estimate (b,), (b, b), and the least σ_S of the links, see `Standard.spread`. Draws of
    one round of CHAINS are independent, of others nearly so (FORGOTTEN). More draws with the same
    seed begin with the same ones. SolverError: no parameters to start from, or draws do not mix.
    """
    prior, T, mean, root = _untruncated(robot, base, value, covariance, spread)
    links, positive = prior.links, list(prior.positive)
    bounded = [*(k for start in links for k in range(start, start + 10)), *positive]
    order = [*bounded, *np.setdiff1d(np.arange(robot.p), bounded)]
    # With z = mean + root w, w ~ N(0, I), and a triangular root, no other w moves what is bounded.
    root = np.asarray(np.linalg.qr(root[order].T, mode='r')).T[np.argsort(order)]
    inside = np.zeros(robot.p)
    inside[positive] = 1e-3 * np.linalg.norm(root[positive], axis=1)
    start = project(mean - inside, root, prior)
    generator, size = np.random.default_rng(seed), len(bounded)
    chains = _Chains(mean[bounded], root[bounded, :size], len(links), start[:size], generator)
    rounds = []
    for _ in range(0, count, CHAINS):
        free = generator.normal(size=(root.shape[1] - size, CHAINS))
        # Whole rounds: products of other sizes may be rounded in another way.
        z = mean + np.vstack([chains.draw(), free]).T @ root.T
        z[:, positive] = np.maximum(z[:, positive], 0.0)  # rounding
        rounds.append(z @ T.T)
    return np.vstack(rounds)[:count]


def _untruncated(
    robot: Robot, base: BaseParameters, value: Array, covariance: Array, spread: float
) -> tuple[BodyPrior, Array, Array, Array]:
    """Return the prior, T, the mean of z (p,) with χ = T z, and a root of its covariance."""
    alone = np.array(base.classes) == 'identifiable'  # needs no prior, outside of links
    sigma = np.where(alone, np.inf, prior_sigma(robot))
    links, positive = robot.first_columns.tolist(), nonnegative_columns(robot)
    prior = BodyPrior(robot.prior, links, positive, sigma, spread, margin=THIN)
    T, origin, weight = scaled_coordinates(prior)
    whiten = whitening(covariance)
    data, target = whiten @ base.matrix @ T, whiten @ value
    bodies = np.repeat(links, 10) + np.tile(np.arange(10), len(links))

    def known(looser: float) -> tuple[Array, Array]:
        """Return the rows of data and prior, and what they are to be."""
        own = weight.copy()
        own[bodies] /= looser
        return np.vstack([data, np.diag(own)]), np.append(target, own * origin)

    def surprise(looser: float) -> float:
        """Return −2 log p(β̂ | σ_S) but for a constant: that of the data, the prior integrated."""
        diagonal = np.diag(np.linalg.qr(np.column_stack(known(looser)), mode='r'))
        volume = np.sum(np.log(np.abs(diagonal[:-1]))) + len(bodies) * np.log(looser)
        return float(diagonal[-1] ** 2 + 2.0 * volume)

    surprises = np.array([surprise(looser) for looser in LOOSER])
    likely = LOOSER[surprises <= surprises.min() + LIKELY]
    return prior, T, *minimiser_and_root(*known(likely.max()))


class _Chains:
    """Chains of w ~ N(0, I), x = mean + root w: S ≻ 0 of each link, and what is at least 0."""

    def __init__(
        self, mean: Array, root: Array, links: int, start: Array, generator: np.random.Generator
    ) -> None:
        scale, margin = np.ones(len(mean)), np.zeros(len(mean))
        scale[: 10 * links] = np.tile(np.where(IDENTITY, 1.0, np.sqrt(0.5)), links)
        margin[: 10 * links] = np.tile(LEAST * IDENTITY, links)
        self._mean, self._root = scale * mean - margin, scale[:, None] * root
        self._links, self._generator = links, generator
        self._w = np.tile(start[:, None], CHAINS)
        self._sweeps = 0  # of a round; 0: not known yet

    def draw(self) -> Array:
        """Return the w (d, CHAINS) at the end of a round."""
        if self._sweeps:
            self._run(self._sweeps)
            return self._w
        memory = 1.0
        while memory > FORGOTTEN:
            before, self._sweeps = self._w, 2 * self._sweeps or 1
            if self._sweeps > LONGEST:
                raise SolverError(
                    f'draws still depend on their start after {LONGEST} sweeps: '
                    'raise identification.prior_spread or check the inertias of the URDF'
                )
            self._run(self._sweeps)
            x = self._root @ before, self._root @ self._w
            memory = max(_memory(before, self._w), _memory(*x))
        return self._w

    def _run(self, sweeps: int) -> None:
        """Sweep: replace the coordinates of w along a random basis one by one."""
        size = len(self._w)
        for _ in range(sweeps):
            # Orthonormal in units of the chains' covariance: long directions are thin ones, too.
            scale, axes = np.ones(size), np.eye(size)
            if np.ptp(self._w, axis=1).any():
                scale, axes = np.linalg.eigh(np.cov(self._w))
            basis = np.linalg.qr(self._generator.normal(size=(size, size)))[0]
            basis = axes * np.sqrt(scale.clip(FLATTEST * scale.max())) @ basis
            basis /= np.linalg.norm(basis, axis=0)
            x, w = self._mean[:, None] + self._root @ self._w, self._w.copy()
            for direction, move in zip(basis.T, (self._root @ basis).T, strict=True):
                change = self._change(direction @ w, x, move)
                w += direction[:, None] * change
                x += move[:, None] * change
            self._w = w

    def _change(self, y: Array, x: Array, move: Array) -> Array:
        """Draw the change (CHAINS,) of a coordinate y, of which a unit moves x so."""
        (S, others), (body, rest) = (np.split(a, [10 * self._links]) for a in (x, move))
        # The slice: where the density is more than a uniform share of the present one.
        high = np.sqrt(y**2 + 2.0 * self._generator.exponential(size=y.shape))
        low, high = -high - y, high - y
        with np.errstate(divide='ignore', invalid='ignore'):
            bounds = -others / rest[:, None]
        low = np.minimum(np.max(bounds[rest > 0.0], axis=0, initial=-np.inf).clip(low), 0.0)
        high = np.maximum(np.min(bounds[rest < 0.0], axis=0, initial=np.inf).clip(None, high), 0.0)
        change, left = np.zeros_like(y), np.arange(len(y))
        for _ in range(HALVINGS):
            tried = self._generator.uniform(low, high)
            inside = _definite((S + body[:, None] * tried).reshape(self._links, 10, -1))
            change[left[inside]] = tried[inside]
            if inside.all():
                break
            # Possible links are a convex set: beyond an impossible one there are no others.
            out = np.flatnonzero(~inside)
            S, left, low, high, tried = S[:, out], left[out], low[out], high[out], tried[out]
            low, high = np.where(tried < 0.0, tried, low), np.where(tried > 0.0, tried, high)
        return change


def _definite(entries: Array) -> npt.NDArray[np.bool_]:
    """Return which sets of symmetric matrices (…, 10, N) are positive definite, by LDLᵀ."""
    A = {pair: entries[:, row] for row, pair in enumerate(UPPER)}
    found = np.ones(entries.shape[-1], dtype=bool)
    with np.errstate(all='ignore'):
        for k in range(4):
            found &= (A[k, k] > 0.0).all(axis=0)
            for i in range(k + 1, 4):
                factor = A[k, i] / A[k, k]
                for j in range(i, 4):
                    A[i, j] = A[i, j] - factor * A[k, j]
    return found


def _memory(before: Array, after: Array) -> float:
    """Compare coordinates (d, CHAINS) at both ends of a round, see FORGOTTEN."""
    both = np.array([before, after])
    means, sizes = both.mean(axis=2, keepdims=True), both.std(axis=2)
    if not sizes.all():  # the start of all chains
        return 1.0
    products, shifts = np.mean(np.prod(both - means, axis=0), axis=1), np.ptp(means, axis=0)[:, 0]
    change = [products / sizes.prod(axis=0), shifts / sizes[1], 1.0 - sizes[0] / sizes[1]]
    return float(np.abs(change).max())
