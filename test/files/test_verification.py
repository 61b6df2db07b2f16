"""What was verified comes back bit for bit, beside the results that it is about, and is shown."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import yaml

from robotid_ros.core.verification.tracking import JointStatics, Tracking
from robotid_ros.exceptions import FileError
from robotid_ros.files.report.page import identification_page
from robotid_ros.files.results import read_results, Residual, Results, write_results
from robotid_ros.files.verification import (
    EffortRow,
    GAINS,
    GainTrial,
    read_verification,
    tracking_rows,
    VERIFICATION,
    Verification,
    write_gains,
    write_verification,
)

JOINTS = ('shoulder', 'el<bow')
UNITS = dict(zip(JOINTS, (('rad', 'N·m'), ('m', 'N')), strict=True))
OLD = {joint: {'p': 1e3, 'i': 0.0, 'd': 1 / 3} for joint in JOINTS}


def run(scale: float) -> Tracking:
    time = np.arange(500) * 0.01
    return Tracking(JOINTS, time, scale * np.random.default_rng(4).normal(size=(500, 2)))


@pytest.fixture
def found() -> Verification:
    before, after = run(3e-3), run(1e-4)
    rows = tracking_rows(before, after, UNITS)
    return Verification(
        results='2025-01-31T12:00:00+00:00',
        created='2025-02-01T12:00:00+00:00',
        controller='arm_controller',
        trajectory='0123456789ab',
        tracking=rows,
        efforts=(EffortRow('shoulder', 'N·m', 1 / 30, 0.2),),
        gains=GainTrial(False, 'the proposed gains are not better', OLD, OLD, rows),
        static=(JointStatics('shoulder', 'N·m', 10.0, 0.1, -0.2, 1 / 7, 0.5),),
        postures=3,
    )


@pytest.fixture
def results(found: Verification) -> Results:
    rows = tuple(Residual(joint, 0.02, 0.1, 5.0) for joint in JOINTS)
    return Results('arm', 'wls', found.results, JOINTS, (), (), rows, rows)


def test_write_then_read_is_the_identity(found: Verification, tmp_path: Path):
    back = read_verification(write_verification(tmp_path, found))
    assert back is not None
    assert back == found
    assert [row.ratio for row in back.tracking] == pytest.approx([30.0, 30.0])


def test_it_belongs_to_the_results_beside_it(
    found: Verification, results: Results, tmp_path: Path
):
    write_results(results, tmp_path)
    assert read_results(tmp_path).verification is None
    write_verification(tmp_path, found)
    assert read_results(tmp_path).verification.tracking == found.tracking
    # The same folder after another identification.
    write_results(dataclasses.replace(results, created='2025-03-01T12:00:00+00:00'), tmp_path)
    assert read_results(tmp_path).verification is None


@pytest.mark.parametrize(
    'change',
    [
        {'tracking': [{'joint': 'shoulder'}]},
        {'tracking': 3},
        {'gains': {'kept': 'yes'}},
        {'format': 2},
        {'unknown': 1},
    ],
)
def test_an_edited_file_is_damaged_in_one_sentence(
    change: dict[str, object], found: Verification, tmp_path: Path
):
    path = write_verification(tmp_path, found)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(FileError, match=f'{VERIFICATION}.*is damaged'):
        read_verification(path)


def test_the_report_shows_every_part(found: Verification, results: Results):
    assert 'On the robot' not in identification_page(results)
    page = identification_page(dataclasses.replace(results, verification=found))
    for text in ('On the robot', 'with feed-forward', '30.0', 'el&lt;bow', 'in 3 postures'):
        assert text in page
    assert 'The proposed gains are not better' in page
    assert 'wanted minus measured position' in page and 'el<bow' not in page
    reason = dataclasses.replace(found, tracking=(), reason='it takes no <effort>')
    page = identification_page(dataclasses.replace(results, verification=reason))
    assert 'it takes no &lt;effort&gt;' in page


def test_gains_are_parameters_of_their_controller(tmp_path: Path):
    path = write_gains(tmp_path / GAINS, '/arm1/arm_controller', OLD, 'gains for arm')
    content = yaml.safe_load(path.read_text())
    assert content == {'/arm1/arm_controller': {'ros__parameters': {'gains': OLD}}}
