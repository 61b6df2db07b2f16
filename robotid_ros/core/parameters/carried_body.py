"""A body that a link carries: its parameters in another frame, the robot's with it."""

import numpy as np
import pinocchio

from ...exceptions import ConfigurationError
from ..arrays import Array
from ..model.pinocchio_model import body_frame
from ..model.robot import from_pinocchio, Robot
from .physical_consistency import inertial_parameters, pseudo_inertia

# Mass, centre of mass and inertia at it, in this order.
CENTRAL = ('mass', 'x', 'y', 'z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
CENTRAL_UNITS = ('kg', 'm', 'm', 'm') + ('kg·m²',) * 6
UPPER = np.triu_indices(3)
ROUNDING = 1e-9  # share of a sum of products below which it is rounding


def frame_change(placement: Array) -> Array:
    """
    Return T (10, 10) with π' = T π: from a frame to one that is placed in it at H (4, 4).

    Pseudo-inertias move as P' = H⁻¹ P H⁻ᵀ, with parallel axes (Wensing, Kim and Slotine 2018).
    """
    back = np.linalg.inv(placement)
    columns = [inertial_parameters(back @ pseudo_inertia(e) @ back.T) for e in np.eye(10)]
    return np.array(columns).T


def inertia_matrix(central: Array) -> Array:
    """Return the inertia at the centre of mass (3, 3) of a body (10,) [kg·m²]."""
    return np.asarray(central)[[[4, 5, 6], [5, 7, 8], [6, 8, 9]]]


def checked_inertia(central: Array) -> Array:
    """Return that matrix; ConfigurationError: no body has such an inertia."""
    moments = inertia_matrix(central)
    principal = np.linalg.eigvalsh(moments)
    if principal[2] > (principal[0] + principal[1]) * (1.0 + ROUNDING) or principal[0] < 0.0:
        raise ConfigurationError(
            'no body has such an inertia: each principal moment is at most the sum of the others'
        )
    return moments


def carrying(robot: Robot, chi: Array, frame: str, central: Array) -> Array:
    """
    Return standard parameters (p,) of a robot that carries a body.

    Of `chi` without it, a frame of the description ('': that of the last joint), and the body
    (10,) there, in the order of `CENTRAL`. UnknownNameError, ConfigurationError: no such frame, or
    one that moves with no joint, or no body has such a mass and inertia.
    """
    place = body_frame(robot, frame)
    mass, centre = central[0], central[1:4]
    if not np.isfinite(central).all() or mass < 0.0 or (mass == 0.0 and central.any()):
        raise ConfigurationError('a payload has a mass, and all its values are numbers')
    inertia = pinocchio.Inertia(mass, centre, checked_inertia(central))
    body = pinocchio.SE3(place.placement).act(inertia)
    result = np.array(chi, dtype=float)
    result[robot.body_columns[place.link]] += from_pinocchio(body.toDynamicParameters())
    return result
