"""Which rows count: what was measured, away from standstill where friction needs that."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import FRICTION_TERMS
from robotid_ros.core.model.settings import CoupledMotorSettings
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import EDGE_PERIODS, prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings

from ..conftest import motion, URDF

RATE, SPEED = 200.0, 0.8


def moved(scale=1.0):
    """Record joints that turn round every second, the third one never."""
    time = np.arange(0.0, 20.0, 1.0 / RATE)
    wave = np.sin(np.pi * time) * SPEED / np.pi
    position = scale * np.column_stack([wave, wave, 0.0 * wave])
    effort = np.random.default_rng(0).normal(size=position.shape)
    return Recording(('j1', 'j2', 'j3'), time, position, effort)


def samples(friction, recording=None, **signals):
    robot = build_robot(URDF, RobotSettings(friction={'default': friction}))
    settings = SignalSettings(**{'cutoff': 20.0, 'rows': 'smooth', **signals})
    return prepare(recording or moved(), robot, settings)


def turns(found):
    """Return the distance [s] of each sample from where the joints turn round, at n + 1/2."""
    return np.abs((found.time % 1.0) - 0.5)


@pytest.mark.parametrize('band', [5.0, 10.0, 20.0])
def test_friction_with_a_step_leaves_out_rows_that_hold_a_standstill(band):
    smooth = samples(('viscous', 'smooth_coulomb'), band=band)
    stepped = samples(('viscous', 'coulomb'), band=band)
    assert smooth.decimation == stepped.decimation == int(0.4 * RATE / band)
    inner = (smooth.time > 0.5) & (smooth.time < 19.5)
    assert smooth.valid[inner, :2].all() and not smooth.valid[:, 2].any()
    # A joint turns round between the samples of a kept row, and slowly a moment before and after.
    slow = SignalSettings().standstill / (SPEED * np.pi)
    near = turns(stepped) <= slow + stepped.decimation // 3 / RATE
    margin = np.abs(turns(stepped) - slow - stepped.decimation // 3 / RATE) < 1.5 / RATE
    np.testing.assert_array_equal(
        stepped.valid[inner & ~margin, :2], np.column_stack([~near] * 2)[inner & ~margin]
    )


def test_rows_beside_standstill_are_left_out_of_moving_rows():
    every, moving = samples(('coulomb',)), samples(('coulomb',), rows='moving')
    assert not np.any(moving.valid & ~every.valid)
    assert moving.valid.sum() < every.valid.sum()


def test_a_slow_axis_moves_too():
    """Linear axes are ten times slower than joints turn: standstill is a share of their speed."""
    slow = samples(('viscous', 'coulomb'), moved(0.04))
    assert slow.valid[:, :2].mean() > 0.75
    # Not so an axis that never moves but for noise.
    noise = np.random.default_rng(1).normal(scale=1e-6, size=(4000, 3))
    still = moved(0.1)
    still = Recording(
        still.joints, still.time, noise + [[1.0, 0, 0]] * still.position, still.effort
    )
    assert not samples(('viscous', 'coulomb'), still).valid[:, 1:].any()


def test_the_band_decides_the_decimation_and_not_the_positions():
    wide, narrow = samples(('viscous',), band=0.0), samples(('viscous',), band=5.0)
    assert (wide.decimation, narrow.decimation) == (4, 16)
    assert wide.cutoff == narrow.cutoff == 20.0
    np.testing.assert_array_equal(wide.ddq, narrow.ddq)
    assert samples(('viscous',), band=50.0).decimation == 4  # never above the cut-off


def variances(term, rows):
    """Return the variances of a joint's friction under white noise, by symbol, and the samples."""
    robot = build_robot(URDF, RobotSettings(friction={'default': ('viscous', term, 'offset')}))
    time = np.arange(0.0, 20.0, 1.0 / RATE)
    q, dq, ddq = motion(time, seed=3)
    rng = np.random.default_rng(4)
    chi = np.where(robot.prior == 0.0, 0.5, robot.prior)
    tau = inverse_dynamics(robot, chi, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
    base = base_parameters(robot)
    settings = SignalSettings(cutoff=10.0, rows=rows)
    estimate = fit(
        observe(prepare(Recording(robot.joints, time, q, tau), robot, settings), robot, base)
    )
    k = [estimate.names.index(f'{s}2') for s in FRICTION_TERMS[term].symbols]
    error = (estimate.value - base.of(chi))[k]
    return np.diag(estimate.classical)[k], error


@pytest.mark.parametrize('term', ['stiction', 'makkar'])
def test_rows_near_standstill_are_kept_for_friction_with_a_shape_there(term):
    (default, error), (moving, _) = variances(term, 'auto'), variances(term, 'moving')
    assert np.all(np.abs(error) < 4.0 * np.sqrt(default))
    assert moving[0] > 20.0 * default[0]  # what leaving them out costs Fs, and Fstr


def test_only_joints_with_such_friction_keep_them():
    friction = {'default': ('viscous', 'coulomb'), 'j1': ('viscous', 'smooth_coulomb')}
    robot = build_robot(URDF, RobotSettings(friction=friction))
    auto, every, moving = (
        prepare(moved(), robot, SignalSettings(cutoff=20.0, rows=rows)).valid
        for rows in ('auto', 'smooth', 'moving')
    )
    short = int(1.5 * moved().rate / 20.0 + 0.5)  # the ends, which turn the sign of slow joints
    np.testing.assert_array_equal(auto[short:-short, 0], every[short:-short, 0])
    assert not auto[:short].any() and not auto[-short:].any() and every[:short, 0].any()
    np.testing.assert_array_equal(auto[:, 1], moving[:, 1])
    assert every[:, 0].sum() > moving[:, 0].sum()


def test_a_motor_of_two_joints_that_stands_has_no_sign_of_friction():
    """They turn against each other, so that their common motor rests; the first is not its."""
    couplings = {'pair': CoupledMotorSettings((0.0, 1.0, 1.0))}
    robot = build_robot(URDF, RobotSettings(couplings=couplings))
    recording = moved()
    position = recording.position[:, :1] * [1.0, 1.0, -1.0]
    against = dataclasses.replace(recording, position=position)
    valid = prepare(against, robot, SignalSettings(cutoff=20.0, rows='moving')).valid
    assert valid[:, 0].any() and not valid[:, 1:].any()


def test_ends_count_as_so_many_periods_of_the_band_where_that_is_a_whole_number():
    """Rows of the filters' transients are left out, and no row more."""
    found = samples(('smooth_coulomb',), rows='moving', band=20.0)
    used, edge = np.flatnonzero(found.valid[:, 0]), round(EDGE_PERIODS * RATE / 20.0)
    assert used[0] == edge and used[-1] == len(found.valid) - 1 - edge
