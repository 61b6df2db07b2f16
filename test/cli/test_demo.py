"""The demo's verdict, and what it is told wrongly; the session itself is in test/session."""

import dataclasses
from pathlib import Path
import re

import pytest

from robotid_ros.cli.demo import find_config, report
from robotid_ros.exceptions import FileError, UnknownNameError
from robotid_ros.files.configuration import load
from robotid_ros.files.results import count_within_sigma, Entry, Residual, Results
from robotid_ros.files.verification import GainTrial, TrackingRow, Verification


def results(errors: list[float], moving: float) -> Results:
    """Errors in units of σ."""
    base = tuple(
        Entry(f'P{k}', 1.0 + 0.1 * error, 0.1, 10.0, 'kg', 'a', 'essential', true=1.0)
        for k, error in enumerate(errors)
    )
    rows = (Residual('a', 0.5, 1.0, 2.0, 'N·m', moving),)
    return Results('r', 'wls', 'now', ('a',), base, (), rows, rows)


def test_parameters_inside_three_sigma_are_counted():
    found = results([0.0, -2.9, 2.9, 3.1, -5.0], 0.01).base
    assert count_within_sigma(found) == (3, 5)
    unknown = [dataclasses.replace(entry, true=None) for entry in found]
    assert count_within_sigma(unknown) == (0, 0)


@pytest.mark.parametrize(
    ('errors', 'moving', 'code'),
    [
        ([0.0] * 9 + [4.0], 0.03, 0),
        ([0.0] * 8 + [4.0] * 2, 0.01, 1),
        ([0.0] * 10, 0.031, 1),
        ([], 0.01, 1),
    ],
)
def test_success_only_when_the_robot_was_found(
    errors: list[float], moving: float, code: int, capsys: pytest.CaptureFixture[str]
):
    outcome = report(results(errors, moving), Path('demo'), {})
    outcome.show()
    assert outcome.code == code
    assert 'lie within ±3σ' in capsys.readouterr().out
    assert ('was not found again' in str(outcome.errors)) == bool(code)


def test_tracking_errors_are_printed_where_there_are_some(capsys: pytest.CaptureFixture[str]):
    plain = results([0.0] * 10, 0.01)
    report(plain, Path('demo'), {}).show()
    assert 'tracking error' not in capsys.readouterr().out
    row = TrackingRow('a', 'rad', 2.5e-3, 1e-4, 6e-3, 2e-4)
    trial = GainTrial(False, 'they are not better', {}, {}, (row,))
    found = Verification('now', tracking=(row,), gains=trial)
    report(dataclasses.replace(plain, verification=found), Path('demo'), {}).show()
    out = capsys.readouterr().out
    assert 'with feed-forward' in out and 'with proposed gains' in out
    assert out.count('25.0') == 2 and 'they are not better' in out
    found = Verification('now', reason='it takes no efforts')
    report(dataclasses.replace(plain, verification=found), Path('demo'), {}).show()
    assert 'it takes no efforts' in capsys.readouterr().out


def test_its_pages_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pages = {'report': tmp_path / 'report.html', 'motion': tmp_path / 'trajectory.html'}
    outcome = report(results([0.0] * 10, 0.01), tmp_path, pages)
    outcome.show()
    # Each on a line of its own, as far as it fits there; the verdict is last.
    *_, first, second, last = re.split(r'\n(?! )', capsys.readouterr().out.strip())
    assert re.sub(r'\s', '', first) == f'report{pages["report"]}'
    assert re.sub(r'\s', '', second) == f'motion{pages["motion"]}'
    assert 'lie within' in last
    assert outcome.data['pages'] == pages


def test_robots_are_found_by_name_or_file(tmp_path: Path):
    assert find_config('scara').name == 'scara.yaml'
    with pytest.raises(UnknownNameError, match=r'use one of .*scara.*tx40'):
        find_config('r2d2')
    (tmp_path / 'arm.yml').touch()
    assert find_config(str(tmp_path / 'arm.yml')) == tmp_path / 'arm.yml'
    with pytest.raises(FileError, match='no such file'):
        load(find_config(str(tmp_path / 'missing.yaml')))
