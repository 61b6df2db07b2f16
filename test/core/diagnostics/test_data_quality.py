"""What data are like: noise; findings as values."""

import dataclasses
import pickle

import numpy as np
import pytest

from robotid_ros.core.diagnostics.data_quality import white_noise
from robotid_ros.core.findings import (
    as_data,
    CODES,
    finding,
    from_data,
    in_order,
    NAMES,
    render,
    Severity,
)
from robotid_ros.files.yaml import dump_yaml, parse_yaml


def test_white_noise_is_found_under_a_motion():
    time = np.arange(5000) * 1e-3
    motion = 10.0 * np.sin(2.0 * np.pi * np.outer(time, [0.5, 1.5]))
    noise = np.random.default_rng(0).normal(size=motion.shape) * [0.1, 0.3]
    assert white_noise(motion + noise) == pytest.approx([0.1, 0.3], rel=0.05)
    assert white_noise(motion[:2]) == pytest.approx([0.0, 0.0])


def test_what_matters_most_comes_first_and_once():
    info, warning, error = (
        finding('rows_interpolated'),
        finding('no_stamps'),
        finding('rows_interpolated', ['a']),
    )
    error = dataclasses.replace(error, severity=Severity.ERROR)
    found = in_order([info, warning, finding('no_stamps'), error])
    assert found == (error, warning, info)


def test_a_finding_is_a_value_wherever_it_goes():
    found = finding('hardly_moved', ['j1'], share=np.float64(0.01))
    assert (found.joints, found.values) == (('j1',), {'share': 0.01})
    again = found.of('a.csv')
    assert again.values['source'] == 'a.csv' and again.severity == found.severity
    assert again.of('DIDIM').values['source'] == 'DIDIM: a.csv'
    assert render(again) == f'a.csv: {render(found)}'
    for each in (found, again):
        assert pickle.loads(pickle.dumps(each)) == each
        assert from_data(parse_yaml(dump_yaml({'x': as_data(each)}), '')['x']) == each


def test_templates_repeat_and_leave_out():
    several = finding('logs_far_apart', logs=['a', 'b'], shares=[0.1, 0.2], own=[0.01, 0.02])
    assert 'a 10 % (alone 1 %), b 20 % (alone 2 %)' in render(several)
    with_unit = finding('effort_gain', ['j1'], factor=4.0, gains=(0.25,), unit='kN·m')
    assert 'as if it were in kN·m' in render(with_unit) and 'tried' not in render(with_unit)
    without = finding('effort_gain', ['j1'], factor=4.0, gains=(0.25,))
    assert 'as if' not in render(without) and '[[' not in render(without)


def test_codes_are_unique_and_say_all():
    assert len(CODES) == len(NAMES) and all(c.code[0] == 'F' for c in CODES.values())
    for code in CODES.values():
        texts = code.texts()
        assert texts['seen'] and texts['why'].endswith('.'), code.code
        assert texts['remedy'] or code.severity != Severity.ERROR, code.code


@pytest.mark.parametrize(
    'change', [{'values': {}}, {'severity': 'x'}, {'joints': None}, {'code': None}, {'values': 3}]
)
def test_damaged_findings_are_refused(change):
    data = as_data(finding('hardly_moved', ['j1'], share=0.01)) | change
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        from_data({k: v for k, v in data.items() if k != 'text'} | change)
