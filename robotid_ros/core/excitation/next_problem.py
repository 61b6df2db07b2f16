"""The next motion: designed for what an identification has left unknown."""

from dataclasses import dataclass, replace
from functools import partial
import math

import numpy as np

from ...exceptions import ConfigurationError, FEW, shortened
from ..arrays import Array, whitening
from ..model.base_parameters import base_parameters
from ..model.dynamics import regressor
from ..model.robot import Robot
from .collision_scene import CollisionScene
from .criteria import Criterion, prediction_error
from .problem import Problem
from .settings import ExcitationSettings
from .working_motion import LEAST_EFFORT, STANDSTILL, working_motion

# Residuals are at least this share of the effort: noise-free data leave none.
NEGLIGIBLE = 1e-5
# Efforts of a joint are more than this, which no sensor shows [N·m or N, and its square].
LEAST = 1e-12


@dataclass(frozen=True)
class Known:
    """
    What an identification knows of a robot.

    Attributes
    ----------
    joints : names
    names, value, covariance : of base parameters, (b,), (b,), (b, b)
    expected : (n,) error that they are expected to make on working motions, see
        `verdict.parameter_error`; NaN: not known
    noise, effort : (n,) root mean squares of residual and measured effort [N·m or N]
    rate : independent rows of a joint in a second of motion [1/s]

    """

    joints: tuple[str, ...]
    names: tuple[str, ...]
    value: Array
    covariance: Array
    expected: Array
    noise: Array
    effort: Array
    rate: float


class NextProblem(Problem):
    """
    Minimise the expected error of prediction on working motions, with what is known already.

    Rows count by the residual of their joint, and as many as are independent. The covariance is
    scaled to the error that the verdict expects of the parameters: what the model leaves out
    widens σ, and no motion reduces it. `before` is that error, relative, of all joints together.
    """

    def __init__(
        self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene, known: Known
    ) -> None:
        base = base_parameters(robot)
        lacking = [name for name in base.names if name not in known.names]
        if known.joints != robot.joints or lacking:
            what = f'parameters {shortened(lacking, FEW)}' if lacking else 'other joints'
            raise ConfigurationError(
                f"the results are not of '{robot.name}' with these joints and this friction "
                f'({what}): give its own, or set robot.joints and robot.friction as they have it'
            )
        super().__init__(robot, replace(settings, columns=()), scene)
        places = [known.names.index(name) for name in base.names]
        covariance = known.covariance[np.ix_(places, places)]
        if not np.isfinite(covariance).all():
            raise ConfigurationError(
                'the results leave parameters wholly open, their σ is infinite: design a motion '
                'without them'
            )
        limits = self.limits
        q, dq, ddq, _ = working_motion(
            replace(robot, limits=limits), limits.lower, limits.upper, limits.velocity
        )
        W = regressor(robot, q, dq, ddq, columns=base.columns)
        goals = []
        for j, rows in enumerate(W):
            moving = rows[np.abs(dq[:, j]) > STANDSTILL]
            predicted = np.sum((moving @ known.value[places]) ** 2) / max(len(moving), 1)
            effort = max(predicted, (LEAST_EFFORT * known.effort[j]) ** 2, LEAST)
            goals.append(moving.T @ moving / (max(len(moving), 1) * effort))
        errors = np.array([np.sum(goal * covariance) for goal in goals])
        told = np.isfinite(known.expected)
        share = np.sum(known.expected[told] ** 2) / np.sum(errors[told]) if told.any() else 1.0
        covariance *= min(share, 1.0)
        goal = sum(goals) / robot.n
        self.before = math.sqrt(np.sum(goal * covariance))
        # In the coordinates of the design's columns, as means over the rows of the motion.
        count = known.rate * settings.period * settings.periods
        names = self.observation.names
        turn = base.matrix[:, [robot.column(names[k]) for k in self.columns]]
        self.weights = 1.0 / np.maximum(known.noise, NEGLIGIBLE * known.effort + LEAST)
        self.known = whitening(covariance) @ turn / math.sqrt(count)
        self.criterion = Criterion(
            'prediction_error',
            partial(prediction_error, goal=turn.T @ goal @ turn / count),
            math.exp,
        )

    @property
    def columns_note(self) -> str:
        """Which columns the criterion is about."""
        return 'with what is known of them'
