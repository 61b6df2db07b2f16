"""The recorder tells a dead excitation from a silent one, and from one on another machine."""

import subprocess
import sys

import pytest

from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.common.processes import own_process
from robotid_ros.nodes.recorder.recorder_node import SessionWatch, SILENCE_TIMES


def heard(**values: object) -> SessionWatch:
    watch = SessionWatch(lambda: 0)
    watch.hear(status('excitation', '', {'state': 'exciting', **own_process(), **values}))
    return watch


def lost_after(watch: SessionWatch) -> float:
    """Return the silence from which on the excitation counts as lost."""
    for step in range(3000):
        watch.silence = 0.001 * step
        if watch.lost:
            return watch.silence
    raise AssertionError('never')


@pytest.fixture
def dead() -> int:
    process = subprocess.Popen([sys.executable, '-c', ''])
    process.wait()
    return process.pid


def test_who_is_seen_to_be_dead_is_missed_sooner(dead: int):
    assert lost_after(heard(pid=dead)) == pytest.approx(0.25, abs=0.002)


def test_who_is_alive_may_be_short_of_processor():
    assert lost_after(heard()) == pytest.approx(SILENCE_TIMES[True], abs=0.002)


@pytest.mark.parametrize(
    'values', [{'processes': 'elsewhere'}, {'processes': ''}, {'pid': ''}, {'pid': '-1'}]
)
def test_who_cannot_be_seen_is_missed_by_silence_alone(values: dict[str, str], dead: int):
    watch = heard(**{'pid': dead, **values})
    assert lost_after(watch) == pytest.approx(SILENCE_TIMES[None], abs=0.002)


def test_who_moves_nothing_is_not_missed():
    watch = heard(state='idle')
    watch.silence = 100.0
    assert not watch.lost
