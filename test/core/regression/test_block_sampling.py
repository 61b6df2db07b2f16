"""Of any number of blocks every k-th stays, at equal distances and within so many rows."""

import pytest

from robotid_ros.core.pipeline.observation import BlockSampler


@pytest.mark.parametrize(('count', 'step'), [(1, 1), (4, 1), (5, 2), (9, 4), (16, 4), (17, 8)])
def test_every_kth_block_stays(count, step):
    sampler = BlockSampler[int](max_rows=40)
    for block in range(count):
        if sampler.takes_next():
            sampler.add(block, 10)
    assert sampler.blocks == list(range(0, count, step))


def test_one_block_stays_however_long_it_is():
    sampler = BlockSampler[str](max_rows=40)
    sampler.add('long', 100)
    assert sampler.blocks == ['long']
