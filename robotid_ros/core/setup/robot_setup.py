"""All that a session needs and a description does not say, chosen from it by rules."""

from collections.abc import Mapping, Sequence
import dataclasses

import numpy as np

from ..arrays import Array
from ..excitation.collision_scene import CollisionScene
from ..excitation.settings import ExcitationSettings, Margins, Workspace
from ..model.robot import Limits, Robot
from ..model.robot_builder import build_robot
from ..model.settings import RobotSettings
from .arm_choice import ArmChoice, choose_arm
from .kinematic_tree import KinematicTree
from .missing_limits import complete_limits
from .simulated_drives import drives_for_gains, simulated_drives, SimulatedDrives
from .workspace import place_robot

# Search for a motion [s]: enough for the condition number of most arms, short for a first session.
DESIGN_TIME = 60.0
# Distance from the reference that stops a session [rad, m].
TRACKING_ERROR, TRACKING_ERROR_PRISMATIC = 0.1, 0.02
# A margin beyond this leaves no motion worth the name.
MAX_EFFORT_MARGIN = 0.5
FOLLOWING = (
    '{} follow joints of the arm, and stand still in the model: how they move is not in the '
    'checks of a motion, keep clear of them'
)


@dataclasses.dataclass(frozen=True)
class KnownFacts:
    """
    What is known of a robot besides its description: defaults, or as read from a live one.

    Attributes
    ----------
    joints : the controller's; empty: chosen from the description
    controller : its name
    update_rate : of its commands [Hz]
    command_interface : what it commands
    gains : of its joints, by the names of `simulation.gains`; joints without: guessed
    effort_kind : as `robot.effort_kind`
    mass : as `robot.mass`, for a description without inertials [kg]

    """

    joints: tuple[str, ...] = ()
    controller: str = 'arm_controller'
    update_rate: float = 1000.0
    command_interface: str = 'effort'
    gains: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    effort_kind: str = 'auto'
    mass: float = 0.0


@dataclasses.dataclass(frozen=True)
class RobotSetup:
    """
    What a configuration of a robot has to say.

    Attributes
    ----------
    robot : with its joints; limits as in the description
    arm : the choice of the joints
    locked : positions of joints that cannot stand at 0
    limits, rules : complete limits, and the rule of each kind that the description lacks
    excitation : start, workspace, margins, time limit
    tracking_error : (n,) what stops a session [rad, m]
    drives : of the simulated robot
    facts : what was known
    unchecked : sentences about what is not checked before the robot moves, by the names of
        `accept_unchecked`
    notes : what a user should look at

    """

    robot: Robot
    arm: ArmChoice
    locked: dict[str, float]
    limits: Limits
    rules: dict[str, str]
    excitation: ExcitationSettings
    tracking_error: Array
    drives: SimulatedDrives
    facts: KnownFacts
    unchecked: dict[str, str]
    notes: tuple[str, ...]


def set_up_robot(
    urdf: str,
    joints: Sequence[str] = (),
    tip: str = '',
    *,
    mesh_folders: tuple[str, ...] = (),
    facts: KnownFacts | None = None,
) -> RobotSetup:
    """
    Choose arm, limits, start, workspace and simulated drives of a robot.

    Parameters
    ----------
    urdf : the description's text
    joints, tip : which arm; left out: the longest
    mesh_folders : where packages of meshes are
    facts : what is known besides

    Raises
    ------
    ModelError : the description cannot become a model, or has no arm
    UnknownNameError, ConfigurationError : joints or tip that do not exist or contradict each other
    TrajectoryError : no start is free, or none can be held

    """
    facts = facts or KnownFacts()
    tree = KinematicTree(urdf)
    arm = choose_arm(tree, joints or facts.joints, tip)
    settings = RobotSettings(joints=arm.joints, locked=_locked(tree, arm.joints), mass=facts.mass)
    robot, following = build_robot(urdf, settings), tuple[str, ...]()
    if robot.followers:  # cylinders beside an arm, that no motion can be planned with
        names = [follower.name for follower in robot.followers]
        following = (FOLLOWING.format(', '.join(names)),)
        standing = settings.locked | {name: tree.joints[name].rest for name in names}
        settings = dataclasses.replace(settings, locked=standing)
        robot = build_robot(urdf, settings)
    workspace = Workspace(frame=arm.tip, mesh_folders=mesh_folders)
    excitation = ExcitationSettings(workspace=workspace, time_limit=DESIGN_TIME)
    limits, rules, _ = complete_limits(robot, excitation)
    error = np.where(robot.prismatic, TRACKING_ERROR_PRISMATIC, TRACKING_ERROR)
    drives = _drives(robot, excitation, facts, error)
    margin = min(max(drives.effort_margin, excitation.margins.effort), MAX_EFFORT_MARGIN)
    margins = Margins(effort=round(float(margin), 2))
    limited = dataclasses.replace(robot, limits=limits)
    excitation, notes = place_robot(limited, dataclasses.replace(excitation, margins=margins))
    return RobotSetup(
        robot,
        arm,
        dict(settings.locked),
        limits,
        rules,
        excitation,
        error,
        drives,
        facts,
        CollisionScene(robot, excitation.workspace).unchecked,
        (*robot.warnings, *following, *notes),
    )


def _drives(
    robot: Robot, excitation: ExcitationSettings, facts: KnownFacts, error: Array
) -> SimulatedDrives:
    """Guess drives that fit the gains, where these are known, else the size of the robot."""
    rows = [facts.gains.get(joint, {}) for joint in robot.joints]
    p, d = (np.array([row.get(name, 0.0) for row in rows]) for name in 'pd')
    if facts.command_interface == 'effort' and (p > 0.0).all():
        return drives_for_gains(robot, excitation, (p, d), facts.update_rate, error)
    limits, _, load = complete_limits(robot, excitation)
    return simulated_drives(robot, limits, load, facts.update_rate, error)


def _locked(tree: KinematicTree, chosen: tuple[str, ...]) -> dict[str, float]:
    """Return where joints stand that are left out and cannot be at 0."""
    others = [tree.joints[n] for n in tree.movable if n not in (*chosen, *tree.mimics)]
    places = {joint.name: joint.rest for joint in others}
    return {name: place for name, place in places.items() if place != 0.0}
