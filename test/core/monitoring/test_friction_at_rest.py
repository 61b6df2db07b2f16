"""What is known of friction at rest: all after a slide, less and less from then on."""

import numpy as np
import pytest

from robotid_ros.core.monitoring.external_effort import FORGOTTEN, FrictionAtRest

WIDTH, H = np.array([6.0, 2.0]), 0.01
LARGEST = WIDTH / np.sqrt(12.0)


def after(memory, seconds, dq=(0.0, 0.0), effort=(0.0, 0.0)):
    for _ in range(round(seconds / H)):
        sigma = memory.sigma(np.array(dq), np.array(effort), WIDTH, H)
    return sigma


def test_a_joint_that_has_never_moved_may_have_any_friction():
    assert after(FrictionAtRest(np.eye(2), 0.01), H) == pytest.approx(LARGEST)


def test_friction_is_known_after_a_slide_and_forgotten_with_time():
    memory = FrictionAtRest(np.eye(2), 0.01)
    assert after(memory, 0.1, dq=(0.1, -0.1), effort=(3.0, 1.0)).tolist() == [0.0, 0.0]
    assert (after(memory, 0.2, effort=(3.0, 1.0)) < 0.05 * LARGEST).all()
    # What an effort changes by at rest may be friction, but no more than there is of it.
    some, much = after(memory, H, effort=(3.5, 9.0))
    assert some == pytest.approx(0.5, rel=0.02) and much == pytest.approx(LARGEST[1])
    late = after(memory, FORGOTTEN, effort=(3.0, 1.0))
    assert late == pytest.approx(LARGEST * (1.0 - np.exp(-1.04)), rel=0.02)
    assert after(memory, H, dq=(0.1, 0.0), effort=(3.0, 1.0))[0] == 0.0


def test_a_joint_slides_with_all_of_its_drives():
    drives = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    memory = FrictionAtRest(drives, 0.01)
    assert after(memory, H, dq=(0.1, 0.1)).tolist() == [0.0, 0.0]
    memory = FrictionAtRest(drives, 0.01)
    assert after(memory, H, dq=(0.1, -0.1)) == pytest.approx(LARGEST)
