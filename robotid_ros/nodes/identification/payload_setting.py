"""The payload of a driver and of the relay: both are set, or none; what was set before is kept."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.arrays import Array
from ...exceptions import ConfigurationError, ControllerError
from ...files.atomic import new_names
from ...files.payload.makers import Driver, find_driver, RELAY
from ...files.payload.payload_file import read_body, write_body
from ...node_settings import CARRIED
from ..common.batched_subscription import BatchedSubscription
from ..common.joint_states import check_at_rest
from ..common.messages import interface
from ..common.ros_parameters import ParameterClient
from ..common.waiting import answer_of, wait_until

# Of the relay, in the order of mass, centre, inertia and frame.
PARAMETERS = tuple(f'feedforward.payload.{key}' for key in CARRIED)
DISCOVERY = 3.5  # whoever runs is discovered within this time [s]: DDS announces every 3 s
# From one call of a driver to the next, where no answer comes [s]: some check what they have set.
REPEAT = 5.0


class PayloadSetter:
    """
    Sets payloads at a driver and at the relay, where one runs, while `joints` rest.

    It waits while the node's executor spins, so call from a worker thread; `joints` as in
    `check_at_rest`. RobotIdError: nothing is set, unless a driver has not answered; says why, and
    what to do.
    """

    def __init__(self, node: Node, timeout: float, joints: Sequence[str] = ()):
        self._node, self._timeout, self._joints = node, timeout, joints
        self._relay = ParameterClient(node, RELAY, timeout)
        self._driver: Driver | None = None  # of the payload that is set now

    def set(self, maker: str, frame: str, body: Array, file: Path, service: str = '') -> str:
        """
        Set a body, by a service of its maker's driver; return a sentence.

        The maker is one of `MAKERS`, or `RELAY`, which has no driver; the body is `CENTRAL` (10,)
        in a frame, NaN where it is unknown. The file, under a new name where one is there, gets
        what was set before.
        """
        self._find(maker, frame, body, service)
        before, relay = self._present_body(), self._parameters()
        file = next(name for name in new_names(file) if not name.exists())
        write_body(file, frame, before, {'maker': maker, 'service': service, 'relay': relay})
        wanted = body[0], body[1:4], np.nan_to_num(body[4:]), frame
        text = self._set(maker, body, dict(zip(PARAMETERS, wanted, strict=True)), relay)
        centre = ', '.join(f'{x:.4f}' for x in body[1:4])
        unknown = maker != RELAY and before is None
        stored = 'is unknown' if unknown else f"is in '{file}': --restore sets it again"
        return f'{text}: {body[0]:.4g} kg at ({centre}) m in {frame}; what was set before {stored}'

    def restore(self, file: str) -> str:
        """Set again what was set before, by a file of `set`."""
        frame, body, content = read_body(file)
        maker, relay = content.get('maker'), content.get('relay')
        if maker is None or not (relay is None or set(relay) == set(PARAMETERS)):
            raise ConfigurationError(f"'{file}' is no file that --set wrote before a payload")
        if maker != RELAY and np.isnan(body).all():
            raise ConfigurationError(
                f'the earlier payload is unknown, as the driver of {maker} does not publish it: '
                'set a payload with --set'
            )
        self._find(str(maker), frame, body, str(content.get('service', '')))
        return f'{self._set(str(maker), body, relay, self._parameters())}: as it was before'

    def _find(self, maker: str, frame: str, body: Array, service: str) -> None:
        """Find the driver's service and the relay, and check that the robot rests."""
        self._driver, waited = None, [self._relay.is_ready]
        if maker != RELAY:
            self._driver = find_driver(maker, frame, body, service)
            self._name = service or self._driver.service
            self._client = self._node.create_client(interface(self._driver.type), self._name)
            waited.append(self._client.service_is_ready)
        wait_until(lambda: all(ready() for ready in waited), DISCOVERY)
        lacking = self._name if self._driver else f'{RELAY}/set_parameters_atomically'
        what = f"there is no service '{lacking}': start its node, or name the service"
        wait_until(waited[-1], self._timeout, what=what)
        states = BatchedSubscription(self._node, JointState, 'joint_states')
        check_at_rest(states, self._timeout, self._joints)

    def _present_body(self) -> Array | None:
        """Return what the driver says is set, None where it does not."""
        if self._driver is None or self._driver.state is None:
            return None
        topic, kind, read = self._driver.state
        with closing(BatchedSubscription(self._node, interface(kind), topic)) as stream:

            def heard() -> list[Array]:
                bodies = map(read, stream.take_messages())
                return [body for body in bodies if body is not None]

            return next(reversed(wait_until(heard, DISCOVERY)), None)

    def _parameters(self) -> Mapping[str, Any] | None:
        """Return the payload that the relay has, None where none runs."""
        return self._relay.get(PARAMETERS) if self._relay.is_ready() else None

    def _set(
        self,
        maker: str,
        body: Array,
        wanted: Mapping[str, Any] | None,
        present: Mapping[str, Any] | None,
    ) -> str:
        """Set both; the relay gets its present parameters again where the driver refuses."""
        names = []
        if present is not None and wanted is not None:
            self._set_relay(wanted)
            names = ['the relay']
        if self._driver is not None:
            try:
                self._call(self._driver, body)
            except ControllerError:
                if names and present is not None:
                    self._set_relay(present)
                raise
            names = [maker, *names]
        return f'set at {" and ".join(names)}'

    def _set_relay(self, values: Mapping[str, Any]) -> None:
        mass, center, inertia, frame = (values[name] for name in PARAMETERS)
        given = (float(mass), [*map(float, center)], [*map(float, inertia)], str(frame))
        self._relay.set(dict(zip(PARAMETERS, given, strict=True)))

    def _call(self, driver: Driver, body: Array) -> None:
        kind = interface(driver.type)
        known = kind.Request.get_fields_and_field_types().keys()
        requests = (request(body) for request in driver.requests)
        fields = next((each for each in requests if each.keys() <= known), None)
        if fields is None:
            raise ControllerError(
                f'{driver.type} has the fields {", ".join(known)}, which no known version '
                'has: set the payload by hand'
            )
        request = kind.Request()
        _fill(request, fields)
        call = partial(self._client.call_async, request)
        what = f"'{self._name}', which may have set the payload,"
        answer = answer_of(call, self._timeout, what, REPEAT)
        name, value = driver.success
        if getattr(answer, name) != value:
            reason = getattr(answer, 'error', '') or getattr(answer, 'message', '')
            raise ControllerError(
                f"'{self._name}' refused the payload: {reason or 'its log says why'}"
            )


def _fill(message: Any, fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            _fill(getattr(message, key), value)
        else:
            setattr(message, key, value)
