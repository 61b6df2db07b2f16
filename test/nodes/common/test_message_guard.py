"""A callback that fails is counted and told, seldom, and nothing else happens."""

import inspect

from robotid_ros.exceptions import RobotIdError
from robotid_ros.nodes.common.runtime import MessageGuard


def test_a_flood_of_failures_is_told_seldom():
    told: list[str] = []
    guard = MessageGuard(told.append)

    def fail(message: object, info: object) -> None:
        raise RobotIdError(f'{message} is\nno message')

    guarded = guard.wrap('topic', fail)
    # The middleware asks whether a callback wants the information beside the message.
    assert inspect.signature(guarded) == inspect.signature(fail)
    for number in range(5000):
        guarded(number, None)
    assert guard.counts == {'topic': 5000} and guard.total == 5000
    assert told[0] == "a message on 'topic' was passed over, 1 so far: 0 is no message"
    assert len(told) == 13


def test_what_works_is_passed_on():
    found: list[object] = []
    guard = MessageGuard(found.append)
    guard.wrap('topic', found.append)('message')
    assert found == ['message'] and not guard.total
