"""
What each maker of robots wants of a payload: a line to paste, or a service of its ROS 2 driver.

Makers differ in units, frames and order. A body is `CENTRAL`, (10,), NaN where the data do not
determine it. The services are as the drivers' own code has them:

- Universal_Robots_ROS2_Driver, ur_controllers/src/gpio_controller.cpp, `setPayload`: 3.8.0 (jazzy,
  a16a268), 2.14.0, 4.8.0 and 6.0.0 read ixx … iyz beside mass and center_of_gravity, 7.0.0 (main,
  696e1a7) a geometry_msgs/Inertia; ur_msgs 1.3.4 (7f73065), srv/SetPayload.srv, has no inertia.
  ur_robot_driver/src/hardware_interface.cpp has what is set as state interfaces; ros2_controllers
  4.42.1, joint_state_broadcaster, publishes them.
- franka_ros2 3.4.0 (jazzy, 29cb85a) and 2.5.0 (humble, 43357d1): franka_msgs/srv/SetLoad.srv,
  franka_hardware/src/franka_param_service_server.cpp; franka_msgs/msg/FrankaRobotState.msg.
- xarm_ros2 (jazzy, 0417b0f; humble, 5109131): xarm_msgs/srv/SetTcpLoad.srv,
  xarm_api/src/xarm_driver_service.cpp, which hands mm on to the SDK; `services.set_tcp_load` of
  xarm_api/config/xarm_params.yaml is false by default.
- kuka_drivers (0ba6158), lbr_fri_ros2_stack (218d723), ros2_kortex (1fdbef3) have no such service.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.parameters.carried_body import checked_inertia, inertia_matrix
from ...exceptions import ConfigurationError, MissingPackageError, use_one_of
from ...plant.urdf_reading import MOMENTS
from ..yaml import dump_flow

# Significant digits of makers' lines: more than any identification knows, enough that a body
# stays possible.
DIGITS = 7
# In place of a maker where there is no driver: the node that hands goals on.
RELAY = 'feedforward'


class Driver(NamedTuple):
    """The service of a ROS 2 driver that sets the payload."""

    service: str  # relative name where the driver is started as its documents say
    type: str
    # By the fields of each version of the interface, the one of most releases first.
    requests: tuple[Callable[[Array], dict[str, Any]], ...]
    # Topic and type that say what is set, and what reads a body from a message, None where it
    # lacks one; None: the driver does not publish it.
    state: tuple[str, str, Callable[[Any], Array | None]] | None = None
    success: tuple[str, Any] = ('success', True)  # field of the answer, its value where it is set


class Maker(NamedTuple):
    """What one maker wants."""

    line: Callable[[Array], str]  # to paste, of a body
    inertia: bool  # whether there is none without the inertia
    frames: tuple[str, ...]  # ends of the names that the flange frame has in descriptions
    driver: Driver | None = None  # None: the ROS 2 drivers have no service


def maker_lines(body: Array) -> dict[str, str | None]:
    """Return each maker's line to paste, of its flange frame; None where data lack a number."""
    known = np.isfinite(body)
    return {
        name: maker.line(body) if known[: 10 if maker.inertia else 4].all() else None
        for name, maker in MAKERS.items()
    }


def universal_robots(body: Array) -> str:
    """URScript: kg, m, kg·m² at the centre of mass, axes of the tool flange; xx yy zz xy xz yz."""
    values = [_numbers(body[:1]), f'[{_numbers(body[1:4])}]']
    if np.isfinite(body).all():
        values.append(f'[{_numbers(body[[4, 7, 9, 5, 6, 8]])}]')
    return f'set_target_payload({", ".join(values)})'


def franka(body: Array) -> str:
    """C++ of libfranka: kg, m from the flange, kg·m² at the centre of mass by columns."""
    centre, inertia = _numbers(body[1:4]), _numbers(inertia_matrix(body).ravel(order='F'))
    return f'robot.setLoad({_numbers(body[:1])}, {{{{{centre}}}}}, {{{{{inertia}}}}});'


def kuka(body: Array) -> str:
    """
    KRL: kg, mm from the flange, kg·m² about the principal axes through the centre of mass.

    A, B, C [degrees] turn the flange's axes into the principal ones: A about Z, then B about the
    new Y, then C about the new X.
    """
    from scipy.spatial.transform import Rotation

    moments, axes = np.linalg.eigh(inertia_matrix(body))
    axes[:, 0] *= np.sign(np.linalg.det(axes))  # right-handed
    angles = Rotation.from_matrix(axes).as_euler('ZYX', degrees=True)

    def fields(names: str, values: Sequence[float] | Array) -> str:
        return ','.join(f'{k} {_numbers([v])}' for k, v in zip(names, values, strict=True))

    frame = fields('XYZABC', [*(1000.0 * body[1:4]), *angles])
    return f'LOAD_DATA[1]={{M {_numbers(body[:1])},CM {{{frame}}},J {{{fields("XYZ", moments)}}}}}'


def kinova(body: Array) -> str:
    """Python of the Kortex API: kg, m from the interface module; it takes no inertia."""
    centre = 'tool.tool_mass_center'
    return (
        'tool = control_config.GetToolConfiguration(); '
        f'tool.tool_mass = {_numbers(body[:1])}; '
        f'{centre}.x, {centre}.y, {centre}.z = {_numbers(body[1:4])}; '
        'control_config.SetToolConfiguration(tool)'
    )


def ufactory(body: Array) -> str:
    """Python of the xArm SDK: kg, mm from the flange; it takes no inertia."""
    return f'arm.set_tcp_load({_numbers(body[:1])}, [{_numbers(1000.0 * body[1:4])}])'


def _named(names: Sequence[str], values: Array) -> dict[str, float]:
    """Return values by field, 0 for an unknown inertia: a point, as the drivers' default is."""
    return dict(zip(names, np.nan_to_num(values).tolist(), strict=True))


def _of_universal_robots(message: Any) -> Array | None:
    """Read the group `payload` of a control_msgs/DynamicJointState; names may have a prefix."""
    keys = ('mass', *(f'cog.{k}' for k in 'xyz'), *(f'inertia.{k}' for k in MOMENTS))
    for name, values in zip(message.joint_names, message.interface_values, strict=False):
        if name.endswith('payload'):
            found = dict(zip(values.interface_names, values.values, strict=False))
            body = np.array([found.get(key, np.nan) for key in keys])
            return body if np.isfinite(body).all() else None
    return None


def _of_franka(message: Any) -> Array:
    """Read the load of a franka_msgs/FrankaRobotState."""
    load = message.inertia_load.inertia
    moments = [getattr(load, key) for key in MOMENTS]
    return np.array([load.m, load.com.x, load.com.y, load.com.z, *moments])


def _set_payload(body: Array) -> dict[str, Any]:
    """Fields of ur_msgs/srv/SetPayload without inertia: kg, m."""
    return {'mass': float(body[0]), 'center_of_gravity': _named('xyz', body[1:4])}


UNIVERSAL_ROBOTS = Driver(
    'io_and_status_controller/set_payload',
    'ur_msgs/srv/SetPayload',
    (
        lambda b: _set_payload(b) | _named(MOMENTS, b[4:]),
        lambda b: {
            'payload': {'m': float(b[0]), 'com': _named('xyz', b[1:4]), **_named(MOMENTS, b[4:])}
        },
        _set_payload,
    ),
    ('dynamic_joint_states', 'control_msgs/msg/DynamicJointState', _of_universal_robots),
)
FRANKA = Driver(
    'service_server/set_load',
    'franka_msgs/srv/SetLoad',
    (
        lambda body: {
            'mass': float(body[0]),
            'center_of_mass': body[1:4].tolist(),
            'load_inertia': inertia_matrix(body).ravel(order='F').tolist(),
        },
    ),
    ('franka_robot_state_broadcaster/robot_state', 'franka_msgs/msg/FrankaRobotState', _of_franka),
)
UFACTORY = Driver(  # kg, mm
    'xarm/set_tcp_load',
    'xarm_msgs/srv/SetTcpLoad',
    (lambda b: {'weight': float(b[0]), 'center_of_gravity': (1000.0 * b[1:4]).tolist()},),
    success=('ret', 0),
)
MAKERS: Mapping[str, Maker] = {
    'universal_robots': Maker(universal_robots, False, ('tool0',), UNIVERSAL_ROBOTS),
    'franka': Maker(franka, True, ('link8',), FRANKA),
    'ufactory': Maker(ufactory, False, ('link_eef',), UFACTORY),
    'kuka': Maker(kuka, True, ('tool0', 'flange')),
    'kinova': Maker(kinova, False, ('end_effector_link',)),
}


def find_driver(name: str, frame: str, body: Array, service: str = '') -> Driver:
    """Return the driver of a maker that takes a body in a frame; RobotIdError: why not."""
    if name not in MAKERS:
        raise ConfigurationError(f"there is no maker '{name}': {use_one_of(name, MAKERS)}")
    maker = MAKERS[name]
    if not frame.endswith(maker.frames):
        raise ConfigurationError(
            f"the payload is in '{frame}', {name} takes it in {' or '.join(maker.frames)}: "
            'identify it with that --frame'
        )
    if not np.isfinite(body[: 10 if maker.inertia else 4]).all():
        raise ConfigurationError(
            f'{name} needs values that the motion does not determine: record a motion that '
            'turns the payload more'
        )
    checked_inertia(np.nan_to_num(body))
    driver = maker.driver
    if driver is None:
        raise ConfigurationError(
            f'the ROS 2 drivers of {name} have no service for a payload: paste {maker.line(body)}'
        )
    package = driver.type.partition('/')[0]
    if find_spec(package) is None:
        raise MissingPackageError(
            f'nothing is set, as {package} is not installed here: where it is, type '
            f'{call_text(driver, body, service)}'
        )
    return driver


def call_text(driver: Driver, body: Array, service: str = '') -> str:
    """Return the command that calls the service of a driver, of the releases of today."""
    name = (service or driver.service).lstrip('/')
    return f'ros2 service call /{name} {driver.type} "{dump_flow(driver.requests[0](body))}"'


def _numbers(values: Sequence[float] | Array) -> str:
    """Write numbers without an exponent, which not every controller reads."""
    texts = (
        np.format_float_positional(float(v) + 0.0, precision=DIGITS, fractional=False, trim='0')
        for v in values
    )
    return ', '.join(texts)
