"""A demo that has ended is ended by a signal as any other process: without a traceback."""

from pathlib import Path
import signal

from robotid_ros.nodes.demo.demo import Demo

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'


def test_a_demo_takes_signals_only_while_it_runs(tmp_path: Path):
    before = signal.getsignal(signal.SIGTERM)
    with Demo(CONFIG, tmp_path):
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before
