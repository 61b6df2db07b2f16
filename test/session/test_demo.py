"""A demo whose verification fails keeps what was identified, and says both."""

from pathlib import Path

from live_session import without_pages
import pytest
import yaml

from robotid_ros.cli.demo import report
from robotid_ros.files.results import read_results
from robotid_ros.nodes.demo.demo import Demo

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def test_what_was_identified_outlives_a_verification_that_fails(
    config: Path,
    trajectory: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    for name, value in without_pages().items():
        monkeypatch.setenv(name, value)
    content = yaml.safe_load(config.read_text())
    groups = content['/**']['ros__parameters']
    groups['excitation']['trajectory'] = str(trajectory)
    # The model is that of who names none.
    del groups['identification']['method']
    twin = tmp_path / 'twin.yaml'
    twin.write_text(yaml.safe_dump(content))
    with Demo(twin, tmp_path, 'error', ('verify_what_nobody_serves',)) as demo:
        results = demo.run(lambda *_: None, 600.0)
    assert "nobody serves 'excitation/verify_what_nobody_serves'" in demo.unverified
    assert read_results(demo.folder).base == results.base
    assert any(entry.true is not None for entry in results.base)
    capsys.readouterr()
    outcome = report(results, demo.folder, {}, demo.unverified)
    outcome.show()
    assert outcome.code == 0 and 'lie within ±3σ' in capsys.readouterr().out
    assert 'identified, but not verified on the robot: nobody serves' in outcome.errors[0]
