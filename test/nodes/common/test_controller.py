"""What a controller's parameters say, as a recording keeps it."""

import math

import numpy as np
import pytest
import rclpy

from robotid_ros.core.replay.control_laws import make_control_law
from robotid_ros.core.signals.recording import Controller
from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.common.controller import ControllerClient, ControllerDescription


def test_gains_and_their_strategy_reach_the_replay():
    values = {
        'joints': ['a'],
        'command_interfaces': ['effort'],
        'update_rate': 500,
        'constraints.a.goal': 0.1,
        'gains.a.p': 10.0,
        'gains.a.i': 5,
        'gains.a.antiwindup_strategy': 'conditional_integration',
    }
    known = ControllerDescription.from_parameters('arm', values).to_dict()
    assert known['gains'] == {
        'a': {'p': 10.0, 'i': 5.0, 'antiwindup_conditional_integration': 1.0}
    }
    controller = Controller(
        known['name'], known['type'], known['rate'], ('a',), ('effort',), known['gains']
    )
    law = make_control_law(controller, ('a',), np.ones(1))
    assert (law.rate, law.conditional[0], law.integrates_after[0], law.tracking_rate[0]) == (
        500.0,
        1.0,
        1.0,
        0.0,
    )


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_what_is_no_number_is_not_sent(domain: int, value: float):
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    controller = ControllerClient(rclpy.create_node('client', context=context), 'arm', 0.1)
    with pytest.raises(ControllerError, match=r'gains\.b\.p would not be a number'):
        controller.set({'gains.a.p': 1.0, 'gains.b.p': value})
    rclpy.shutdown(context=context)
