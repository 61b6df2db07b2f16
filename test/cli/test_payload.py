"""`robotid payload`: the difference of two recordings."""

import pytest
import yaml


def test_a_payload_is_found_and_written(run, bag, loaded, body, tmp_path):
    file = tmp_path / 'body.yaml'
    code, out, err = run('payload', bag, loaded, '-o', file)
    assert (code, err) == (0, '')
    content = yaml.safe_load(file.read_text())
    assert (content['robot'], content['frame']) == ('scara', 'joint_2')
    for symbol, value in body.items():
        entry = content['parameters'][symbol]
        assert abs(entry['value'] - value) < 4.0 * entry['sigma'] < 0.2 * abs(value)
    assert content['mass'] == pytest.approx(2.0, rel=0.02)
    assert content['centre_of_mass'][:2] == pytest.approx([0.2, -0.05], abs=0.01)
    own = content['inertia_at_centre']['zz']
    assert own == pytest.approx(body['ZZ'] - 2.0 * (0.2**2 + 0.05**2), abs=0.01)
    # The arm is horizontal: nothing shows these.
    assert content['parameters']['XX']['sigma'] == float('inf')
    assert 'does not tell XX' in out and 'mass 2' in out and str(file) in out


def test_no_payload_is_said_so(run, bag, tmp_path):
    code, out, _ = run('payload', bag, bag, '-o', tmp_path / 'none.yaml')
    assert code == 0 and 'does not stand out of its σ' in out


def test_what_is_missing_is_named(run, bag, tmp_path):
    for arguments in ((bag, tmp_path / 'none'), (tmp_path / 'none', bag)):
        code, out, err = run('payload', *arguments, '-o', tmp_path / 'x.yaml')
        assert (code, out) == (1, '') and 'there is no recording at' in err
    (tmp_path / 'file').write_text('')
    code, _, err = run('payload', bag, bag, '-o', tmp_path / 'file' / 'x.yaml')
    assert code == 1 and err.count('\n') == 1 and 'a bug' not in err
