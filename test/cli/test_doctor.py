"""The doctor's output; a live graph is in test/nodes/doctor."""

import sys

from robotid_ros.cli import doctor
from robotid_ros.cli.doctor import print_findings
from robotid_ros.core.findings import finding


def test_findings_are_readable(capsys):
    found = [
        finding('joints_lacking', ['joint_1'], published=('a', 'b')),
        finding('no_manager'),
        finding('disk_space', free=9.0, folder='/bags'),
        finding('clocks_agree', clock='/clock'),
    ]
    print_findings(found)
    text = capsys.readouterr().out
    assert text.startswith('error    joint states: The joint states lack joint_1, they name a, b.')
    assert '\ninfo     hardware: No controller_manager is heard,' in text
    assert max(map(len, text.split('\n'))) <= 80
    assert text.endswith(
        "\nok       disk: 9.0 GB are free for '/bags'; clock: Stamps agree with /clock\n"
        '1 error, 0 warnings, 1 info\n'
    )


def test_without_ros_one_sentence(run, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rclpy', None)
    code, out, err = run('doctor')
    assert (code, out) == (1, '') and err.startswith('robotid: the doctor needs ROS 2 (')


def test_an_empty_graph_is_an_error(run, domain, monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    monkeypatch.setattr(doctor, 'TIMEOUT', 0.5)
    code, out, err = run('doctor', '--duration', '0.1')
    assert (code, err) == (1, '')
    assert out.startswith(f'error    network: No other node is heard in ROS domain {domain}')


def test_wrong_arguments_are_told(run, monkeypatch):
    assert 'a number above zero' in run('doctor', '--duration', '0')[2]
    assert 'does not start' in run('doctor', '--namespace', '/a b')[2]
    assert "'a b' cannot be a controller" in run('doctor', '--controller', 'a b')[2]
    monkeypatch.setenv('ROS_DOMAIN_ID', 'abc')
    assert 'check --namespace, ROS_DOMAIN_ID' in run('doctor')[2]
