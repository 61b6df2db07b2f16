"""The node says what is known of a motion while it runs, from joint states alone."""

from pathlib import Path
import time

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from spinning_nodes import spinning_nodes
from waiting import wait_until

from robotid_ros.core.model import build_robot, inverse_dynamics
from robotid_ros.files.configuration import read_mapping
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.messages import status, to_time, values_of
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.identification.identification_node import IdentificationNode

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[3]
RATE, START, STANDS = 200.0, 10**18, 9.0


@pytest.fixture
def watched(domain: int, request: pytest.FixtureRequest):
    """Start the node with what is asked for, and a client that hears what it says."""
    values = read_mapping(ROOT / 'config' / 'scara.yaml')
    values['excitation'] |= request.param
    with spinning_nodes(domain, values, IdentificationNode, folder=ROOT) as (node, client):
        told: list[DiagnosticStatus] = []
        client.create_subscription(
            DiagnosticStatus, 'identification/progress', told.append, LATCHED
        )
        state = client.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
        wait_until(lambda: state.get_subscription_count() >= 2, 'the node listens')

        def say(name: str) -> None:
            values = {'state': name, 'session': 'this one'}
            state.publish(status('excitation', name, values))

        yield node, client, told, say


@pytest.mark.parametrize(
    'watched',
    [
        {'until': {'prediction': 0.02}},
        {'until': {'sigma': {'mass': 0.05}}, 'payload': {'mass': 2.0, 'duration': 20.0}},
    ],
    ids=['arm', 'payload'],
    indirect=True,
)
def test_what_is_known_comes_with_the_motion(watched):
    node, client, told, say = watched
    robot = build_robot((ROOT / 'urdf' / 'scara.urdf').read_text(), node.configuration.robot)
    design = read_design(ROOT / 'config' / 'trajectories' / 'scara.yaml')
    # It stands for a while: the first piece tells nothing.
    clock = np.arange(round((STANDS + 12.0) * RATE)) / RATE
    moving = clock[:, None] >= STANDS
    q, dq, ddq = design.trajectory.sample(np.maximum(clock - STANDS, 0.0))
    dq, ddq = (np.where(moving, x, 0.0) for x in (dq, ddq))
    chi = robot.prior.copy()
    chi[[robot.column(name) for name in ('Fc1', 'Fc2')]] = 0.8, 0.15
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += [0.1, 0.004] * np.random.default_rng(0).normal(size=tau.shape)
    publisher = client.create_publisher(JointState, 'joint_states', 100)
    say('approaching')
    first = values_of(wait_until(lambda: told and told[0], 'the session is followed'))
    assert (first['session'], first['following'], 'enough' in first) == ('this one', 'True', False)
    wait_until(publisher.get_subscription_count, 'the motion is followed')
    say('exciting')
    # Faster than it would run: its own stamps count.
    for k, t in enumerate(clock):
        message = JointState(name=list(robot.joints), position=q[k].tolist())
        message.effort = tau[k].tolist()
        message.header.stamp = to_time(START + round(1e9 * t))
        publisher.publish(message)
        time.sleep(1e-3)
    known = wait_until(
        lambda: next((v for v in map(values_of, told) if v.get('enough') == 'True'), None),
        'enough is known',
        lambda: told[-1:],
    )
    assert float(known['prediction']) <= 0.02 and float(known['model']) < 0.02
    assert 5.0 < float(known['motion']) < 13.0 and known['joint'] in robot.joints
    assert [key for key in known if key.startswith('sigma.')]
    assert float(known.get('sigma.mass', 0.0)) <= 0.05
    assert ('sigma.mass' in known) == bool(node.configuration.excitation.payload.mass)


@pytest.mark.parametrize('watched', [{'until': {'sigma': {'ZZ9': 0.1}}}], indirect=True)
def test_who_asks_for_what_is_not_there_is_told(watched):
    *_, told, say = watched
    say('approaching')
    refused = wait_until(
        lambda: next((m for m in told if m.level == DiagnosticStatus.WARN), None), 'it is told'
    )
    assert "'ZZ9' is no base parameter" in refused.message
    assert values_of(refused)['following'] == 'False'
