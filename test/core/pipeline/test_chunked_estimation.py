"""What is shown of a recording in chunks: blocks from all over it, as many as memory holds."""

import dataclasses

from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import BlockSampler
from robotid_ros.exceptions import RecordingError, StandstillError

# What is chosen of the first chunk alone may differ.
SETTINGS = IdentificationSettings(essential=False, model='plain')


@given(rows=st.lists(st.integers(1, 40), min_size=1, max_size=200), most=st.integers(1, 300))
def test_blocks_are_evenly_spaced_and_bounded(rows, most):
    sampler = BlockSampler[int](most)
    for number, count in enumerate(rows):
        if sampler.takes_next():
            sampler.add(number, count)
    steps = np.diff(sampler.blocks)
    assert sampler.blocks[0] == 0 and len(set(steps)) <= 1
    assert sum(rows[k] for k in sampler.blocks) <= most or len(sampler.blocks) == 1
    if len(rows) * max(rows) <= most:
        assert sampler.blocks == list(range(len(rows)))


@pytest.fixture(scope='module')
def pieces(record):
    whole = record(duration=60.0, noise=0.02)
    return whole, [whole.between(20.0 * k, 20.0 * k + 20.0) for k in range(3)]


def test_residuals_and_validation_of_pieces_are_those_of_the_whole(pieces, record, robot):
    whole, parts = pieces
    other = record(seed=1, duration=40.0, noise=0.02)
    halves = [other.between(0.0, 20.0), other.between(20.0, 40.0)]
    found = identify(whole, robot, SETTINGS, other)
    again = identify(parts, robot, SETTINGS, halves)
    for one, two in ((found.fitted, again.fitted), (found.validation, again.validation)):
        assert len(two.time) > 0.9 * len(one.time) and np.all(np.diff(two.time) > 0.0)
        np.testing.assert_allclose(two.relative_residual, one.relative_residual, rtol=0.1)
        np.testing.assert_allclose(two.r2, one.r2, atol=1e-3)
    (long,) = select(again.findings, 'long_recording')
    assert long.values['count'] == 3


def braked(piece, row, start):
    """Return 20 s in which the joints stand where they are in a row, from a time on."""
    count = np.arange(4000)
    position = piece.position[row] + 1e-5 * np.sin(count)[:, None]
    effort = np.tile(piece.effort[row], (len(count), 1))
    time = start + count / piece.rate
    return dataclasses.replace(piece, time=time, position=position, effort=effort)


def test_pieces_with_brakes_on_are_passed_over(pieces, robot):
    _, parts = pieces
    still = braked(parts[0], 0, -22.0), braked(parts[-1], -1, 62.0), braked(parts[-1], -1, 82.0)
    plain, found = (
        identify(p, robot, SETTINGS, p) for p in (parts, [still[0], *parts, *still[1:]])
    )
    sigma = np.sqrt(np.diag(plain.estimate.covariance))
    assert np.abs((found.estimate.value - plain.estimate.value) / sigma).max() < 1.0
    assert found.fitted.time[0] > 0.0 and found.fitted.time[-1] < 60.0
    with pytest.raises(StandstillError, match='no joint moves in any chunk'):
        identify([*still], robot, SETTINGS, parts)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'method': 'iv'}, "method 'iv' needs a recording in memory"),
        ({'method': 'didim'}, "method 'didim' needs"),
    ],
)
def test_what_needs_the_whole_says_so_at_once(pieces, robot, change, words):
    def never():
        raise AssertionError('it was read all the same')
        yield

    with pytest.raises(RecordingError, match=words):
        identify(never(), robot, dataclasses.replace(SETTINGS, **change))
