"""A recorder whose node is destroyed while it writes closes its bag and says so in a sentence."""

from pathlib import Path
import threading

from diagnostic_msgs.msg import DiagnosticStatus
import pytest
from waiting import wait_until

from robotid_ros.files.bags import open_recording
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.waiting import run_in_executor
from robotid_ros.nodes.recorder.recorder_node import Recorder

from .test_system_clock import recorder, Robot


@pytest.mark.ros
def test_a_destroyed_node_leaves_a_whole_bag_and_no_traceback(
    tmp_path: Path,
    domain: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    failures: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, 'excepthook', failures.append)
    beats: list[DiagnosticStatus] = []
    with recorder(tmp_path, domain) as client:
        client.create_subscription(DiagnosticStatus, 'recorder/heartbeat', beats.append, 1000)
        robot = Robot(client)

        def records() -> bool:
            newest = values_of(beats[-1]) if beats else {}
            return newest.get('state') == 'recording' and int(newest['messages']) > 300

        wait_until(records, 'it records', lambda: beats[-1:])
        node = next(n for n in client.executor.get_nodes() if isinstance(n, Recorder))
        run_in_executor(client, node.destroy_node)
        wait_until(lambda: not node._worker.is_alive(), 'its worker ends')
        robot.close()
    assert not failures
    said = ''.join(capfd.readouterr())
    assert 'Traceback' not in said and said.count('the node of the recorder was destroyed') == 1
    recording = open_recording(values_of(beats[-1])['path'])
    assert [phase.name for phase in recording.phases] == ['exciting', 'failed']
