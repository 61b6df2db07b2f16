"""What nodes say that command efforts of an identified model."""

import threading

from diagnostic_msgs.msg import DiagnosticStatus
import pytest
import rclpy
from rclpy.context import Context

from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.model_node import ModelNode

pytestmark = pytest.mark.ros


def test_work_that_ends_unforeseen_is_told(domain: int, monkeypatch: pytest.MonkeyPatch):
    """The state would be that of before, while nothing works any more."""
    raised: list[type[BaseException]] = []
    monkeypatch.setattr(threading, 'excepthook', lambda hook: raised.append(hook.exc_type))
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    node = ModelNode('gravity_compensation', context=context, use_global_arguments=False)
    told: list[DiagnosticStatus] = []
    monkeypatch.setattr(node._state, 'publish', told.append)
    node.start_worker([].pop)
    assert node._worker is not None
    node._worker.join()
    assert [(values_of(x)['state'], x.message) for x in told] == [
        ('failed', 'IndexError: pop from empty list')
    ]
    assert raised == [IndexError]
    node.destroy_node()
    rclpy.try_shutdown(context=context)
