"""Columns of many samples at once are those of Pinocchio, sample by sample, for any tree."""

import numpy as np
import pinocchio
import pytest

from robotid_ros.core.model.inertial_columns import BLOCK_SIZE, inertial_columns
from robotid_ros.core.model.robot import PINOCCHIO_ORDER


def tree(joints, seed):
    """Return a random tree of revolute and prismatic joints about any axes."""
    rng = np.random.default_rng(seed)
    model = pinocchio.Model()
    model.gravity.linear = rng.normal(size=3)
    for number in range(joints):
        axis = (
            rng.normal(size=3)
            if number % 3
            else rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)]
        )
        axis /= np.linalg.norm(axis)
        kind = rng.choice(
            [pinocchio.JointModelRevoluteUnaligned, pinocchio.JointModelPrismaticUnaligned]
        )
        place = pinocchio.SE3.Random()
        model.addJoint(int(rng.integers(number + 1)), kind(axis), place, f'joint_{number}')
    return model


def columns(model, q, dq, ddq, wanted):
    """Return all columns (n, 10 n, N) in our order, those that are not wanted zero."""
    n = model.nv
    result = np.zeros((n, 10 * n, len(q)))
    for part in inertial_columns(model, q, dq, ddq, wanted):
        own = 10 * part.link + np.flatnonzero(wanted[part.link])
        for place, joint in enumerate(part.chain):
            values = np.full((len(own), result[..., part.samples].shape[2]), np.nan)
            part.fill(place, values)
            result[joint, own, part.samples] = values
    return result


def by_pinocchio(model, q, dq, ddq):
    data, n = model.createData(), model.nv
    W = [
        pinocchio.computeJointTorqueRegressor(model, data, *state).reshape(n, n, 10).copy()
        for state in zip(q, dq, ddq, strict=True)
    ]
    return np.moveaxis(np.array(W)[..., PINOCCHIO_ORDER].reshape(len(q), n, 10 * n), 0, -1)


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('samples', [1, 7, BLOCK_SIZE + 3])
def test_columns_are_those_of_pinocchio(seed, samples):
    model = tree(1 + seed % 6, seed)
    rng = np.random.default_rng(seed)
    motion = rng.normal(size=(3, samples, model.nv))
    expected = by_pinocchio(model, *motion)
    found = columns(model, *motion, np.ones((model.nv, 10), dtype=bool))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize('seed', range(8))
def test_some_columns_are_those_of_all(seed):
    model = tree(5, seed)
    rng = np.random.default_rng(seed)
    motion = rng.normal(size=(3, 20, 5))
    wanted = rng.random((5, 10)) < 0.5
    wanted[2] = False
    expected = by_pinocchio(model, *motion) * wanted.ravel()[:, None]
    found = columns(model, *motion, wanted)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


def test_of_no_samples_there_are_none():
    model, none = tree(3, 0), np.empty((0, 3))
    assert not list(inertial_columns(model, none, none, none, np.ones((3, 10), dtype=bool)))
