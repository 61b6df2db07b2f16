"""The page of a session's design appears beside it, or the log says why it does not."""

from pathlib import Path

import pytest
from waiting import wait_until

from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.excitation.session_design import write_page

CONFIG = Path(__file__).resolve().parents[3] / 'config'


class Log(list[str]):
    """Keeps what is logged, with its severity before it."""

    def info(self, text: str) -> None:
        self.append(f'info: {text}')

    def warning(self, text: str) -> None:
        self.append(f'warning: {text}')


@pytest.fixture
def saved():
    configuration = load(CONFIG / 'scara.yaml')
    plan = read_design(CONFIG / 'trajectories' / 'scara.yaml')
    return plan, read_urdf(configuration), configuration


def test_it_is_written_beside_and_stays(saved, tmp_path: Path):
    log, page = Log(), tmp_path / 'scara_trajectory.html'
    write_page(tmp_path / 'scara_trajectory.yaml', *saved, log)
    wait_until(lambda: log, 'it is written')
    assert log == [f"info: the arm along its motion: '{page}'"]
    assert saved[0].trajectory.hash in page.read_text()
    page.write_text('mine')
    write_page(tmp_path / 'scara_trajectory.yaml', *saved, log)
    assert page.read_text() == 'mine' and len(log) == 1


def test_where_it_cannot_be_written_is_a_warning(saved, tmp_path: Path):
    log = Log()
    (tmp_path / 'file').write_text('')
    write_page(tmp_path / 'file' / 'scara_trajectory.yaml', *saved, log)
    wait_until(lambda: log, 'it is said')
    (said,) = log
    assert said.startswith('warning: the design has no page: ') and 'Traceback' not in said
