"""What data are like: noise, rows and why they are not used, singular values; order of remarks."""

import pickle

import numpy as np
import pytest

from robotid_ros.core.diagnostics.data_quality import count_rows, singular_values, white_noise
from robotid_ros.core.diagnostics.remark import in_order, NOTE, prefixed, Remark, remarks, SERIOUS
from robotid_ros.core.regression.observation_system import System
from robotid_ros.files.yaml import dump_yaml, parse_yaml


def test_white_noise_is_found_under_a_motion():
    time = np.arange(5000) * 1e-3
    motion = 10.0 * np.sin(2.0 * np.pi * np.outer(time, [0.5, 1.5]))
    noise = np.random.default_rng(0).normal(size=motion.shape) * [0.1, 0.3]
    assert white_noise(motion + noise) == pytest.approx([0.1, 0.3], rel=0.05)
    assert white_noise(motion[:2]) == pytest.approx([0.0, 0.0])


def system(valid, dq, measured, W=None):
    n, rows = valid.shape
    W = np.zeros((n, rows, 1)) if W is None else W
    names = tuple(f'p{k}' for k in range(W.shape[2]))
    return System(
        names, names, ('a', 'b')[:n], np.arange(rows) * 0.1, W, np.zeros((n, rows)), valid,
        measured=measured, q=np.zeros((rows, n)), dq=dq,
    )  # fmt: skip


def test_every_row_that_is_not_used_has_one_reason():
    valid = np.array([[1, 1, 0, 0, 0, 0]], dtype=bool)
    dq = np.array([[1.0], [0.0], [0.0], [0.0], [1.0], [1.0]])
    measured = np.array([1, 1, 1, 0, 0, 1], dtype=bool)
    rows = count_rows([system(valid, dq, measured)] * 2)
    counted = (rows.total, rows.used, rows.bridged, rows.standstill, rows.beside)
    assert [int(count[0]) for count in counted] == [12, 4, 4, 2, 2]


def test_singular_values_are_those_of_the_weighted_and_scaled_matrix():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(2, 40, 5)) * [1.0, 10.0, 0.1, 1.0, 3.0]
    sigma = np.array([0.5, 2.0])
    stacked = np.concatenate([W[0] / 0.5, W[1] / 2.0])
    expected = np.linalg.svd(stacked / np.linalg.norm(stacked, axis=0), compute_uv=False)
    valid = np.ones((2, 40), dtype=bool)
    found = singular_values(system(valid, np.ones((40, 2)), None, W), sigma)
    assert found == pytest.approx(expected)


def test_what_matters_most_comes_first_and_once():
    texts = [*remarks(NOTE, ['a', 'b']), 'c', Remark('d', SERIOUS), 'c']
    assert in_order(texts) == ('d', 'c', 'a', 'b')


def test_a_finding_keeps_what_it_has_wherever_it_goes():
    finding = Remark('j1 rests', NOTE, 'hardly_moved', ['j1'], share=0.01)
    (serious,) = remarks(SERIOUS, [finding])
    for text in (
        finding,
        serious,
        prefixed('a.csv', finding),
        pickle.loads(pickle.dumps(finding)),
    ):
        assert (text.code, text.joints, text.values) == (
            'hardly_moved',
            ('j1',),
            {'share': 0.01},
        )
    assert serious.severity == SERIOUS and prefixed('a.csv', finding).severity == NOTE
    assert prefixed('a.csv', finding) == 'a.csv: j1 rests' == prefixed('a.csv', 'j1 rests')
    assert parse_yaml(dump_yaml({'found': [finding]}), '') == {'found': ['j1 rests']}
