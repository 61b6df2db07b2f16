"""A change of some torque in the course of a recording, regressed from products of its blocks."""

import dataclasses
import itertools

import numpy as np

from ..arrays import Array

# Added to the diagonal of normalised products: terms that are alike share what they explain.
RIDGE = 1e-9


@dataclasses.dataclass(frozen=True)
class Change:
    """
    How much of some torques came or went.

    Attributes
    ----------
    value, sigma : (c,) factors on these torques by which they changed, and standard deviations
    explained : squared error that the change explains

    """

    value: Array
    sigma: Array
    explained: float

    @property
    def significance(self) -> float:
        """Largest value over its standard deviation."""
        return float(np.max(np.abs(self.value) / np.maximum(self.sigma, 1e-300)))


def block_products(columns: Array, blocks: int) -> Array:
    """Return the products of columns (N, c) with one another in contiguous blocks, (B, c, c)."""
    edges = np.linspace(0, len(columns), blocks + 1).astype(int)
    parts = (columns[a:b] for a, b in itertools.pairwise(edges))
    return np.stack([part.T @ part for part in parts])


def explained_without(products: Array) -> float:
    """Return the squared error that constant torques explain, of products (B, m + 1, m + 1)."""
    total = products.sum(axis=0)
    right = total[:-1, -1]
    return float(np.linalg.lstsq(total[:-1, :-1], right, rcond=RIDGE)[0] @ right)


def regress_change(products: Array, course: Array, chosen: Array, without: float) -> Change:
    """
    Regress an error on torques that are constant and on some of them along a course of time.

    The blocks' scores are taken as they are, so that errors may correlate within a block
    (Liang and Zeger 1986).

    Parameters
    ----------
    products : (B, m + 1, m + 1) of [X e]
    course : (B,) of the change, in each block
    chosen : (m, c) combinations of X that change
    without : what these products explain without a change, `explained_without`

    """
    B, m = len(products), products.shape[1] - 1
    G, right = products[:, :m, :m], products[:, :m, m]
    expand = np.zeros((B, m, m + chosen.shape[1]))
    expand[:, :, :m] = np.eye(m)
    expand[:, :, m:] = course[:, None, None] * chosen
    transposed = expand.transpose(0, 2, 1)
    normals = transposed @ G @ expand
    targets = np.einsum('bkm,bm->bk', transposed, right)
    left = normals.sum(axis=0)
    size = np.diag(left)
    scale = np.where(size > 0.0, 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0)), 0.0)
    normal = left * np.outer(scale, scale) + RIDGE * np.eye(len(left))
    inverse = np.linalg.inv(normal) * np.outer(scale, scale)
    value = inverse @ targets.sum(axis=0)
    scores = targets - np.einsum('bkl,l->bk', normals, value)
    spread = scores @ inverse
    freedom = B / max(B - len(value), 1)
    sigma = np.sqrt(freedom * np.sum(spread**2, axis=0))
    explained = float(value @ targets.sum(axis=0)) - without
    return Change(value[m:], sigma[m:], explained)
