"""The reference and the torque on the controller's grid."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Waypoints
from robotid_ros.core.replay.replay_problem import (
    bandwidth,
    find_effort_delay,
    reference_on_grid,
    torque_on_grid,
)
from robotid_ros.core.signals.recording import Controller, Recording, Reference


def quintic(t):
    powers = t[:, None] ** np.arange(6)
    c = np.array([0.3, -0.2, 0.5, 0.4, -0.3, 0.1])
    slopes = c[1:] * np.arange(1, 6)
    bends = slopes[1:] * np.arange(1, 5)
    return tuple((powers[:, : x.size] @ x)[:, None] for x in (c, slopes, bends))


def test_hermite_is_exact_for_quintics():
    knots = np.sort(np.random.default_rng(0).uniform(0.0, 2.0, 12))
    at = np.linspace(knots[0], knots[-1], 101)
    points = Waypoints(('j',), knots - knots[0], *quintic(knots))
    for ours, exact in zip(points.sample(at - knots[0]), quintic(at), strict=True):
        np.testing.assert_allclose(ours, exact, atol=1e-9)


def test_jitter_repeats_and_losses_of_stamps_are_bridged():
    rng = np.random.default_rng(1)
    time = np.arange(1000) / 500.0 + rng.uniform(-2e-4, 2e-4, 1000)
    time = np.sort(np.concatenate([time[rng.uniform(size=1000) > 0.05], time[10:12]]))
    q, dq, ddq = np.sin(3 * time), 3 * np.cos(3 * time), -9 * np.sin(3 * time)
    recording = Recording(
        ('j',),
        time,
        q[:, None],
        q[:, None],
        reference=Reference(time, q[:, None], dq[:, None], ddq[:, None]),
    )
    start, desired = reference_on_grid(recording, 500.0)
    at = start + np.arange(len(desired.q)) / 500.0
    np.testing.assert_allclose(desired.q[:-1, 0], np.sin(3 * at[:-1]), atol=1e-9)
    np.testing.assert_allclose(desired.ddq[:-1, 0], -9 * np.sin(3 * at[:-1]), atol=1e-4)


@pytest.mark.parametrize('every', [1, 4])
def test_torque_is_taken_where_it_acted(every):
    command = np.random.default_rng(2).normal(size=(400, 1))
    stamps = 7.0 + (np.arange(400) + 1.0) / 200.0
    recording = Recording(('j',), stamps[::every], command[::every], command[::every])
    torque = torque_on_grid(recording, command[::every], 7.0, 400, 200.0, delay=1.0)
    assert torque.rate == 200.0 / every and torque.valid.all()
    np.testing.assert_allclose(torque.row, np.arange(0, 400, every), atol=1e-9)
    np.testing.assert_allclose(torque.tau, command[::every], atol=1e-9)


@pytest.mark.parametrize('every', [1, 4, 10])
def test_a_torque_from_before_the_reference_does_not_shift_the_rows(every):
    command = np.random.default_rng(2).normal(size=(400, 1))
    reported = np.vstack([np.zeros((1, 1)), command[:-1]])[::every]
    stamps = (7.0 + np.arange(400) / 200.0)[::every]
    torque = torque_on_grid(
        Recording(('j',), stamps, reported, reported), reported, 7.0, 400, 200.0, 1
    )
    np.testing.assert_allclose(torque.row, np.arange(every - 1, 399, every), atol=1e-9)
    np.testing.assert_allclose(torque.tau, command[every - 1 : 399 : every], atol=1e-9)


def test_gaps_are_left_out():
    stamps = np.arange(400) / 200.0
    kept = (np.arange(400) < 100) | (np.arange(400) > 140)
    effort = np.ones((kept.sum(), 1))
    recording = Recording(('j',), stamps[kept], effort, effort)
    torque = torque_on_grid(recording, effort, 0.0, 400, 200.0)
    lost = torque.row[~torque.valid]
    assert lost.min() >= 100 and lost.max() <= 141 and lost.size > 35


def test_bandwidth_of_a_sine_is_its_frequency():
    t = np.arange(20000)[:, None] / 500.0
    assert bandwidth(np.cos(5.0 * t), 500.0)[0] == pytest.approx(5.0, rel=0.1)


def test_acceleration_that_is_not_reported_follows_from_the_velocity():
    time = np.arange(1000)[:, None] / 500.0
    q, dq = np.sin(3 * time), 3 * np.cos(3 * time)
    recording = Recording(('j',), time[:, 0], q, q, reference=Reference(time[:, 0], q, dq, 0 * q))
    _, desired = reference_on_grid(recording, 500.0)
    np.testing.assert_allclose(desired.ddq[1:-1], -9 * q[1:-1], atol=1e-3)


@pytest.mark.parametrize('held', [0, 1, 2])
def test_delay_of_the_efforts_shows_in_the_commands(held):
    rng, time = np.random.default_rng(4), np.arange(1000) / 500.0
    command = np.cumsum(rng.normal(size=(1000, 1)), axis=0)
    reference = Reference(time, command, command, command, command)
    kind = 'joint_trajectory_controller/JointTrajectoryController'
    recording = Recording(
        ('j',),
        time,
        command,
        np.roll(command, held, axis=0),
        reference=reference,
        controller=Controller('c', kind, 500.0, ('j',), ('effort',)),
    )
    assert find_effort_delay(recording) == pytest.approx(held)
    silent = dataclasses.replace(recording, reference=None)
    assert find_effort_delay(silent) == 1.0
    log = dataclasses.replace(recording.controller, type='cascade')
    assert find_effort_delay(dataclasses.replace(silent, controller=log)) == 0.0
