"""What was chosen by cross-validation, and what it was compared with."""

from collections.abc import Sequence
import dataclasses
from typing import Any

from ..arrays import Array
from ..model.friction import RIPPLES
from ..model.robot import Robot
from .candidates import Candidate, SPRING


@dataclasses.dataclass(frozen=True)
class Comparison:
    """
    One choice.

    Attributes
    ----------
    subject : what was chosen, 'signals and estimator' or a joint's name
    chosen : the one that was taken
    residuals : {candidate: cross-validated relative residual}

    """

    subject: str
    chosen: str
    residuals: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Selection:
    """
    What was chosen by cross-validation, and what it was compared with.

    Attributes
    ----------
    candidate : the choice
    residual : its cross-validated relative residual, all joints
    plain_residual : that of the plain baseline
    joint_residuals, plain_joint_residuals : the same joint by joint, (n,)
    comparisons : the last one of each subject, step by step
    notes : what the configuration should say, in words

    """

    candidate: Candidate
    residual: float
    plain_residual: float
    joint_residuals: Array
    plain_joint_residuals: Array
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()

    def describe(self, joints: Sequence[str]) -> str:
        """Say it in one line, with the springs and ripple that these joints of the robot have."""
        model = self.candidate.describe()
        terms = list(zip(joints, self.candidate.friction, strict=True))
        springs = ', '.join(joint for joint, own in terms if SPRING in own)
        ripple = ', '.join(
            joint for joint, own in terms if any(term.name in RIPPLES for term in own)
        )
        for what, where in (('a spring', springs), ('ripple', ripple)):
            model += f', {what} at {where}' if where else ''
        return (
            f'chosen by cross-validation: {model}; it leaves {100 * self.residual:.2f} % of parts '
            f'of this recording that were not fitted, plain least squares leaves '
            f'{100 * self.plain_residual:.2f} %; the verdict is about other motions'
        )

    def configuration(self, robot: Robot) -> dict[str, dict[str, Any]]:
        """Return what a configuration has to say to make the same choices, section by section."""
        friction = dict(zip(robot.joints, self.candidate.friction, strict=True))
        signals = dict(zip(('cutoff', 'band', 'rows'), self.candidate.signals, strict=True))
        return {
            'robot': {
                'effort_kind': robot.effort_kind.replace('auto', 'joint_torque'),
                'friction': {j: [term.name for term in terms] for j, terms in friction.items()},
                'friction_constants': {
                    joint: dict(item for term in terms for item in term.constants.items())
                    for joint, terms in friction.items()
                },
            },
            'identification': {
                'method': self.candidate.estimator,
                'selection': False,
                'signals': signals,
            },
        }
