"""A controller on a bench, for its tests."""

from robotid_ros.plant.trajectory import Goal, Point
from robotid_ros.plant.trajectory_controller import (
    ControllerSettings,
    GoalTolerances,
    TrajectoryController,
)
from robotid_ros.simulation_settings import ConstraintSettings, GainSettings

JOINTS = ('a', 'b')
MS = 1_000_000
S = 1_000_000_000


class Bench:
    """A controller on a robot that is wherever the test puts it."""

    def __init__(
        self,
        position=(0.0, 0.0),
        constraints=None,
        wraparound=(False, False),
        interface='effort',
        **gains,
    ):
        of = GainSettings(**gains)
        self.controller = TrajectoryController(
            ControllerSettings(
                JOINTS,
                wraparound,
                MS,
                {'a': of, 'b': of},
                constraints or ConstraintSettings(),
                command_interface=interface,
            )
        )
        self.q, self.dq, self.now = list(position), [0.0, 0.0], 100 * S
        self.follows = False
        self.controller.activate(self.q, self.dq)

    def run(self, cycles=1):
        for _ in range(cycles):
            self.now += MS
            if self.follows:
                desired = self.controller.state.desired
                self.q, self.dq = list(desired.positions), list(desired.velocities)
            self.command = self.controller.update(self.now, 1e-3, self.q, self.dq)
        return self.command

    def start(self, *points, tolerances=None, joints=JOINTS, stamp=0):
        goal = Goal(joints, stamp, list(points))
        assert self.controller.rejection_reason(goal, self.now) == ''
        return self.controller.start(goal, tolerances or GoalTolerances())

    @property
    def reference(self):
        return self.controller.state.desired


def at(time, *positions, v=None, a=None, effort=None):
    return Point(round(time * S), list(positions), v or [], a or [], effort or [])
