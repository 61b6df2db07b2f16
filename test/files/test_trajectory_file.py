"""A design on disk comes back bit for bit, and a damaged one does not come back at all."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.design import Design
from robotid_ros.core.excitation.limits import Usage
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.findings import finding
from robotid_ros.exceptions import FileError, TrajectoryError
from robotid_ros.files.trajectory_file import dump_design, read_design, save_design, write_design

NUMBER = st.floats(-1e300, 1e300, allow_nan=False)


def make(numbers=(0.1, 1e-300, -1 / 3, 7.0), validation=True):
    trajectory = Trajectory(
        ('a', 'true'), 'bspline', 0.1 + 0.2, 2, np.array(numbers[:2]), np.resize(numbers, (2, 2))
    )
    two = tuple(numbers[:2])
    return Design(
        trajectory=trajectory,
        validation=trajectory if validation else None,
        criterion='condition',
        value=numbers[2],
        columns=('ZZ1', 'Fv1'),
        condition_numbers={'raw': numbers[3]},
        usage=Usage(two, two, two, two, two, None),
        limits={'velocity': two},
        seed=3,
        evaluations=7,
        elapsed=1.5,
        notes=(finding('overlapping', pairs=('a: b',)),),
    )


@given(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), st.booleans())
@settings(max_examples=50, deadline=None)
def test_round_trip_is_exact(tmp_path_factory, numbers, validation):
    design = make(numbers, validation)
    again = read_design(write_design(tmp_path_factory.getbasetemp() / 'round.yaml', design))
    assert again == design
    assert again.trajectory.hash == design.trajectory.hash


def test_file_round_trip(tmp_path):
    path = tmp_path / 'folder' / 'trajectory.yaml'
    write_design(path, make())
    assert read_design(path) == make()
    with pytest.raises(FileError, match='exists already'):
        write_design(path, make(), overwrite=False)


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        ('period: 0.30000000000000004', 'period: 0.3'),
        ('format: robotid_ros/trajectory/1', 'format: other'),
        ('family: bspline', 'family: waves'),
        ('evaluations: 7\n', ''),
        ('seed: 3', 'seed: 3: 4'),
        ('usage:', 'uses:'),
    ],
)
def test_changed_files_are_refused(tmp_path, old, new):
    path = tmp_path / 'trajectory.yaml'
    text = dump_design(make())
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises((TrajectoryError, KeyError)) as caught:
        read_design(path)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('text', ['', '[]', 'just text', 'a: [1'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / 'trajectory.yaml'
    path.write_text(text)
    with pytest.raises(TrajectoryError):
        read_design(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match='nowhere'):
        read_design(tmp_path / 'nowhere.yaml')


def test_saved_designs_replace_nothing(tmp_path):
    folder = tmp_path / 'new'
    first = save_design(folder, 'arm', make())
    assert first.name == f'arm_trajectory_{make().trajectory.hash}.yaml'
    assert save_design(folder, 'arm', make()) == first
    # The same motion with another evidence, and a file of somebody else's.
    other = save_design(folder, 'arm', make(validation=False))
    assert other != first and read_design(first) == make()
    assert read_design(other) == make(validation=False)
    assert len(list(folder.iterdir())) == 2
