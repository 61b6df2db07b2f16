"""Limits that a description lacks, by rules that a configuration can state."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..excitation.settings import ExcitationSettings
from ..model.dynamics import inverse_dynamics, mass_matrix
from ..model.robot import Limits, Robot

# Velocity of a joint where no joint of its kind has a limit [rad/s, m/s]: slow for any arm.
SLOW, SLOW_PRISMATIC = 1.0, 0.1
# Effort limit over the largest effort that the motion needs, where the description has none.
EFFORT_RESERVE = 2.0
# Where masses are assumed, they may be half of what they are, and a tenth at a wrist: the reserve
# is as many times larger, and no limit less than this share of the largest one.
UNKNOWN_MASSES, LEAST_EFFORT = 2.0, 0.05
# Random states whose efforts are the load of the drives.
STATES = 200
Mask = npt.NDArray[np.bool_]
# Symbols of the friction that a model has by default.
FRICTION = ('Fv', 'Fc', 'off')


@dataclasses.dataclass(frozen=True)
class Load:
    """
    What the drives have to bear by the description's bodies, at the limits of the motion.

    Attributes
    ----------
    effort : (n,) largest effort without friction [N·m, N]
    inertia : (n,) largest element of the mass matrix's diagonal [kg·m², kg]

    """

    effort: Array
    inertia: Array


def measure_load(robot: Robot, velocity: Array, acceleration: Array, amplitude: float) -> Load:
    """
    Compute the largest efforts and inertias over random states within the limits.

    Parameters
    ----------
    robot : its prior parameters are used, friction apart
    velocity, acceleration : (n,) limits
    amplitude : bound of joints without position limits [rad]

    """
    rng = np.random.default_rng(0)
    lower = np.maximum(robot.limits.lower, -amplitude)
    upper = np.minimum(robot.limits.upper, amplitude)
    chi = np.where([p.symbol in FRICTION for p in robot.parameters], 0.0, robot.prior)
    q = rng.uniform(np.minimum(lower, upper), upper, (STATES, robot.n))
    dq, ddq = (rng.choice((-1.0, 1.0), q.shape) * x for x in (velocity, acceleration))
    effort = np.abs(inverse_dynamics(robot, chi, q, dq, ddq)).max(axis=0)
    inertia = np.diagonal(mass_matrix(robot, chi, q), axis1=1, axis2=2).max(axis=0)
    return Load(effort, inertia)


def complete_limits(
    robot: Robot, settings: ExcitationSettings
) -> tuple[Limits, dict[str, str], Load]:
    """
    Fill in what the description does not limit.

    Returns
    -------
    Velocity, acceleration and effort limits that are all finite; by the name of each that had to
    be filled in, the rule and the joints it was used for; the load that they come with.

    """
    limits, rules = robot.limits, {}
    lacking = {
        name: _lacking(getattr(limits, name)) for name in ('velocity', 'acceleration', 'effort')
    }
    velocity = _slowest(robot, limits.velocity, lacking['velocity'])
    filled = velocity / settings.acceleration_time
    acceleration = np.where(lacking['acceleration'], filled, limits.acceleration)
    load = measure_load(robot, velocity, acceleration, settings.amplitude)
    needed = load.effort
    reserve = EFFORT_RESERVE
    if robot.assumed_inertials:
        reserve *= UNKNOWN_MASSES
        alike = needed * (robot.prismatic == robot.prismatic[:, None])
        needed = np.maximum(needed, LEAST_EFFORT * alike.max(axis=1))
    effort = np.where(lacking['effort'], reserve * needed, limits.effort)
    texts = {
        'velocity': 'that of the slowest joint of the same kind, else '
        f'{SLOW:g} rad/s or {SLOW_PRISMATIC:g} m/s',
        'acceleration': f'full speed in {settings.acceleration_time:g} s',
        'effort': f'{reserve:g} times the largest effort that the motion needs',
    }
    for name, without in lacking.items():
        if without.any():
            names = ', '.join(j for j, no in zip(robot.joints, without, strict=True) if no)
            which = '' if without.all() else f' of {names}'
            rules[name] = f'The description has no {name} limit{which}: {texts[name]}.'
    complete = dataclasses.replace(
        limits, velocity=velocity, acceleration=acceleration, effort=effort
    )
    return complete, rules, load


def _lacking(values: Array) -> Mask:
    return np.logical_not(np.isfinite(values) & (values > 0.0))


def _slowest(robot: Robot, velocity: Array, lacking: Mask) -> Array:
    result = np.array(velocity)
    for prismatic, default in ((False, SLOW), (True, SLOW_PRISMATIC)):
        same = robot.prismatic == prismatic
        result[same & lacking] = min(velocity[same & ~lacking], default=default)
    return result
