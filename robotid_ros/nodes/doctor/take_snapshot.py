"""Listen to a ROS graph and ask it; nothing is moved, set or published."""

from collections.abc import Iterator
import contextlib
import os

import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidTopicNameException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.validate_topic_name import validate_topic_name

from ...exceptions import ConfigurationError, RobotIdError
from ...files.configuration import Configuration, read_urdf
from ..common.messages import one_line
from ..common.runtime import SpinThread
from .graph_listener import GraphListener
from .graph_snapshot import GraphSnapshot
from .network_checks import ENVIRONMENT, look_at_disk

NODE = 'robotid_doctor'


@contextlib.contextmanager
def listening_node(namespace: str, domain: int | None) -> Iterator[Node]:
    """
    Give a node that spins in a thread, and offers nothing.

    Raises
    ------
    RobotIdError : ROS does not start with this environment, or it is no namespace

    """
    context = Context()
    with contextlib.ExitStack() as ends:
        ends.callback(rclpy.try_shutdown, context=context)
        try:
            rclpy.init(
                context=context,
                domain_id=domain,
                signal_handler_options=SignalHandlerOptions.NO,
                args=[],
            )
            node = rclpy.create_node(
                NODE,
                context=context,
                namespace=namespace,
                use_global_arguments=False,
                enable_rosout=False,
                start_parameter_services=False,
            )
        except Exception as error:  # rcl says what of the environment it cannot use
            raise RobotIdError(
                f'ROS 2 does not start ({one_line(error)}): check --namespace, ROS_DOMAIN_ID and '
                'RMW_IMPLEMENTATION'
            ) from error
        ends.callback(node.destroy_node)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        ends.callback(SpinThread(executor).end)
        yield node


def snapshot_of_graph(
    configuration: Configuration,
    *,
    controller: str = '',
    namespace: str = '/',
    duration: float = 5.0,
    timeout: float = 10.0,
    domain: int | None = None,
) -> GraphSnapshot:
    """
    Listen to a graph and ask it.

    Parameters
    ----------
    configuration : of the robot, or one of defaults
    controller : that is meant; '' for the configuration's, or the only one there is
    namespace : of the robot
    duration : how long to listen [s]; participants of DDS announce themselves every 3 s
    timeout : longest wait for an answer, to discover the robot, and for a message of a topic that
        is published [s]
    domain : ROS domain; None: the environment's

    Raises
    ------
    FileError : the configured URDF is missing
    RobotIdError : ROS does not start, or a name is none
    ConfigurationError : no controller can have that name

    """
    default = configuration.excitation.controller
    try:
        validate_topic_name(controller or default)
    except InvalidTopicNameException as error:
        raise ConfigurationError(
            f"'{controller or default}' cannot be a controller: give a name of letters and digits"
        ) from error
    urdf = read_urdf(configuration) or ''
    with listening_node(namespace, domain) as node:
        listener = GraphListener(node, timeout)
        listener.wait_for_robot(controller)
        name = controller or listener.choose(default)
        listener.listen(name, duration)
        return GraphSnapshot(
            configuration=configuration,
            configured_description=urdf,
            controller_name=name,
            name_was_given=bool(controller) or name == default,
            controller=listener.describe_controller(name),
            disk=look_at_disk(configuration.recorder.folder),
            environment=environment(domain),
            **listener.heard(name),
        )


def environment(domain: int | None) -> dict[str, str]:
    """Return the variables that decide who hears whom."""
    found = {name: os.environ[name] for name in ENVIRONMENT if os.environ.get(name)}
    return found if domain is None else {**found, 'ROS_DOMAIN_ID': str(domain)}
