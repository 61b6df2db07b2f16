"""What a controller's parameters say, as a recording keeps it."""

import math
import threading
import time

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
from parameter_overrides import parameter_overrides
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from waiting import PATIENCE, wait_until

from robotid_ros.core.replay.laws.control_laws import make_control_law
from robotid_ros.core.signals.recording import Controller
from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.common.controller_client import (
    _description,
    ControllerClient,
    wait_for_controller,
)
from robotid_ros.nodes.common.runtime import SpinThread


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
    known = _description('arm', values).to_dict()
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


@pytest.mark.parametrize('publishes', [True, False])
def test_services_are_waited_for_where_the_controller_is_on_the_graph(
    domain: int, publishes: bool
):
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    executor = SingleThreadedExecutor(context=context)
    driver, client = (rclpy.create_node(name, context=context) for name in ('driver', 'client'))
    for each in (driver, client):
        executor.add_node(each)
    spinning = SpinThread(executor)
    if publishes:
        driver.create_publisher(JointTrajectoryControllerState, 'arm/controller_state', 1)
        wait_until(lambda: client.count_publishers('arm/controller_state'), 'it is on the graph')
    controller = ControllerClient(client, 'arm', 0.2)

    def start_later() -> None:
        time.sleep(1.0)
        values = {'joints': ['a'], 'command_interfaces': ['effort']}
        options = {'context': context, 'parameter_overrides': parameter_overrides(values)}
        executor.add_node(
            rclpy.create_node(
                'arm', automatically_declare_parameters_from_overrides=True, **options
            )
        )

    starting = threading.Thread(target=start_later)
    starting.start()
    if publishes:
        wait_for_controller(
            *(client, 'arm', controller._parameters.services_are_ready, 0.2), 'there is none'
        )
        controller.timeout = PATIENCE
        assert controller.describe().joints == ('a',)
    else:
        with pytest.raises(ControllerError, match="there is no controller 'arm'"):
            controller.describe()
    starting.join()
    spinning.end()
    rclpy.try_shutdown(context=context)
