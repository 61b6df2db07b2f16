"""A session ends after the period with which enough is known, or goes on to its longest time."""

import dataclasses
from pathlib import Path
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.core.excitation.design import Design
from robotid_ros.core.excitation.problem import Known
from robotid_ros.core.model import build_robot, regressor
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.signals.recording import Phase, Recording
from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.results import dump_known
from robotid_ros.files.trajectory_file import write_design
from robotid_ros.nodes.common.messages import status, values_of
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.excitation.session import THINKING

from .conftest import LONG, Session

pytestmark = pytest.mark.ros
PERIOD = 4.0


def recorded(session: Session) -> tuple[Recording, Phase]:
    """Return the bag of a session that is done, and its excitation; nothing is cut."""
    client = session.client
    session.until('excitation', 'done')
    client.wait_for(lambda: 'recorder/bag' in client.latest, what='the bag is closed')
    recording = open_recording(client.latest['recorder/bag'].data)
    phases = {phase.name: phase for phase in recording.phases}
    assert not any(phase.cut for phase in recording.phases) and 'validating' in phases
    return recording, phases['exciting']


def start_followed(session: Session, trajectory: Path, **until: object) -> None:
    """Start a session that the node `identification` follows, to the start of its motion."""
    asked = {f'excitation.until.{name}': value for name, value in until.items()}
    session.start(
        *('simulated_robot', 'excitation', 'recorder', 'identification'),
        excitation={'excitation.trajectory': str(trajectory), 'excitation.periods': 3, **asked},
        recorder={'recorder.folder': str(session.folder)},
        identification=asked,
    )
    session.robot.wait()
    session.ready('excitation', 'recorder', 'identification')
    session.client.call_trigger('excitation/start')
    session.until('excitation', 'exciting')


def start_without_identification(session: Session, trajectory: Path, **excitation: Any) -> None:
    """Start a session that ends when enough is known, as the test will say."""
    asked = {'excitation.periods': LONG, 'excitation.until.prediction': 0.02, **excitation}
    session.start(
        *('simulated_robot', 'excitation', 'recorder'),
        excitation={'excitation.trajectory': str(trajectory), **asked},
        recorder={'recorder.folder': str(session.folder)},
    )
    session.robot.wait()
    session.ready('excitation', 'recorder')
    session.client.call_trigger('excitation/start')


@pytest.mark.slow
def test_a_session_goes_on_to_its_longest_time(session: Session, trajectory: Path):
    told: list[dict[str, str]] = []
    session.client.node.create_subscription(
        DiagnosticStatus, 'identification/progress', lambda m: told.append(values_of(m)), LATCHED
    )
    start_followed(session, trajectory, **{'sigma.Fc1': 1e-9, 'time': 3.9 * PERIOD})
    _, exciting = recorded(session)
    # Each period is a goal of its own: the robot rests in between.
    lasts = exciting.stop - exciting.start - exciting.rests
    assert exciting.rests > 0.0 and lasts == pytest.approx(3 * PERIOD, abs=1e-3)
    # A busy machine may know nothing in time.
    assert {values['following'] for values in told} == {'True'}
    assert {values.get('enough', 'False') for values in told} == {'False'}
    assert 'identified' in session.until('identification', 'done')


@pytest.mark.slow
def test_a_session_goes_on_without_the_identification(session: Session, trajectory: Path):
    start_followed(session, trajectory, prediction=0.02)
    session.process('identification').kill()
    _, exciting = recorded(session)
    lasts = exciting.stop - exciting.start - exciting.rests
    assert lasts == pytest.approx(3 * PERIOD, abs=1e-3)


@pytest.mark.slow
def test_the_next_motion_is_for_what_is_unknown(session: Session, designed: Design, config: Path):
    """It begins at rest where the one before ends; as long as there is none, that runs again."""
    client, configuration = session.client, load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    # A slow motion tells little, and leaves a busy machine its time.
    present = designed.trajectory.at_speed(0.2)
    plan = dataclasses.replace(designed, trajectory=present)
    base, effort = base_parameters(robot), 0.3 * robot.limits.effort
    motion = present.sample(np.arange(0.0, present.period, 0.05))
    W = np.concatenate(regressor(robot, *motion, columns=base.columns))
    known = Known(
        *(robot.joints, base.names, base.of(robot.prior), np.linalg.pinv(W.T @ W)),
        *(np.full(robot.n, np.nan), np.ones(robot.n), effort, 20.0),
    )
    topics = [
        client.node.create_publisher(DiagnosticStatus, f'identification/{name}', LATCHED)
        for name in ('progress', 'known')
    ]
    references: list[JointTrajectory] = []
    client.node.create_subscription(
        JointTrajectory, 'excitation/reference', references.append, LATCHED
    )
    path = write_design(session.folder / 'slow.yaml', plan)
    start_without_identification(session, path, **{'excitation.iterations': 12})

    def told() -> bool:
        """Say what the identification says: damaged first, then right, at last that it is all."""
        values = values_of(client.latest['excitation/state'])
        say = {'session': values.get('session', ''), 'following': True}
        cycle = int(values.get('cycle', 1))
        begun = values['state'] == 'exciting' and float(values['progress']) > 0.3 / LONG
        text = dump_known(known, robot) if begun else 'damaged'
        # Once another motion is known, the period after the next one is the last.
        ran.append(cycle) if len(references) > 1 and not ran else None
        topics[0].publish(status('progress', '', {**say, 'enough': bool(ran) and cycle > ran[0]}))
        topics[1].publish(status('known', '', {**say, 'known': text}))
        return values['state'] in ('done', 'failed')

    ran: list[int] = []
    client.wait_for(told, what='the session ends')
    recording, exciting = recorded(session)
    assert len(references) >= 2 and ran[0] >= 2
    lasts = exciting.stop - exciting.start - exciting.rests
    periods = round(lasts / present.period)
    assert periods >= ran[0] and lasts == pytest.approx(periods * present.period, abs=1e-3)
    reference = recording.between(exciting.start, exciting.stop).reference
    assert reference is not None
    speed = abs(reference.dq).max(axis=1)
    last = reference.time > exciting.stop - present.period
    assert speed[last].max() > 1.5 * speed[~last].max()
    for message in references:
        for point in message.points[0], message.points[-1]:
            np.testing.assert_allclose(point.positions, present.start, atol=1e-9)
            assert not any(point.velocities)


@pytest.mark.slow
def test_a_session_ends_when_enough_is_known(session: Session, trajectory: Path):
    client = session.client
    progress = client.node.create_publisher(DiagnosticStatus, 'identification/progress', LATCHED)
    start_without_identification(session, trajectory)

    over: list[float] = []

    def told() -> bool:
        """Say what the identification says, which is busy until a period is over."""
        values = values_of(client.latest['excitation/state'])
        known = {'session': values.get('session', ''), 'following': True}
        if float(values.get('progress', 0.0)) > 0.999 / LONG or over:
            over.append(time.monotonic())
            known |= {'enough': True} if over[-1] > over[0] + THINKING * PERIOD / 3.0 else {}
        progress.publish(status('progress', 'so far', known))
        return values['state'] in ('done', 'failed')

    client.wait_for(told, what='the session ends')
    recording, exciting = recorded(session)
    assert exciting.stop - exciting.start == pytest.approx(PERIOD, abs=1e-3)
    # It ends at rest where it began.
    rest = recording.between(exciting.stop + 0.005, exciting.stop + 0.2).reference
    assert rest is not None
    assert abs(rest.q - recording.trajectories['exciting'].start).max() < 1e-6
