"""The doctor's output, and what it is told wrongly; a live graph is in test/nodes/doctor."""

import sys

from robotid_ros.cli import doctor
from robotid_ros.cli.doctor import print_findings
from robotid_ros.nodes.doctor.findings import Finding, Severity, split_remedy


def test_findings_are_readable(capsys):
    long = ' '.join(['word'] * 40)
    found = [
        Finding(Severity.ERROR, 'efforts', 'there are none', 'publish them'),
        Finding(Severity.NOTE, 'network', long),
        Finding(Severity.OK, 'disk', 'full of room'),
        Finding(Severity.OK, 'clock', 'right'),
    ]
    print_findings(found)
    text = capsys.readouterr().out
    assert text.startswith(
        'error    efforts: there are none: publish them\nnote     network: word'
    )
    assert '\n         word' in text and max(map(len, text.split('\n'))) <= 80
    assert text.endswith(
        '\nok       disk: full of room; clock: right\n1 error, 0 warnings, 1 note\n'
    )


def test_a_remedy_stands_behind_the_last_colon():
    assert split_remedy('a: b\n c: do it') == ('a: b c', 'do it')
    assert split_remedy('nothing to do') == ('nothing to do', '')


def test_without_ros_one_sentence(run, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rclpy', None)
    code, out, err = run('doctor')
    assert (code, out) == (1, '') and err.startswith('robotid: the doctor needs ROS 2 (')


def test_an_empty_graph_is_an_error(run, domain, monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    monkeypatch.setattr(doctor, 'TIMEOUT', 0.5)
    code, out, err = run('doctor', '--duration', '0.1')
    assert (code, err) == (1, '')
    assert out.startswith(f'error    network: no other node is heard in ROS domain {domain}')


def test_wrong_arguments_are_told(run, monkeypatch):
    assert 'a number above zero' in run('doctor', '--duration', '0')[2]
    assert 'does not start' in run('doctor', '--namespace', '/a b')[2]
    assert "'a b' cannot be a controller" in run('doctor', '--controller', 'a b')[2]
    monkeypatch.setenv('ROS_DOMAIN_ID', 'abc')
    assert 'check --namespace, ROS_DOMAIN_ID' in run('doctor')[2]
