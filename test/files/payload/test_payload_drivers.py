"""Requests of drivers' services against their published interfaces, and what is typed by hand."""

import shlex
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from robotid_ros.core.parameters.carried_body import inertia_matrix
from robotid_ros.exceptions import ConfigurationError, FileError, RecordingError, RobotIdError
from robotid_ros.files.payload.makers import call_text, find_driver, MAKERS
from robotid_ros.files.payload.payload_file import read_body, read_sensor, write_body

BODY = np.array([1.5, 0.01, -0.02, 0.08, 0.011, 1e-5, -0.002, 0.012, 0.003, 0.013])
POINT = np.array([*BODY[:4], *[np.nan] * 6])
IMPOSSIBLE = np.array([*BODY[:4], 1.0, 0.0, 0.0, 0.1, 0.0, 0.1])  # inertia
MOMENTS = {'ixx': 0.011, 'ixy': 1e-5, 'ixz': -0.002, 'iyy': 0.012, 'iyz': 0.003, 'izz': 0.013}
CENTRE = {'x': 0.01, 'y': -0.02, 'z': 0.08}
# Fields of the requests as published, and their values for BODY.
REQUESTS = {
    'universal_robots': [
        {'mass': 1.5, 'center_of_gravity': CENTRE, **MOMENTS},
        {'payload': {'m': 1.5, 'com': CENTRE, **MOMENTS}},
        {'mass': 1.5, 'center_of_gravity': CENTRE},
    ],
    'franka': [
        {
            'mass': 1.5,
            'center_of_mass': [0.01, -0.02, 0.08],
            'load_inertia': [0.011, 1e-5, -0.002, 1e-5, 0.012, 0.003, -0.002, 0.003, 0.013],
        }
    ],
    'ufactory': [{'weight': 1.5, 'center_of_gravity': [10.0, -20.0, 80.0]}],
}


def state(maker, body):
    """Return a driver's message with this payload, by the fields that are published."""
    values = dict(zip(MOMENTS, body[4:], strict=True))
    com = SimpleNamespace(**dict(zip('xyz', body[1:4], strict=True)))
    if maker == 'franka':
        load = SimpleNamespace(m=body[0], com=com, **values)
        return SimpleNamespace(inertia_load=SimpleNamespace(inertia=load))
    pairs = {'mass': body[0], **{f'cog.{k}': getattr(com, k) for k in 'xyz'}}
    pairs |= {f'inertia.{k}': x for k, x in values.items()}
    group = SimpleNamespace(interface_names=[*pairs], values=[*pairs.values()])
    joint = SimpleNamespace(interface_names=['position'], values=[0.3])
    return SimpleNamespace(
        joint_names=['wrist_3_joint', 'arm_payload'], interface_values=[joint, group]
    )


@pytest.mark.parametrize('maker', REQUESTS)
def test_requests_have_the_published_fields_and_units(maker):
    driver = MAKERS[maker].driver
    assert [request(BODY) for request in driver.requests] == REQUESTS[maker]


@pytest.mark.parametrize('maker', ['universal_robots', 'franka'])
def test_what_is_set_is_read_back(maker):
    _, _, read = MAKERS[maker].driver.state
    np.testing.assert_array_equal(read(state(maker, BODY)), BODY)
    if maker == 'universal_robots':
        # Robots whose controller does not say the inertia.
        assert read(state(maker, POINT)) is None
        assert read(SimpleNamespace(joint_names=[], interface_values=[])) is None


@pytest.mark.parametrize('maker', REQUESTS)
def test_the_command_that_is_printed_calls_the_service(maker):
    driver = MAKERS[maker].driver
    words = shlex.split(call_text(driver, BODY, 'arm/set'))
    assert words[:5] == ['ros2', 'service', 'call', '/arm/set', driver.type] and len(words) == 6
    # By the YAML that `ros2 service call` reads.
    assert yaml.safe_load(words[5]) == driver.requests[0](BODY)


def test_an_unknown_inertia_is_that_of_a_point_where_the_driver_needs_none():
    words = shlex.split(call_text(MAKERS['universal_robots'].driver, POINT))
    assert yaml.safe_load(words[5]) == {
        'mass': 1.5, 'center_of_gravity': CENTRE, **dict.fromkeys(MOMENTS, 0.0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ('maker', 'frame', 'body', 'sentence'),
    [
        ('universal_robots', 'arm_tool0', BODY, 'where it is, type ros2 service call /io_and_'),
        ('universal_robots', 'flange', BODY, "is in 'flange', universal_robots takes it in tool0"),
        ('franka', 'fr3_link8', POINT, 'needs values that the motion does not determine'),
        ('universal_robots', 'tool0', IMPOSSIBLE, 'no body has such an inertia'),
        ('ufactory', 'link_eef', POINT, 'xarm_msgs is not installed here'),
        ('kuka', 'tool0', BODY, 'paste LOAD_DATA'),
        ('kinova', 'end_effector_link', POINT, 'paste tool = control_config'),
        ('universal_robot', 'tool0', BODY, "did you mean 'universal_robots'?"),
    ],
)
def test_what_cannot_be_set_is_refused_with_the_remedy(maker, frame, body, sentence):
    with pytest.raises(RobotIdError, match=r'^[^\n]+$') as refusal:
        find_driver(maker, frame, body)
    assert sentence in str(refusal.value)


def test_a_body_is_stored_and_read_again(tmp_path):
    nothing = np.zeros(10)
    for name, body in (('whole', BODY), ('point', POINT), ('unknown', None), ('no', nothing)):
        path = write_body(tmp_path / f'{name}.yaml', 'tool0', body, {'maker': 'franka'})
        frame, found, content = read_body(path)
        assert (frame, content['maker']) == ('tool0', 'franka')
        np.testing.assert_array_equal(found, np.full(10, np.nan) if body is None else body)
    with pytest.raises(FileError):
        write_body(path, 'tool0', BODY, {})
    # Zeros beside one known moment are the inertia of no body: it is a point.
    partly = write_body(tmp_path / 'partly.yaml', 'tool0', np.array([*BODY[:5], *POINT[5:]]), {})
    np.testing.assert_array_equal(read_body(partly)[1], [*BODY[:4], *POINT[4:]])


@pytest.mark.parametrize(
    ('text', 'error'),
    [
        ('format: 1\nframe: tool0\n', FileError),
        ('[1, 2]\n', FileError),
        ('format: 1\nmass: 1\ncentre_of_mass: [0]\ninertia_at_centre: {}\n', FileError),
        ('a: [\n', ConfigurationError),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, text, error):
    (tmp_path / 'x.yaml').write_text(text)
    with pytest.raises(error, match=r'x\.yaml'):
        read_body(tmp_path / 'x.yaml')
    with pytest.raises(error, match=r'x\.yaml'):
        read_sensor(tmp_path / 'x.yaml')


def test_a_mass_within_its_sigma_is_not_set(tmp_path):
    path = write_body(tmp_path / 'x.yaml', 'tool0', BODY, {'sigma': {'mass': 0.6}})
    with pytest.raises(RecordingError, match='does not stand out'):
        read_body(path)


def test_the_matrix_is_symmetric():
    np.testing.assert_array_equal(inertia_matrix(BODY), inertia_matrix(BODY).T)
