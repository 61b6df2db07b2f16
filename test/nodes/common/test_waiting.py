"""Requests are asked again while no answer comes, and the wait for it is bounded."""

import threading
import time

import pytest
from rclpy.task import Future
from waiting import PATIENCE

from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.common.waiting import answer_of, result_of


class Service:
    """Answers a request, and loses those before it."""

    def __init__(self, lost: int):
        self.lost, self.futures = lost, []

    def ask(self) -> Future:
        future = Future()
        self.futures.append(future)
        if len(self.futures) > self.lost:
            threading.Timer(0.01, future.set_result, ('answer',)).start()
        return future


@pytest.mark.parametrize('lost', [0, 1, 3])
def test_a_lost_answer_is_asked_for_again(lost: int):
    service = Service(lost)
    assert answer_of(service.ask, PATIENCE, 'it', period=0.05) == 'answer'
    assert len(service.futures) > lost
    assert not any(future.done() and not future.cancelled() for future in service.futures[:lost])


def test_who_answers_at_once_is_asked_once():
    service = Service(0)
    assert answer_of(service.ask, PATIENCE, 'it', period=PATIENCE) == 'answer'
    assert len(service.futures) == 1


def test_a_late_answer_to_the_first_request_counts():
    first, others = Future(), []

    def ask() -> Future:
        if others:
            first.set_result('late')
        others.append(Future())
        return others[0] if len(others) > 1 else first

    assert answer_of(ask, PATIENCE, 'it', period=0.02) == 'late'


@pytest.mark.parametrize('wait', [answer_of, None])
def test_nobody_is_waited_for_for_ever(wait):
    begin = time.monotonic()
    with pytest.raises(ControllerError, match=r'no answer from it within 0\.2 s'):
        if wait is None:
            result_of(Future(), 0.2, 'it')
        else:
            answer_of(Future, 0.2, 'it', period=0.05)
    assert time.monotonic() - begin >= 0.2
