"""`robotid explain` prints the entry of a finding, by code or name."""

import json

import pytest

from robotid_ros.core.findings import CODES


@pytest.mark.parametrize('word', ['F401', 'f401', 'effort_sign'])
def test_an_entry_is_printed_by_code_or_name(run, word):
    code, out, err = run('explain', word)
    assert (code, err) == (0, '') and out.startswith('F401 effort_sign, error\n')
    assert '\nwhy      ' in out and '\nremedy   Set robot.drive_gain' in out


@pytest.mark.parametrize(('word', 'near'), [('efort_sign', 'effort_sign'), ('G401', 'F401')])
def test_an_unknown_one_gets_the_nearest(run, word, near):
    code, _, err = run('explain', word)
    assert code == 1 and f"unknown finding '{word}': did you mean '{near}'?" in err


def test_all_are_listed(run):
    assert [each['code'] for each in json.loads(run('explain', '--json')[1])] == [*CODES]
    out = run('explain')[1]
    assert all(code in out for code in CODES)
