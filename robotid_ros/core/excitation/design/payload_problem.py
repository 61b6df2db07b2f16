"""The design of a short motion that tells a payload: what joints' efforts show of its ten."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ....exceptions import ConfigurationError
from ...arrays import Array
from ...model.robot import Robot
from ..constraints.body_frames import body_frame
from ..constraints.collision_scene import CollisionScene
from ..settings import ExcitationSettings
from .criteria import Criterion, subset_d_optimal
from .observation_matrix import independent_columns, PINOCCHIO_SYMBOLS
from .optimisation_problem import Problem


def carrying(robot: Robot, settings: ExcitationSettings) -> Robot:
    """
    Return the robot whose prior carries the payload of the settings, as a point.

    Raises
    ------
    ConfigurationError : the centre of mass has no three coordinates
    UnknownNameError : there is no frame that it could be in

    """
    com, mass = settings.payload.com, settings.payload.mass
    if len(com) != 3:
        raise ConfigurationError("'excitation.payload.com' needs three coordinates x y z")
    frame = body_frame(robot, settings.workspace.frame)
    c = (frame.placement @ [*com, 1.0])[:3]
    moments = (c @ c) * np.eye(3) - np.outer(c, c)
    prior = robot.prior.copy()
    start = int(robot.first_columns[frame.link])
    prior[start : start + 10] += mass * np.array([*moments[np.triu_indices(3)], *c, 1.0])
    return replace(robot, prior=prior)


class PayloadProblem(Problem):
    """
    The columns are the carrying link's ten, then friction, which may change between recordings.

    All else cancels: the arm is the same with the payload and without. Efforts are bounded with
    the payload. Rows count by `excitation.noise`, or in parts of the effort limits where these are
    known: noise and errors of the model grow with a drive.
    """

    def __init__(self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene) -> None:
        self.link = body_frame(robot, settings.workspace.frame).link
        super().__init__(carrying(robot, settings), settings, scene)
        limits = self.limits.effort
        if not settings.noise and np.isfinite(limits).all():
            self.weights: Array = limits.max() / limits
        objective = partial(subset_d_optimal, count=self.payload_columns)
        self.criterion: Criterion = Criterion(objective, float)

    @property
    def columns_note(self) -> str:
        """Which columns the criterion is about."""
        joint = self.robot.links[self.link]
        return f'the {self.payload_columns} that tell a payload at {joint}, then friction'

    def _columns(self) -> NDArray[np.intp]:
        names = self.observation.names
        own = [names.index(f'{symbol}{self.link + 1}') for symbol in PINOCCHIO_SYMBOLS]
        drives = enumerate(self.observation.extras, len(names) - len(self.observation.extras))
        chosen = np.array([*own, *(k for k, drive in drives if drive.source != 'ddq')])
        free = independent_columns(self._random_rows()[:, chosen])
        self.payload_columns = int(np.sum(free < len(own)))
        return np.asarray(chosen[free])
