"""Gains that a trial on the robot found not better are not set by another way."""

from pathlib import Path

import pytest

from robotid_ros.exceptions import ControllerError
from robotid_ros.files.verification import GainTrial, TrackingRow, Verification, write_verification
from robotid_ros.nodes.identification.gain_proposal import ANYWAY, check_trial

CREATED = '2025-01-31T12:00:00+00:00'
ROWS = (
    TrackingRow('a', 'rad', 1e-3, 2e-3, 1e-2, 2e-2),
    TrackingRow('b', 'm', 1e-3, 9e-4, 1e-2, 1e-2),
)


def test_a_trial_that_failed_is_told_with_its_figures(tmp_path: Path):
    check_trial(tmp_path, CREATED)
    worse = GainTrial(False, 'not better', {}, {}, ROWS)
    write_verification(tmp_path, Verification(CREATED, gains=worse))
    with pytest.raises(ControllerError) as caught:
        check_trial(tmp_path, CREATED)
    for words in ('a 0.001 before, 0.002 rad with them', 'b 0.001 before, 0.0009 m', ANYWAY):
        assert words in str(caught.value)


def test_a_trial_that_went_well_or_is_of_other_results_forbids_nothing(tmp_path: Path):
    kept = GainTrial(True, 'better', {}, {}, ROWS)
    write_verification(tmp_path, Verification(CREATED, gains=kept))
    check_trial(tmp_path, CREATED)
    worse = GainTrial(False, 'not better', {}, {}, ROWS)
    write_verification(tmp_path, Verification('another time', gains=worse))
    check_trial(tmp_path, CREATED)
