"""Delays of efforts: how long a controller holds them, and which of them are believed."""

import dataclasses

import numpy as np
from plant_recording import arm, JOINTS, plant
import pytest
from scipy.interpolate import CubicSpline

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.regression.delays import (
    _is_less,
    _reject_outliers,
    hold_delay,
    is_significant,
    LONGEST_DELAY,
    prepare_without_delay,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.signals.recording import Controller, Recording, Reference, SignalSettings

PERIOD = 1e-3


def recording(lag, noise=0.0, dropped=0.0):
    """Return 2 s of states at 500 Hz whose efforts are the commands of `lag` updates before."""
    rng = np.random.default_rng(0)
    stamps = PERIOD * np.arange(2000)
    command = 10.0 * np.sin(2 * np.pi * 1.5 * stamps) + 0.2 * rng.normal(size=2000)
    rows = np.arange(10, 2000, 2)
    effort = command[rows - lag] + noise * rng.normal(size=rows.size)
    kept = rng.uniform(size=2000) >= dropped
    return Recording(
        ('a',),
        stamps[rows] + rng.uniform(20e-6, 40e-6, rows.size),
        np.zeros((rows.size, 1)),
        effort[:, None],
        reference=Reference(
            stamps[kept], *np.zeros((3, kept.sum(), 1)), command=command[kept, None]
        ),
        controller=Controller('arm', 'jtc', 1.0 / PERIOD, ('a',), ('effort',)),
    )


@pytest.mark.parametrize('lag', [0, 1, 2, 3])
@pytest.mark.parametrize('noise, dropped', [(0.0, 0.0), (0.3, 0.02)])
def test_a_held_command_acts_half_a_period_after_it_was_given(lag, noise, dropped):
    assert hold_delay(recording(lag, noise, dropped)) == pytest.approx((lag - 0.5) * PERIOD)


@pytest.mark.parametrize('lag', [0, 1, 2])
@pytest.mark.parametrize('updates', [2, 8])
def test_a_controller_slower_than_its_hardware_holds_no_longer(updates, lag):
    """The states show the command of so many of their own periods before."""
    stamps = PERIOD * np.arange(4000)
    command = 10.0 * np.sin(2 * np.pi * 1.5 * stamps)[::updates]
    rows = np.arange(10, 4000)
    slow = Recording(
        ('a',),
        stamps[rows] + np.random.default_rng(0).uniform(20e-6, 40e-6, rows.size),
        np.zeros((rows.size, 1)),
        command[(rows - lag) // updates, None],
        reference=Reference(
            stamps[::updates], *np.zeros((3, command.size, 1)), command=command[:, None]
        ),
        controller=Controller('arm', 'jtc', 1.0 / (updates * PERIOD), ('a',), ('effort',)),
    )
    assert hold_delay(slow) == pytest.approx((lag - 0.5) * PERIOD, rel=1e-3)


def test_measured_torque_that_is_no_command_is_left_alone():
    assert hold_delay(recording(1, noise=5.0)) is None


@pytest.mark.parametrize('age', [-2e-3, 0.0, 2e-3])
def test_what_a_hold_does_not_explain_is_estimated(age):
    """Hardware whose positions are older than their stamps, or newer."""
    plain = plant().recording
    held = dataclasses.replace(
        plain,
        position=CubicSpline(plain.time, plain.position)(plain.time - age),
        reference=Reference(
            plain.time - PERIOD, *np.zeros((3, *plain.effort.shape)), command=plain.effort
        ),
        controller=Controller('arm', 'jtc', 1.0 / PERIOD, JOINTS, ('effort',)),
    )
    robot = arm()
    base = base_parameters(robot)
    signals = SignalSettings(cutoff=10.0, rows='moving')
    found = prepare_without_delay(held, robot, base, signals)
    system, delays, notes = found.system, found.delays, found.notes
    assert list(delays.values()) == pytest.approx([0.5 * PERIOD - age] * 3, abs=0.25e-3)
    assert len(notes) == (2 if age else 1)
    truth = plant().base(robot)['Fv2']
    # A millisecond makes it wrong by 7 %.
    assert fit(system).value[base.names.index('Fv2')] == pytest.approx(truth, rel=0.02)


def test_the_common_delay_is_the_mean_by_inverse_variances():
    delay, sigma = np.array([1.0e-3, 2.0e-3, 1.6e-3]), np.array([1e-4, 2e-4, np.inf])
    common, common_sigma, outlier = _reject_outliers(delay, sigma)
    assert not outlier.any()
    assert common == pytest.approx((4.0 * 1.0e-3 + 2.0e-3) / 5.0)
    assert common_sigma == pytest.approx(1e-4 / np.sqrt(1.25))


@pytest.mark.parametrize('sign', [1.0, -1.0])
@pytest.mark.parametrize(
    ('own', 'sigma', 'told'),
    [
        (12e-3, 1e-3, True),  # eleven from the others, and their σ is small
        (12e-3, 3.4e-3, False),  # less than four σ
        (4.5e-3, 1e-4, False),  # nearer to the others than what counts
        (LONGEST_DELAY + 5e-3, 1e-2, True),  # five σ, though no delay of a bus
    ],
)
def test_a_joint_is_an_outlier_that_is_far_and_known_well(sign, own, sigma, told):
    delay = sign * np.array([1e-3, 1e-3, own])
    known = np.array([1e-3, 1e-3, sigma])
    common, _, outlier = _reject_outliers(delay, known)
    assert outlier.tolist() == [False, False, told]
    if told:
        assert common == pytest.approx(sign * 1e-3)


@pytest.mark.parametrize('late', [0.0, 12e-3])
def test_what_is_later_than_any_delay_makes_no_other_joint_late(late):
    """The error of one joint's model, known well, is in the mean that others are held against."""
    delay = np.array([1e-3, 1e-3, 1e-3 + late, 4.0 * LONGEST_DELAY])
    common, sigma, outlier = _reject_outliers(delay, np.full(4, 1e-4))
    assert outlier.tolist() == [False, False, late > 0.0, True]
    assert common == pytest.approx(1e-3)
    assert sigma == pytest.approx(1e-4 / np.sqrt(3.0 - (late > 0.0)))


def test_the_deviation_counts_the_error_of_the_others_too():
    """Two of σ = 2 ms have a mean of 1.4 ms: 10 ms away are 4.08 of both, 9.6 ms 3.9."""
    known = np.array([2e-3, 2e-3, 2e-3])
    for own, told in ((10.0e-3, True), (9.6e-3, False)):
        outlier = _reject_outliers(np.array([0.0, 0.0, own]), known)[2]
        assert outlier[2] == told and not outlier[:2].any()


@pytest.mark.parametrize('units', [[1.0, 1.0], [1.0, 1e6]])
def test_errors_are_less_by_more_than_their_standard_error_over_blocks(units):
    """A gain of g ± s in eight blocks: its standard error is s/√8. One joint loses half of it."""
    others = np.ones((8, 2)) * units
    noise = np.array([1.0, -1.0] * 4)[:, None] * np.sqrt(7.0 / 8.0)
    for gain, less in ((1.1, True), (0.9, False), (-2.0, False)):
        errors = others * (1.0 - 0.01 * (gain / np.sqrt(8.0) + noise) * [2.0, -1.0])
        assert _is_less(errors, others) == less


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_a_delay_counts_between_its_sigma_a_part_of_a_sample_and_the_longest(sign):
    assert is_significant(sign * 1e-3, 1e-4, 1000.0)
    assert not is_significant(sign * 1e-3, 2e-4, 1000.0)  # five σ
    assert not is_significant(sign * 1e-4, 1e-6, 200.0)  # a fiftieth of a sample
    assert is_significant(sign * 4e-4, 1e-6, 200.0)
    assert not is_significant(sign * 1.1 * LONGEST_DELAY, 1e-6, 1000.0)


@pytest.mark.parametrize('units', [1e-2, 1.0, 1e3])
def test_a_command_matches_within_a_tenth_of_its_size_in_any_unit(units):
    for noise, known in ((0.4, True), (1.0, False)):  # of 7 rms
        made = recording(1, noise=noise)
        reference = dataclasses.replace(made.reference, command=units * made.reference.command)
        made = dataclasses.replace(made, effort=units * made.effort, reference=reference)
        assert (hold_delay(made) is not None) == known


def test_without_commands_of_efforts_nothing_is_known_of_their_hold():
    made = recording(1)
    effort = made.effort.copy()
    effort[500] = np.nan
    short = made.between(0.0, 0.15)
    for other in (
        dataclasses.replace(made, reference=None),
        dataclasses.replace(made, controller=None),
        dataclasses.replace(made, reference=dataclasses.replace(made.reference, command=None)),
        dataclasses.replace(made, controller=Controller('arm', 'jtc', 0.0, ('a',), ('effort',))),
        dataclasses.replace(made, controller=Controller('arm', 'j', 1e3, ('a',), ('position',))),
        dataclasses.replace(made, effort=effort),
        short,
    ):
        assert hold_delay(other) is None
    unknown = dataclasses.replace(made, controller=Controller('arm', 'jtc', 1e3, ('a',), ()))
    assert hold_delay(unknown) == pytest.approx(0.5e-3)
