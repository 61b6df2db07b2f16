"""One session of the excitation: approach, excite, approach, validate."""

from ...core.excitation import Design, Waypoints, waypoints
from ..common.messages import State
from .supervised_robot import SupervisedRobot


class ExcitationSession(SupervisedRobot):
    """Runs a design on the robot: `prepare`, then `run`, and `close` in any case."""

    def run(self, design: Design) -> None:
        """
        Run the excitation, then the validation.

        Raises
        ------
        RobotIdError : why the robot was not moved, or was stopped

        """
        settings = self.settings
        motions = [(State.EXCITING, design.trajectory, settings.periods)]
        if design.validation is not None:
            motions.append((State.VALIDATING, design.validation, 1))
        points = [waypoints(motion, settings.rate, periods) for _, motion, periods in motions]
        for motion in points:
            self.check_motion(motion)
        # Again: a design takes minutes, and by now who began in the same instant is known, too.
        self.check()
        for motion, (state, _, periods) in zip(points, motions, strict=True):
            self._run_phase(state, motion, periods)

    def _run_phase(self, state: State, motion: Waypoints, periods: int) -> None:
        """Approach the start of a motion, rest, run it."""
        what = f'moving to the start of {state.value}'
        self.move_to(State.APPROACHING, motion.q[0], what)
        self.goals.run(state, motion, periods, state.value)
        # What follows is not part of the phase any more, though the robot still settles.
        self.goals.publish_standing(State.APPROACHING, 1.0)
        self.goals.wait_at_rest()
