"""Inertial columns of W, by blocks of samples: a call of Pinocchio costs what it computes."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pinocchio

from ..arrays import Array
from .robot import PINOCCHIO_ORDER

Mask = npt.NDArray[np.bool_]
BLOCK_SIZE = 1024  # samples whose vectors stay in the processor's cache, and calls are few
# Columns of a link by what they act through: inertias and first moments turn, first moments and
# the mass slide.
TURNING, SLIDING = 9, 6


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

    Torques and forces, (9, 3, 15) and (4, 3, 15) of the link's parameters, go by the motion: the
    derivative of ω, the acceleration, and the products of ω's components.
    """

    parent: int  # its parent's number, −1 for the base
    chain: npt.NDArray[np.intp]  # numbers of the joints that move its link, itself last
    slides: bool  # along its axis, not about it
    frame: Array  # (3, 3) from the frame of the vectors to that of the link's parameters
    rotation: Array  # (3, 3) to the frame of the vectors from that of the parent's, at position 0
    lever: Array  # (3, 3) `rotation` times − p ×, p the joint's place among the parent's vectors
    slide: Array  # (3, 3) the same of what is added to p per position
    torques: Array
    forces: Array


# Of each model that is in use: of a few samples they would take longer than everything else.
_known: WeakKeyDictionary[Any, list[_Joint]] = WeakKeyDictionary()


class LinkColumns:
    """Columns of one link over a block of samples, in rows of the chain of joints that move it."""

    def __init__(
        self, link: int, joint: _Joint, samples: slice, vectors: Array, chosen: tuple[Array, Array]
    ) -> None:
        self.link, self.chain, self.samples = link, joint.chain, samples
        self._slides, self._vectors = joint.slides, vectors
        m = len(self.chain)
        spin = vectors[:, m + 1]
        motion = [vectors[:, m + 2], vectors[:, m], (spin[:, None] * spin).reshape(9, -1)]
        both = np.concatenate(motion)
        self._torques, self._forces = (
            (x.reshape(-1, len(both)) @ both).reshape(len(x), 3, both.shape[1]) for x in chosen
        )

    def fill(self, place: int, out: Array) -> None:
        """Write the wanted columns (c, N) of the joint at a place of the chain."""
        m, turning = len(self.chain), len(self._torques)
        # The first moments turn and slide: they come last of the ones and first of the others.
        sliding = out[len(out) - len(self._forces) :]
        if self.chain[place] == self.link:  # its own joint moves along or about one axis
            out[:] = 0.0
            if self._slides:
                sliding[:] = self._forces[:, 2]
            else:
                out[:turning] = self._torques[:, 2]
            return
        turn, slide = self._vectors[:, m + 3 + place], self._vectors[:, m - 1 - place]
        out[turning:] = 0.0
        np.einsum('ckb,kb->cb', self._torques, turn, out=out[:turning])
        if len(sliding):
            sliding += np.einsum('ckb,kb->cb', self._forces, slide)


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
    joints = _joints(model)
    chosen = []
    for number, joint in enumerate(joints):
        own = wanted[number]
        both = joint.torques[own[:TURNING]], joint.forces[own[SLIDING:]]
        if values is not None:
            parts = zip((values[number, :TURNING], values[number, SLIDING:]), both, strict=True)
            torques, forces = ((x @ y.reshape(len(x), -1)).reshape(1, 3, 15) for x, y in parts)
            both = torques, forces
        chosen.append(both)
    size = 0
    for start in range(0, len(q), BLOCK_SIZE):
        samples = slice(start, min(start + BLOCK_SIZE, len(q)))
        # The memory of blocks: to get it anew for each would take longer than to fill it.
        if size != samples.stop - start:
            size = samples.stop - start
            vectors = [np.empty((3, 3 + 2 * len(joint.chain), size)) for joint in joints]
            scratch = np.empty((2, max((x.size for x in vectors), default=0)))
            base = np.zeros((3, 3, size))
            base[:, 0] = -np.array(model.gravity.linear)[:, None]
        motion = [np.ascontiguousarray(x[samples].T) for x in (q, dq, ddq)]
        for number, joint in enumerate(joints):
            known = vectors[joint.parent] if joint.parent >= 0 else base
            _move(joint, known, [x[number] for x in motion], vectors[number], scratch)
            if wanted[number].any():
                yield LinkColumns(number, joint, samples, vectors[number], chosen[number])


def _joints(model: Any) -> list[_Joint]:
    if model in _known:
        return _known[model]
    data, zero, result = model.createData(), np.zeros(model.nq), list[_Joint]()
    for number in range(model.nv):
        place, parent = model.jointPlacements[number + 1], int(model.parents[number + 1]) - 1
        jacobian = pinocchio.computeJointJacobian(model, data, zero, number + 1)
        axis = jacobian.reshape(6, -1)[:, number]  # of one joint it is a vector
        slides = not axis[3:].any()
        # A rotation whose last column is the axis.
        along = axis[:3] if slides else axis[3:]
        other = np.cross(np.eye(3)[np.argmin(np.abs(along))], along)
        other /= np.linalg.norm(other)
        frame = np.column_stack([other, np.cross(along, other), along])
        before = result[parent].frame if parent >= 0 else np.eye(3)
        rotation = (place.rotation @ frame).T @ before
        moves = place.translation, place.rotation @ axis[:3]
        lever, slide = (-rotation @ pinocchio.skew(before.T @ x) for x in moves)
        chain = np.append(result[parent].chain if parent >= 0 else [], number).astype(np.intp)
        tensor = np.concatenate([LINEAR[3:], LINEAR[:3], QUADRATIC[3:, 3:].reshape(9, 60)])
        tensor[:3], tensor[3:6] = frame.T @ tensor[:3], frame.T @ tensor[3:6]
        tensor[6:] = np.kron(frame, frame).T @ tensor[6:]
        wrench = tensor.reshape(15, 2, 3, 10)[..., PINOCCHIO_ORDER]
        force, torque = np.einsum('fwip,ij->wpjf', wrench, frame)
        tensors = np.ascontiguousarray(torque[:TURNING]), np.ascontiguousarray(force[SLIDING:])
        result.append(_Joint(parent, chain, slides, frame, rotation, lever, slide, *tensors))
    _known[model] = result
    return result


def _move(joint: _Joint, known: Array, motion: list[Array], out: Array, scratch: Array) -> None:
    """
    Fill in the vectors `out` (3, 3 + 2 m, N) of a link from those of its parent.

    They are s_v from its own joint down to the first one of its chain, the acceleration less
    gravity, ω, its derivative, and s_ω from the first joint up to its own. `scratch` is memory of
    twice that size.
    """
    (q, dq, ddq), m = motion, len(joint.chain)
    flat = known.reshape(3, -1)
    moved, arms = (x[: known.size].reshape(known.shape) for x in scratch)
    np.matmul(joint.rotation, flat, out=moved.reshape(3, -1))
    np.matmul(joint.lever, flat, out=arms.reshape(3, -1))
    if joint.slides:
        arms += (joint.slide @ flat).reshape(known.shape) * q
    # x × lever of the derivative of ω and of each s_ω moves what is linear.
    moved[:, m - 1 :: -1] += arms[:, m + 1 :]
    moved[:, m - 1] += np.cross(moved[:, m], arms[:, m], axis=0)
    acceleration, spin, change = out[:, m : m + 3].swapaxes(0, 1)
    out[:, 0], out[:, -1] = 0.0, 0.0
    out[2, 0 if joint.slides else -1] = 1.0
    inner = out[:, 1:-1]
    if joint.slides:
        inner[:] = moved
        acceleration[0] += 2.0 * spin[1] * dq
        acceleration[1] -= 2.0 * spin[0] * dq
        acceleration[2] += ddq
        return
    turned = np.multiply(moved[:2], np.sin(q), out=arms[:2])
    np.multiply(moved[:2], np.cos(q), out=inner[:2])
    inner[0] += turned[1]
    inner[1] -= turned[0]
    inner[2] = moved[2]
    change[0] += spin[1] * dq
    change[1] -= spin[0] * dq
    change[2] += ddq
    spin[2] += dq
