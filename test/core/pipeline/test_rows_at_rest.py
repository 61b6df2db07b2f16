"""Rows at rest count where the model describes them, and are left out where they mislead it."""

from dataclasses import replace

import numpy as np
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.pipeline.choices import choose_model
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RobotIdError

from ..conftest import motion, RATE, URDF

MOVES, RESTS, STOPS = 4.0, 1.0, 6  # [s], [s], and how many


@pytest.fixture(scope='module')
def robot_of_open_friction():
    robot = build_robot(URDF, RobotSettings())
    assert any(robot.open_friction)
    return robot


@pytest.fixture(scope='module')
def with_stops(robot, truth):
    """
    Make a log that stops often.

    `held` gives the friction of each stop over Coulomb's (n,), `dry` that of the first joint over
    what it is else.
    """

    def make(held, seed=0, dry=1.0):
        cycle = MOVES + RESTS
        time = np.arange(round(STOPS * cycle * RATE)) / RATE
        number, x = np.floor(time / cycle), np.clip(time % cycle / MOVES, 0.0, 1.0)
        place = MOVES * (number + x**3 * (10.0 - 15.0 * x + 6.0 * x**2))
        speed = 30.0 * x**2 * (1.0 - x) ** 2
        change = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / MOVES
        q, dq, ddq = motion(place, seed)
        ddq, dq = ddq * speed[:, None] ** 2 + dq * change[:, None], dq * speed[:, None]
        places = [robot.column(f'Fc{j}') for j in (1, 2, 3)]
        chi = truth.copy()
        chi[places[0]] *= dry
        tau, coulomb = inverse_dynamics(robot, chi, q, dq, ddq), chi[places]
        resting = x == 1.0
        last = np.sign(motion(MOVES * (number + 1.0), seed)[1])
        tau[resting] += (coulomb * held(last, number.astype(int)))[resting]
        tau += 0.01 * tau.std(axis=0) * np.random.default_rng(seed + 9).normal(size=tau.shape)
        return Recording(robot.joints, time, q, tau)

    return make


def any_value(last, number):
    """Return friction that is any at each stop."""
    return np.random.default_rng(3).uniform(-1.0, 1.0, (STOPS, 3))[number]


def kept(last, number):
    """Return friction that stays as it was, as of springs that do not slip back."""
    return last


def test_friction_at_rest_that_no_motion_tells_is_left_out(with_stops, robot_of_open_friction):
    log, other = with_stops(any_value), with_stops(any_value, seed=4)
    choice = choose_model(log, robot_of_open_friction, IdentificationSettings())
    assert choice.settings.signals.rows == 'moving' and choice.mixed.signals.rows == 'moving'
    found = identify(log, robot_of_open_friction, IdentificationSettings(), other)
    assert found.validation.moving_residual.max() < 0.03


def test_a_joint_with_much_dry_friction_does_not_hide_what_it_does_to_the_others(
    with_stops, robot_of_open_friction
):
    log, other = with_stops(any_value, dry=1e3), with_stops(any_value, seed=4, dry=1e3)
    found = identify(log, robot_of_open_friction, IdentificationSettings(), other)
    assert found.validation.moving_residual.max() < 0.03


def test_friction_at_rest_that_presliding_describes_counts(with_stops, robot_of_open_friction):
    choice = choose_model(with_stops(kept), robot_of_open_friction, IdentificationSettings())
    assert choice.settings.signals.rows == 'every'


def test_rows_that_are_asked_for_are_not_chosen(with_stops, robot_of_open_friction):
    settings = IdentificationSettings()
    asked = replace(settings, signals=replace(settings.signals, rows='every'))
    choice = choose_model(with_stops(any_value), robot_of_open_friction, asked)
    assert choice.settings.signals.rows == 'every'


@pytest.mark.parametrize('count', [10, 40, 70, 100])
def test_a_log_that_is_too_short_for_folds_ends_in_a_sentence(
    with_stops, robot_of_open_friction, count
):
    log = with_stops(kept)
    short = log.between(float(log.time[100]), float(log.time[100 + count]))
    with pytest.raises(RobotIdError):
        identify(short, robot_of_open_friction, IdentificationSettings())
