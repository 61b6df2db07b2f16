"""A robot that several tests may share."""

import pytest
from three_joint_robot import running


@pytest.fixture(scope='module')
def client():
    with running() as (_, client):
        yield client
