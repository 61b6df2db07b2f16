"""The parameters of a payload in other frames, and what is known of mass, centre and inertia."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model.robot import from_pinocchio
from robotid_ros.core.parameters.carried_body import CENTRAL, frame_change
from robotid_ros.core.parameters.physical_consistency import pseudo_inertia
from robotid_ros.core.payload.payload import central_gradient, Payload

SEEDS = st.integers(0, 10_000)
NONE = np.zeros((10, 0))


def body(rng):
    """Draw a body that can exist."""
    points = rng.normal(size=(6, 3)) * 0.1 + rng.normal(size=3) * 0.1
    masses = rng.uniform(0.1, 1.0, 6)
    moments = sum(
        m * ((p @ p) * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True)
    )
    return np.array([*moments[np.triu_indices(3)], *masses @ points, masses.sum()])


def payload(value, covariance=None, undetermined=NONE):
    covariance = np.eye(10) if covariance is None else covariance
    return Payload('joint', value, covariance, undetermined, value)


def placement(rng):
    return pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))


@given(SEEDS)
@settings(max_examples=25)
def test_a_change_of_frame_is_that_of_pinocchio(seed):
    """Pinocchio moves mass, centre and inertia; ours is linear in the ten."""
    rng = np.random.default_rng(seed)
    place, value = placement(rng), body(rng)
    mass, h, (xx, xy, xz, yy, yz, zz) = value[9], value[6:9], value[:6]
    about_joint = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    c = h / mass
    central = about_joint - mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    expected = place.actInv(pin.Inertia(mass, c, central)).toDynamicParameters()
    moved = frame_change(place.homogeneous) @ value
    np.testing.assert_allclose(moved, from_pinocchio(expected), atol=1e-12)


@given(SEEDS)
@settings(max_examples=25)
def test_frames_there_and_back(seed):
    rng = np.random.default_rng(seed)
    there = placement(rng)
    change = frame_change(there.homogeneous)
    back = frame_change(there.inverse().homogeneous)
    np.testing.assert_allclose(back @ change, np.eye(10), atol=1e-9)
    known = payload(body(rng), np.diag(rng.uniform(0.1, 1.0, 10)))
    again = known.moved('tool0', change).moved('joint', back)
    np.testing.assert_allclose(again.value, known.value, atol=1e-9)
    np.testing.assert_allclose(again.sigma, known.sigma, rtol=1e-7)
    # The frame changes what is said of a body, not the body.
    tool = known.moved('tool0', change)
    np.testing.assert_allclose(tool.central_sigma[0], known.central_sigma[0], rtol=1e-9)
    moments = (np.linalg.eigvalsh(x.inertia) for x in (tool, known))
    np.testing.assert_allclose(next(moments), next(moments), atol=1e-10)
    assert np.linalg.eigvalsh(pseudo_inertia(tool.value))[0] > 0.0


def test_gradient_of_mass_centre_and_inertia():
    value = body(np.random.default_rng(3))
    step = 1e-6
    numeric = [
        (payload(value + step * e).central - payload(value - step * e).central) / (2.0 * step)
        for e in np.eye(10)
    ]
    np.testing.assert_allclose(central_gradient(value), np.transpose(numeric), atol=1e-7)


def test_sigma_of_the_centre_is_that_of_draws():
    rng = np.random.default_rng(5)
    value = body(rng)
    root = 1e-3 * np.tril(rng.normal(size=(10, 10))) * np.abs(value)[:, None]
    known = payload(value, root @ root.T)
    draws = [payload(value + root @ rng.normal(size=10)).central for _ in range(5000)]
    # Of 5000 draws a standard deviation is known to one percent.
    np.testing.assert_allclose(known.central_sigma, np.std(draws, axis=0), rtol=0.05)


def planar(value):
    """Return what a horizontal arm tells: ZZ, MX, MY and M, each to 0.01."""
    hidden = [CENTRAL.index(n) - 4 for n in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz')] + [8]
    known = np.setdiff1d(np.arange(10), hidden)
    return payload(value, np.diag(np.isin(np.arange(10), known) * 1e-4), np.eye(10)[:, hidden])


def determined(found):
    return {n for n, s in zip(CENTRAL, found.central_sigma, strict=True) if np.isfinite(s)}


@pytest.mark.parametrize('height', [0.0, 0.2])
def test_what_a_horizontal_arm_does_not_tell(height):
    value = body(np.random.default_rng(1))
    value[8] = 0.0  # as a fit of minimum norm has it
    found = planar(value)
    assert determined(found) == {'mass', 'x', 'y', 'izz'}
    # Turned about z and lifted it is the same, lying on its side other names.
    lifted = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 0.7), np.array([0.1, 0.0, height]))
    assert determined(found.moved('a', frame_change(lifted.homogeneous))) == determined(found)
    tipped = pin.SE3(pin.rpy.rpyToMatrix(np.pi / 2, 0.0, 0.0), np.array([0.1, 0.3, height]))
    moved = found.moved('b', frame_change(tipped.homogeneous))
    assert determined(moved) == {'mass', 'x', 'z', 'iyy'}
    assert np.isinf(moved.sigma).sum() == 6 and not np.isnan(moved.sigma).any()


@pytest.mark.parametrize('turned', [False, True])
def test_a_moment_that_is_open_leaves_open_what_it_would_change(turned):
    """Though the fit has none, and whatever basis its direction is part of."""
    value, columns = body(np.random.default_rng(1)), np.eye(10)[:, 7:9]
    value[7:9] = 0.0
    if turned:
        columns = columns @ np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    found = payload(value, np.eye(10), columns)
    assert determined(found) == {'mass', 'x'}


def test_the_distance_is_the_largest_in_sigma():
    value, sigma = np.ones(10), np.geomspace(1e-3, 1e3, 10)
    moved = value + sigma * np.array([0.5, -3.0, *[1.0] * 8])
    found = Payload('joint', value, np.diag(sigma**2), NONE, moved)
    assert found.distance == pytest.approx(3.0)
    assert Payload('joint', moved, np.diag(sigma**2), NONE, value).distance == pytest.approx(3.0)
