"""Inertial columns of W, by blocks of samples: a call of Pinocchio costs what it computes."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio

from ..arrays import Array, Indices, Mask
from .pinocchio_model import KinematicTree
from .robot import PINOCCHIO_ORDER

BLOCK_SIZE = 2048  # samples whose vectors stay in the processor's cache, and calls are few
# Columns of a link: inertias turn, first moments turn and slide, the mass slides.
INERTIAS, MOMENTS, MASS = slice(6), slice(6, 9), slice(9, 10)
UPPER = np.triu_indices(3)  # the entries of a symmetric matrix that differ


def _body_tensors() -> tuple[Array, Array]:
    """Return L and Q of a body's wrench `(a·L + v·Q·v) χ`, (6, 60) and (6, 6, 60)."""
    unit, none = np.eye(6), np.zeros(6)

    def of(*motion: Array) -> Array:
        return np.asarray(pinocchio.bodyRegressor(*map(pinocchio.Motion, motion))).ravel()

    linear = np.array([of(none, a) for a in unit])
    quadratic = [[0.5 * (of(x + y, none) - of(x, none) - of(y, none)) for y in unit] for x in unit]
    return linear, np.array(quadratic)


# In Pinocchio's order of parameters, motions and wrenches with the linear part first.
LINEAR, QUADRATIC = _body_tensors()


class _Joint(NamedTuple):
    """
    A joint of one velocity; vectors of its link are in a frame whose z axis is the joint's.

    Of levers, the first is of the place p of the joint among its parent's vectors at position 0,
    the second of what is added to p per position. A product is one of two components of ω.
    """

    parent: int  # its parent's number, −1 for the base
    chain: Indices  # numbers of the joints that move its link, itself last
    slides: bool  # along its axis, not about it
    frame: Array  # (3, 3) from the frame of the vectors to that of the link's parameters
    rotation: Array  # (3, 3) to the frame of the vectors from that of the parent's, at position 0
    levers: Array  # (2, 3, 3) `rotation` times − p ×
    circling: Array  # (2, 3, 6) `rotation` times ω × (ω × p), by the parent's products
    # (10, 2, 3, 12) force and torque per parameter of the link, by the derivative of ω, the
    # acceleration and the products.
    wrenches: Array


# Of each model that is in use: of a few samples they would take longer than everything else.
_known: WeakKeyDictionary[Any, list[_Joint]] = WeakKeyDictionary()


class LinkColumns:
    """Columns of one link over a block of samples, in rows of the chain of joints that move it."""

    def __init__(
        self, link: int, joint: _Joint, parts: list[Array], memory: Array, wrenches: Array
    ) -> None:
        self.link, self.chain, self.samples = link, joint.chain, slice(0)
        self._joint, size = joint, memory.shape[1]
        # Vectors: s_v from its own joint down to the first one of its chain, the acceleration less
        # gravity, ω, its derivative, and s_ω from the first joint up to its own. Then what the
        # joint's `wrenches` are linear in.
        self.state = memory[12:].reshape(3, -1, size), memory[:12]
        self.state[0][2, 0 if joint.slides else -1] = 1.0
        # Each with its wrenches: torques of inertias, both of first moments, forces of the mass.
        self._parts, end = list[tuple[Array, Array]](), 0
        for part in parts:
            start, end = end, end + part.size // 12
            own = wrenches[start:end].reshape(*part.shape[:-1], size)
            self._parts.append((part.reshape(-1, 12), own))

    def move(self, parent: tuple[Array, Array], motion: Array, scratch: Array) -> None:
        """Take the link to a block of its joint's motion (3, N), after its parent."""
        joint, m, (known, features), (q, dq, ddq) = self._joint, len(self.chain), parent, motion
        inner = self.state[0][:, 1:-1]
        np.matmul(joint.rotation, known.reshape(3, -1), out=inner.reshape(3, -1))
        # x × lever of the derivative of ω and of each s_ω moves what is linear.
        turning, products = known[:, m + 1 :].reshape(3, -1), features[6:]
        arms = scratch[: turning.size].reshape(3, m, -1)
        np.matmul(joint.levers[0], turning, out=arms.reshape(3, -1))
        arms[:, 0] += joint.circling[0] @ products
        if joint.slides:
            arms += (joint.levers[1] @ turning).reshape(arms.shape) * q
            arms[:, 0] += (joint.circling[1] @ products) * q
        inner[:, m - 1 :: -1] += arms
        acceleration, spin, change = inner[:, m - 1 : m + 2].swapaxes(0, 1)
        if joint.slides:
            acceleration[0] += 2.0 * spin[1] * dq
            acceleration[1] -= 2.0 * spin[0] * dq
            acceleration[2] += ddq
        else:
            plane = inner[:2]
            turned = scratch[: plane.size].reshape(plane.shape)
            np.multiply(plane, np.sin(q), out=turned)
            plane *= np.cos(q)
            plane[0] += turned[1]
            plane[1] -= turned[0]
            change[0] += spin[1] * dq
            change[1] -= spin[0] * dq
            change[2] += ddq
            spin[2] += dq
        features = self.state[1]
        features[:3], features[3:6] = change, acceleration
        for k, first in enumerate((6, 9, 11)):
            np.multiply(spin[k], spin[k:], out=features[first : first + 3 - k])
        for part, wrench in self._parts:
            if len(part):
                np.matmul(part, features, out=wrench.reshape(-1, len(q)))

    def fill(self, place: int, out: Array) -> None:
        """Write the wanted columns (c, N) of the joint at a place of the chain."""
        m, count = len(self.chain), out.shape[1]
        turning, both, sliding = (wrench[..., :count] for _, wrench in self._parts)
        first, last = len(turning), len(turning) + len(both)
        if self.chain[place] == self.link:  # its own joint moves along or about one axis
            slides = self._joint.slides
            out[:first] = 0.0 if slides else turning[:, 2]
            out[first:last] = both[:, 0 if slides else 1, 2]
            out[last:] = sliding[:, 2] if slides else 0.0
            return
        # Its s_v and s_ω.
        pair = self.state[0][:, m - 1 - place : m + 4 + place : 2 * place + 4, :count]
        if len(turning):
            np.einsum('ckb,kb->cb', turning, pair[:, 1], out=out[:first])
        if len(both):
            np.einsum('cskb,ksb->cb', both, pair, out=out[first:last])
        if len(sliding):
            np.einsum('ckb,kb->cb', sliding, pair[:, 0], out=out[last:])


def inertial_columns(
    model: Any, q: Array, dq: Array, ddq: Array, wanted: Mask, values: Array | None = None
) -> Iterator[LinkColumns]:
    """
    Yield the inertial columns of each link, block by block, until the next one is asked for.

    Link i adds sᵀ Y(v, a) χ_i to the torque of a joint, with Y the regressor of its body and s =
    (s_v, s_ω) the motion per unit speed of that joint, all at the origin and in the frame of link
    i. There Y is linear in the acceleration of that point less gravity, in the derivative of ω,
    and in the products of ω's components. Of q, dq, ddq (N, n) in the order of a Pinocchio model
    of n joints, and the `wanted` (n, 10) parameters of each link; with `values` (n, 10) of these,
    a link has one column, the sum of all times these.
    """
    joints, parts = _joints(model), list[list[Array]]()
    for number, joint in enumerate(joints):
        if values is None:
            columns = (INERTIAS, MOMENTS, MASS)
            turning, both, sliding = (joint.wrenches[k][wanted[number][k]] for k in columns)
        else:  # one column, which turns and slides
            turning = sliding = joint.wrenches[:0]
            both = np.einsum('p,p...->...', values[number], joint.wrenches)[None]
        parts.append([turning[:, 1], both, sliding[:, 0]])
    if not len(q):
        return
    count = -(-len(q) // BLOCK_SIZE)
    size = -(-len(q) // count)  # of all blocks but the last one
    # One piece of memory for all blocks: to get it anew would take longer than to fill it.
    lengths = [12 + 3 * (3 + 2 * len(joint.chain)) for joint in joints]
    lengths += [max((sum(x.size // 12 for x in each) for each in parts), default=0)]
    lengths += [max(lengths)]
    *own, wrenches, scratch = np.split(np.zeros((sum(lengths), size)), np.cumsum(lengths[:-1]))
    base = np.zeros((3, 3, size)), np.zeros((12, size))
    base[0][:, 0] = -np.array(model.gravity.linear)[:, None]
    made = zip(joints, parts, own, strict=True)
    links = [LinkColumns(k, *each, wrenches) for k, each in enumerate(made)]
    motion = np.zeros((3, len(joints), size))
    for start in range(0, len(q), size):
        samples = slice(start, min(start + size, len(q)))
        for x, whole in zip(motion, (q, dq, ddq), strict=True):
            x[:, : samples.stop - start] = whole[samples].T
        for link, joint in zip(links, joints, strict=True):
            parent = links[joint.parent].state if joint.parent >= 0 else base
            link.move(parent, motion[:, link.link], scratch.ravel())
            link.samples = samples
            if wanted[link.link].any():
                yield link


def _joints(model: Any) -> list[_Joint]:
    if model in _known:
        return _known[model]
    tree, result = KinematicTree(model), list[_Joint]()
    for number, (parent, axis) in enumerate(zip(tree.parents, tree.axes, strict=True)):
        slides, turned = not axis[3:].any(), tree.rotations[number]
        # A rotation whose last column is the axis.
        along = axis[:3] if slides else axis[3:]
        other = np.cross(np.eye(3)[np.argmin(np.abs(along))], along)
        other /= np.linalg.norm(other)
        frame = np.column_stack([other, np.cross(along, other), along])
        before = result[parent].frame if parent >= 0 else np.eye(3)
        rotation = (turned @ frame).T @ before
        moves = np.array([tree.translations[number], turned @ axis[:3]]) @ before
        levers = np.array([-rotation @ pinocchio.skew(x) for x in moves])
        # ω × (ω × p) = ω (ω·p) − p (ω·ω).
        i, j = UPPER
        circling = np.eye(3)[:, i] * moves[:, None, j] - (i == j) * moves[:, :, None]
        circling += (i != j) * np.eye(3)[:, j] * moves[:, None, i]
        chain = np.append(result[parent].chain if parent >= 0 else [], number).astype(np.intp)
        linear = [frame.T @ LINEAR[3:], frame.T @ LINEAR[:3]]
        quadratic = np.einsum('ka,lb,klf->abf', frame, frame, QUADRATIC[3:, 3:])
        products = quadratic[i, j] + (i != j)[:, None] * quadratic[j, i]
        wrench = np.concatenate([*linear, products]).reshape(12, 2, 3, 10)[..., PINOCCHIO_ORDER]
        wrenches = np.ascontiguousarray(np.einsum('fwip,ij->pwjf', wrench, frame))
        parts = rotation, levers, rotation @ circling, wrenches
        result.append(_Joint(parent, chain, slides, frame, *parts))
    _known[model] = result
    return result
