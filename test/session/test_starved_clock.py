"""A clock that stands now and then, as Gazebo's on a busy machine, spoils no result."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.nodes.demo.demo import true_standard_parameters

from .conftest import Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def test_a_session_by_a_starved_clock_finds_what_is_true(
    config: Path, trajectory: Path, tmp_path: Path
):
    values = yaml.safe_load(config.read_text())
    values['/**']['ros__parameters']['simulation'].update(
        update_rate=250.0,
        state_rate=250.0,
        real_time_factor=0.5,
        fault={'kind': 'starved_clock', 'time': 0.0},
    )
    path = tmp_path / 'scara.yaml'
    path.write_text(yaml.safe_dump(values))
    with Session(path, tmp_path) as session:
        session.run_whole(trajectory, tmp_path)
        bag = Path(session.client.value('recorder', 'path'))
        told = session.client.latest['simulated_robot/true_parameters']
    (note,) = select(open_recording(bag).notes, 'clock_starved')
    assert 0.1 < note.values['share'] < 0.4
    robot = build_robot(read_urdf(load(path)) or '', load(path).robot)
    truth = base_parameters(robot).of(true_standard_parameters(robot, told))
    results = bag.with_name(f'{bag.name}_identified') / 'parameters.yaml'
    found = yaml.safe_load(results.read_text())
    pairs = zip(found['base'], truth, strict=True)
    off = np.array([(each['value'] - true) / each['sigma'] for each, true in pairs])
    assert np.mean(np.abs(off) <= 3.0) >= 0.75, off
    assert max(each['moving'] for each in found['validation']) < 0.02
