"""What a simulated robot has beyond its description: gains, friction, rotors, noise."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..excitation.settings import ExcitationSettings
from ..model.robot import Limits, Robot
from .missing_limits import complete_limits, Load

# Natural frequencies of the loops, shares of the update rate [rad/s over Hz]: several times the
# motion's, far below what a discrete loop and a cascade of joints bear. The first is wanted, the
# second is what a stiff joint may have.
BANDWIDTH, MAX_BANDWIDTH = 0.04, 0.08
DAMPING = 1.0
# Largest tracking errors, over the one that stops a session: under the largest load, and under dry
# friction alone, which holds a joint that turns round until the error moves it.
LOAD_ERROR, STICKING_ERROR = 0.1, 0.01
# Rotor and gear over the largest inertia of the joint: it bounds how much faster than wanted a
# loop is in poses where joints hardly load each other.
ROTOR = 0.3
# Dry friction, and viscous friction at full speed, over the largest load of the joint, and over
# the largest of any joint of the kind: wrists have gears that their light links do not explain.
FRICTION, FRICTION_OF_LARGEST = 0.04, 0.003
# Over dry friction: constant torque, and σ of the efforts.
OFFSET, NOISE = 0.1, 0.03
# Share of the effort limit that stays free beyond what is known to be needed.
RESERVE = 0.1


@dataclasses.dataclass(frozen=True)
class SimulatedDrives:
    """
    What a simulated robot has besides its description, (n,) each.

    Attributes
    ----------
    p, d : gains of the controller [N·m/rad, N·m·s/rad]
    rotor_inertia : [kg·m²]
    viscous, coulomb, offset : friction [N·m·s/rad, N·m]
    noise : σ of the efforts [N·m]
    effort_margin : share of the effort limits that a motion has to leave to rotors and friction

    """

    p: Array
    d: Array
    rotor_inertia: Array
    viscous: Array
    coulomb: Array
    offset: Array
    noise: Array
    effort_margin: float


def simulated_drives(
    robot: Robot, limits: Limits, load: Load, update_rate: float, tracking_error: Array
) -> SimulatedDrives:
    """
    Guess drives that fit the robot's size.

    `p = J ω²`, `d = 2 ζ J ω` with the inertia J of link and rotor; where load or friction would
    keep the joint too far from its reference, the rotor is larger and ω higher.

    Parameters
    ----------
    robot : its prior and what its description says of friction
    limits : complete
    load : what the drives bear
    update_rate : of the controller [Hz]
    tracking_error : (n,) what stops a session [rad, m]

    """
    needed = np.minimum(load.effort, limits.effort)
    largest = np.array([needed[robot.prismatic == kind].max() for kind in robot.prismatic])
    friction = FRICTION * needed + FRICTION_OF_LARGEST * largest
    coulomb = np.maximum(friction, robot.dry_friction)
    viscous = np.maximum(friction / limits.velocity, robot.damping)
    resistance = coulomb + viscous * limits.velocity
    total = (1.0 + ROTOR) * load.inertia
    stiff = np.maximum((needed + resistance) / LOAD_ERROR, coulomb / STICKING_ERROR)
    stiff = stiff / tracking_error
    p = np.maximum(total * (BANDWIDTH * update_rate) ** 2, stiff)
    total = np.maximum(total, p / (MAX_BANDWIDTH * update_rate) ** 2)
    rotor = total - load.inertia
    known = robot.dry_friction + robot.damping * limits.velocity
    unknown = resistance - known + rotor * limits.acceleration
    signs = np.where(np.arange(robot.n) % 2, -1.0, 1.0)
    return SimulatedDrives(
        p=p,
        d=2.0 * DAMPING * np.sqrt(p * total),
        rotor_inertia=rotor,
        viscous=viscous,
        coulomb=coulomb,
        offset=OFFSET * signs * coulomb,
        noise=NOISE * coulomb,
        effort_margin=float(np.max(unknown / limits.effort)) + RESERVE,
    )


def drives_for_gains(
    robot: Robot,
    settings: ExcitationSettings,
    gains: tuple[Array, Array],
    update_rate: float,
    tracking_error: Array,
) -> SimulatedDrives:
    """
    Guess the drives of a robot whose controller is known.

    Gains are taken to damp the joint critically, `J = d² / (4 ζ² p)`: what the link lacks of J is
    the rotor's.

    Parameters
    ----------
    robot, update_rate, tracking_error : see `simulated_drives`
    settings : of its motions
    gains : p and d [N·m/rad, N·m·s/rad], (n,) each, 0 where there is none

    """
    limits, _, load = complete_limits(robot, settings)
    drives = simulated_drives(robot, limits, load, update_rate, tracking_error)
    p, d = gains
    total = d**2 / (4.0 * DAMPING**2 * np.where(p > 0.0, p, np.inf))
    rotor = np.maximum(drives.rotor_inertia, total - load.inertia)
    return dataclasses.replace(drives, p=p, d=d, rotor_inertia=rotor)
