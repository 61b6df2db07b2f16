"""Control laws by the type of a recorded controller, with its gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....exceptions import ControllerError, UnknownNameError
from ...arrays import Array
from ...signals.recording import Controller
from .cascaded_loops import CascadeControl
from .control_loop import ControlLaw
from .joint_trajectory_effort import JointTrajectoryEffort, recommended_tracking_time

# Strategies of control_toolbox, and their prefix in the name of a recorded gain.
STRATEGIES = ('legacy', 'none', 'back_calculation', 'conditional_integration')
ANTIWINDUP = 'antiwindup_'


def make_control_law(
    controller: Controller, joints: tuple[str, ...], drive_gain: Array
) -> ControlLaw:
    """
    Return the control law that a recorded controller followed.

    Parameters
    ----------
    controller : as recorded, with its type, rate and gains
    joints : the robot's, in order
    drive_gain : (n,) torque per unit of effort, g_τ

    Raises
    ------
    UnknownNameError : there is no law for controllers of this type
    ControllerError : it does not command efforts, or gains of a joint are missing

    """
    if controller.type not in LAWS:
        raise UnknownNameError('control law', controller.type, tuple(LAWS))
    if '/' in controller.type:
        _check_command(controller)
    missing = [joint for joint in joints if not controller.gains.get(joint)]
    if missing:
        raise ControllerError(
            f'the recording holds no gains of {controller.name or "the controller"} for '
            f'{", ".join(missing)}: record its parameters, or name them under '
            "'identification.replay.gains'"
        )
    if controller.rate <= 0.0:
        raise ControllerError('the update rate of the controller is unknown: record it')
    return LAWS[controller.type](controller, _gain_arrays(controller.gains, joints), drive_gain)


def _check_command(controller: Controller) -> None:
    if tuple(controller.command_interfaces) != ('effort',):
        raise ControllerError(
            f'{controller.name} commands {", ".join(controller.command_interfaces) or "nothing"}, '
            'not efforts, so the law that makes the torque is unknown: identify by WLS, or give '
            "law, rate and gains of the drives under 'identification.replay'"
        )


def _gain_arrays(
    gains: Mapping[str, Mapping[str, float]], joints: tuple[str, ...]
) -> dict[str, Any]:
    """Turn gains per joint into arrays (n,) per name, NaN where a joint has none of that name."""
    names = {name: None for joint in joints for name in gains[joint]}
    return {
        name: np.array([float(gains[joint].get(name, np.nan)) for joint in joints])
        for name in names
    }


def _gain(columns: dict[str, Any], name: str, default: float = 0.0) -> Array:
    values = np.asarray(columns.get(name, np.nan), dtype=float)
    return np.where(np.isnan(values), default, values)


def _trajectory_controller(
    controller: Controller, columns: dict[str, Any], drive_gain: Array
) -> ControlLaw:
    # A bound that is not given is that of the deprecated i_clamp.
    clamp = _gain(columns, 'i_clamp', np.inf)
    low, high = _gain(columns, 'i_clamp_min', -np.inf), _gain(columns, 'i_clamp_max', np.inf)
    p, i, d = (_gain(columns, name) for name in ('p', 'i', 'd'))
    integrates_after, tracking_rate, conditional = _antiwindup(columns, p, i, d)
    return JointTrajectoryEffort(
        controller.rate,
        p,
        i,
        d,
        _gain(columns, 'ff_velocity_scale'),
        np.where(np.isfinite(low), low, -clamp),
        np.where(np.isfinite(high), high, clamp),
        _gain(columns, 'u_clamp_min', -np.inf),
        _gain(columns, 'u_clamp_max', np.inf),
        _gain(columns, 'error_deadband'),
        integrates_after,
        tracking_rate,
        conditional,
        gain=drive_gain,
    )


def _antiwindup(
    columns: dict[str, Any], p: Array, i: Array, d: Array
) -> tuple[Array, Array, Array]:
    """
    Return `integrates_after`, `tracking_rate`, `conditional` of `JointTrajectoryEffort`, (n,).

    A strategy is a gain of 1 by the name 'antiwindup_' and its own; without one it is 'legacy'.
    """
    names = [name.removeprefix(ANTIWINDUP) for name in columns if name.startswith(ANTIWINDUP)]
    for name in names:
        if name not in STRATEGIES:
            raise UnknownNameError('anti-windup strategy', name, STRATEGIES)
    none, back, conditional = (_gain(columns, ANTIWINDUP + name) for name in STRATEGIES[1:])
    given = _gain(columns, 'tracking_time_constant')
    usual = recommended_tracking_time(p, i, d)
    active = (back != 0.0) & (i != 0.0)
    tracking_rate = np.where(active, 1.0 / np.where(given > 0.0, given, usual), 0.0)
    return np.maximum(np.maximum(none, back), conditional), tracking_rate, conditional


def _cascade(controller: Controller, columns: dict[str, Any], drive_gain: Array) -> ControlLaw:
    return CascadeControl(
        controller.rate,
        _gain(columns, 'kp'),
        _gain(columns, 'kv'),
        _gain(columns, 'ki'),
        _gain(columns, 'velocity_feedforward'),
        _gain(columns, 'acceleration_feedforward'),
        bool(np.any(_gain(columns, 'differences'))),
        _gain(columns, 'integral_limit', np.inf),
        gain=drive_gain,
        limit=_gain(columns, 'limit', np.inf),
        resolution=_gain(columns, 'resolution'),
    )


LAWS: dict[str, Callable[[Controller, dict[str, Any], Array], ControlLaw]] = {
    'joint_trajectory_controller/JointTrajectoryController': _trajectory_controller,
    'cascade': _cascade,
}
