"""`~/identify_payload`: two recordings in, a body in a named frame out."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bag_tools import EPOCH, joint_state, write_mcap
from geometry_msgs.msg import InertiaStamped
import numpy as np
import pytest
import rclpy
from spinning_nodes import spinning_nodes
from std_msgs.msg import String
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until
import yaml

from robotid_ros.core.model import build_robot, inverse_dynamics
from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.common.waiting import result_of
from robotid_ros.nodes.identification.identification_node import IdentificationNode
from robotid_ros.nodes.identification.payload_service import inertia_message, payload_sentence

ROOT = Path(__file__).resolve().parents[3]
MASS, CENTRE = 1.5, (0.05, -0.03, 0.08)
STEP, SECONDS = 0.01, 12.0


@pytest.fixture
def nodes(tmp_path: Path, domain: int) -> Iterator[tuple[IdentificationNode, rclpy.node.Node]]:
    values = read_mapping(ROOT / 'config' / 'arm3.yaml')
    values['recorder'] = {'folder': str(tmp_path)}
    values['robot'] |= {'friction': {'default': ['viscous', 'coulomb', 'offset']}}
    values['identification'] = {'model': 'plain', 'time_limit': PATIENCE}
    values['identification']['payload'] = {'maker': 'universal_robots'}
    values['excitation']['payload'] = {'mass': 2.0}
    with spinning_nodes(domain, values, IdentificationNode) as nodes:
        yield nodes


def record(folder: Path, name: str, node: IdentificationNode, mass: float) -> Path:
    """Record a motion of arm3 with a ball at tool0, by the package's own model."""
    settings = node.configuration.robot
    robot = build_robot((ROOT / 'urdf' / 'arm3.urdf').read_text(), settings)
    frame = robot.model.frames[robot.model.getFrameId('tool0')]
    c = frame.placement.act(np.array(CENTRE))
    J = mass * ((c @ c + 1e-3) * np.eye(3) - np.outer(c, c))
    chi, start = robot.prior.copy(), int(robot.first_columns[-1])
    chi[start : start + 10] += [*J[np.triu_indices(3)], *mass * c, mass]
    time = np.arange(round(SECONDS / STEP)) * STEP
    w = 2.0 * np.pi / 4.0 * np.array([1.0, 2.0, 3.0])
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 3, robot.n)) * 0.4 / np.arange(1, 4)[:, None]
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, dq, ddq = s @ a + c @ b, c * w @ a - s * w @ b, -(s * w**2) @ a - c * w**2 @ b
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(round(10 * mass)).normal(size=tau.shape)
    rows = zip(time, q, dq, tau, strict=True)
    return write_mcap(
        folder, (joint_state(EPOCH + round(t * 1e9), robot.joints, *row) for t, *row in rows), name
    )


@pytest.mark.ros
def test_a_payload_is_asked_for(nodes, tmp_path):
    node, client = nodes
    bodies: list[InertiaStamped] = []
    client.create_subscription(InertiaStamped, 'identification/payload', bodies.append, LATCHED)
    bag = client.create_publisher(String, 'recorder/bag', LATCHED)
    service = client.create_client(Trigger, 'identification/identify_payload')
    wait_until(service.service_is_ready, 'it is served')

    setting = client.create_client(Trigger, 'identification/set_payload')
    wait_until(setting.service_is_ready, 'it can be set')

    def ask(service=service) -> Trigger.Response:
        return result_of(service.call_async(Trigger.Request()), PATIENCE, 'identify_payload')

    assert 'there is no recording yet' in ask().message
    assert 'no payload is identified yet' in ask(setting).message
    for name, mass in (('empty', 0.0), ('loaded', MASS)):
        path = record(tmp_path, name, node, mass)
        bag.publish(String(data=str(path)))
        wait_until(lambda p=path: node._bag == str(p.resolve()), 'heard', lambda: node._bag)
        if name == 'empty':
            assert 'nothing to compare with' in ask().message
    answer = ask()
    assert answer.success and 'in tool0, against' in answer.message, answer.message
    wait_until(lambda: bodies, 'it is published')
    found = bodies[-1]
    assert found.header.frame_id == 'tool0'
    assert found.inertia.m == pytest.approx(MASS, rel=0.01)
    com = found.inertia.com
    assert (com.x, com.y, com.z) == pytest.approx(CENTRE, abs=2e-3)
    content = yaml.safe_load((tmp_path / 'loaded_payload.yaml').read_text())
    assert content['mass'] == found.inertia.m and content['frame'] == 'tool0'
    # The maker of this robot is UR, whose interfaces are not installed: the call is said.
    answer = ask(setting)
    assert not answer.success and 'ros2 service call' in answer.message


def payload(**sigmas: float) -> Any:
    names = ('mass', 'x', 'y', 'z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    sigma = [sigmas.get(name, 0.1) for name in names]
    return SimpleNamespace(frame='grip', central=np.arange(1.0, 11.0), central_sigma=sigma)


def test_a_body_that_is_not_whole_is_no_message():
    from builtin_interfaces.msg import Time

    whole = inertia_message(payload(), 'link', Time())
    assert whole is not None and whole.header.frame_id == 'link'
    assert (whole.inertia.m, whole.inertia.com.z, whole.inertia.izz) == (1.0, 4.0, 10.0)
    partly = payload(iyy=np.inf, z=np.inf)
    assert inertia_message(partly, 'link', Time()) is None
    assert payload_sentence(partly) == '1 ± 0.1 kg at (2.0000, 3.0000, unknown) m in grip'
