"""A session of a robot with elastic joints: its stiffness comes over topics."""

from pathlib import Path

import pytest
from waiting import PATIENCE
import yaml

from robotid_ros.nodes.common.messages import values_of

from .conftest import CONFIG, Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]

NAME = 'planar_2r_elastic'


@pytest.fixture
def elastic(tmp_path: Path) -> Path:
    """Take the planar arm with one elastic joint, at twice real time and half of the rate."""
    values = yaml.safe_load((CONFIG.parent / f'{NAME}.yaml').read_text())
    groups = values['/**']['ros__parameters']
    groups['robot']['elastic'] = {'joints': ['joint_1'], 'motors': ['drive']}
    groups['excitation'].update(periods=1, settle=0.2, stale_after=2.0, timeout=PATIENCE)
    groups['simulation'].update(update_rate=500.0, real_time_factor=2.0)
    groups['simulation']['elastic'] = {'stiffness': [16000.0, 0.0]}
    groups['simulation']['noise']['effort'] = [0.3, 0.1, 0.3]
    path = tmp_path / f'{NAME}.yaml'
    path.write_text(yaml.safe_dump(values))
    return path


def test_the_stiffness_of_the_one_elastic_joint_is_published(elastic: Path, tmp_path: Path):
    trajectory = str(CONFIG.parent / 'trajectories' / f'{NAME}.yaml')
    with Session(elastic, tmp_path) as session:
        session.run_whole(trajectory, tmp_path)
        shown = {
            name: text
            for status in session.client.latest['identification/parameters'].status
            for name, text in values_of(status).items()
        }
        value, sigma, _, unit, _ = (part.strip() for part in shown['K1'].split(';'))
        assert float(value) == pytest.approx(16000.0, rel=0.01)
        assert 0.0 < float(sigma) < 160.0
        assert unit == 'N·m/rad'
        assert 'K2' not in shown
        summary = session.client.latest['identification/validation/summary'].status
        assert [status.name for status in summary][-1] == 'drive'
