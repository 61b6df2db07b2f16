"""When a reported effort acted: commands are held, and hardware reports them updates later."""

import dataclasses

import numpy as np
from plant_recording import arm, JOINTS, plant
import pytest
from scipy.interpolate import CubicSpline

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.regression.delays import hold_delay, prepare_without_delay
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.signals.recording import Controller, Recording, Reference
from robotid_ros.core.signals.samples import SignalSettings

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
