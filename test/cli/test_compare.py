"""`robotid compare` and the page of `robotid validate`."""

import dataclasses
import re

import pytest

from robotid_ros.files.results import Comparison, differences, read_results, write_results


@pytest.fixture(scope='module')
def identified(tmp_path_factory, results_of_bag):
    return results_of_bag(tmp_path_factory.mktemp('identified') / 'first', 'wls')


def test_differences_are_over_their_sigma(run, identified, tmp_path):
    results = read_results(identified)
    moved = tuple(
        dataclasses.replace(e, value=e.value + 3.0 * e.sigma, sigma=e.sigma) for e in results.base
    )
    write_results(dataclasses.replace(results, base=moved), tmp_path / 'second')
    code, out, err = run('compare', identified, tmp_path / 'second')
    assert (code, err) == (0, '') and re.search('first +second', out)
    assert out.count(f'{3.0 / 2**0.5:+.2f}') == len(results.base)
    found = differences(results.base, moved[1:])
    assert [each.name for each in found] == [entry.name for entry in results.base[1:]]


def test_another_method_counts_as_a_result(run, identified, tmp_path):
    results = read_results(identified)
    other = Comparison('didim', results.base, results.identification)
    write_results(dataclasses.replace(results, compared=other), tmp_path / 'both')
    code, out, _ = run('compare', tmp_path / 'both')
    assert code == 0 and 'both, DIDIM' in out
    code, _, err = run('compare', identified)
    assert code == 1 and 'has one result' in err
    code, _, err = run('compare', identified, tmp_path / 'none')
    assert code == 1 and 'no such file' in err and err.count('\n') == 1


def test_validate_writes_a_page(run, bag, identified, tmp_path):
    page = tmp_path / 'v.html'
    code, _, err = run('validate', bag, '--parameters', identified, '-o', page)
    assert (code, err) == (0, '')
    text = page.read_text()
    for shown in ('robot description', 'identified.urdf', 'base parameters', 'robotid validate'):
        assert shown in text
    run('validate', bag, '--parameters', identified, '--force')
    assert (identified / f'validation_{bag.name}.html').exists()


def test_no_page_is_replaced_unless_asked_to(run, bag, identified, tmp_path):
    page = tmp_path / 'page.html'
    command = 'validate', bag, '--parameters', identified, '-o', page
    page.write_text('kept')
    code, _, err = run(*command)
    assert code == 1 and 'add --force' in err and err.count('\n') == 1
    assert page.read_text() == 'kept'
    assert run(*command, '--force')[0] == 0
    assert page.read_text() != 'kept'
