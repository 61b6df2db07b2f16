"""Damage by chance to files of every kind; `benchmarks/damaged_files.py` does it at length."""

from damage import Good, is_silently_wrong, KINDS, make_good
from hypothesis import given, settings, strategies as st
from isolated import robotid
import pytest

# Whose damage can change the robot or what is asked for.
INTENDED = ('urdf', 'session', 'configuration')


@pytest.fixture(scope='module')
def good(tmp_path_factory) -> Good:
    made = make_good(tmp_path_factory.mktemp('good'))
    assert robotid('identify', made.folder / 'bag', '-o', made.folder / 'out').code == 0
    return made


@pytest.mark.parametrize('kind', KINDS)
@settings(max_examples=2, report_multiple_bugs=False)
@given(chance=st.randoms(use_true_random=True))
def test_damage(kind, good, tmp_path_factory, chance):
    folder = tmp_path_factory.mktemp('damaged')
    outcome = robotid(*KINDS[kind](good, chance, folder))
    assert not outcome.fault, outcome.fault
    if kind not in INTENDED:
        assert not is_silently_wrong(good, folder)
