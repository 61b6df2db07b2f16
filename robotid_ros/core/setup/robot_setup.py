"""All that a session needs and a description lacks: where a robot may go, limits, drives."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from itertools import compress
from typing import NamedTuple

import numpy as np

from ...exceptions import ConfigurationError, TrajectoryError
from ..arrays import Array, Mask
from ..excitation.collision_scene import CollisionScene, link_name
from ..excitation.limits import apply_margins, motion_limits
from ..excitation.settings import ExcitationSettings, Margins, Workspace
from ..findings import Finding, finding
from ..model import build_robot, inverse_dynamics, mass_matrix, Robot, RobotSettings
from ..model.friction import PLAIN_SYMBOLS
from ..model.robot import Limits
from .joint_choice import ArmChoice, choose_arm, JointTree

# Poses that are looked at, from the middle of the ranges outwards, and those of them whose room is
# measured: enough for seven joints beside a torso, a second or so.
DRAWS, MEASURED = 2000, 100
# Farthest from the middle of a range: its share, and the angle for wide ones [rad].
WIDEST, WIDEST_ANGLE = 0.8, np.pi / 2
# Share of the efforts' limits that gravity may take there, if such a pose is free: a motion turns
# round about its start, and one that is held with the last of a drive can only be left one way.
HELD_SHARE = 0.75
# Moves whose freedom is the room of a pose, and how far they reach, as shares of that width.
MOVES, REACHES = 30, (0.3, 0.6)
DECIMALS = 3  # of a pose, which stands in a file
DISTANCE_COST = 0.1  # what the distance from the middle costs, in shares of free moves
# Distances between bodies that are tried [m], and the room of a start that is enough.
DISTANCES, ENOUGH_ROOM = (0.02, 0.01, 0.005), 0.6
# A base this much below the root frame still stands on its ground: feet and bolts of a plate [m].
BASE_DEPTH = 0.05
# Links with one between them that touch in so many of so many poses over their whole ranges have
# shapes that are too fat: no maker gives ranges that an arm can hardly use.
OVERLAPPING, POSES = 0.3, 100


def find_start(
    robot: Robot, settings: ExcitationSettings, scene: CollisionScene
) -> tuple[Array, float]:
    """
    Find the pose with the most room, of those that are free and that the drives can hold.

    The same description gives the same pose: draws are seeded and begin at the middle of the
    ranges (0 where a joint has none). Returns the pose (n,), and its room: the share of moves from
    there that are free. TrajectoryError: no pose is free, or none can be held.
    """
    limits = apply_margins(motion_limits(robot, settings), settings.margins)

    def effort_shares(poses: Array) -> Array:
        """Return efforts at rest over their limits (N, n), infinite outside of the joints'."""
        still = np.zeros_like(poses)
        effort = np.abs(inverse_dynamics(robot, robot.prior, poses, still, still))
        inside = (poses >= limits.lower) & (poses <= limits.upper)
        return np.where(inside, effort / limits.effort, np.inf)

    limited = np.isfinite(robot.limits.lower) & np.isfinite(robot.limits.upper)
    middle = np.where(limited, 0.5 * (limits.lower + limits.upper), 0.0)
    width = WIDEST * 0.5 * (limits.upper - limits.lower)
    width = np.where(robot.prismatic, width, np.minimum(width, WIDEST_ANGLE))
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (DRAWS, robot.n))
    draws *= np.linspace(0.0, 1.0, DRAWS)[:, None]
    poses = np.round(middle + width * draws, DECIMALS)
    shares = effort_shares(poses)
    largest = shares.max(axis=1)
    if not (largest <= 1.0).any():
        j = int(np.argmax((shares > 1.0).mean(axis=0)))
        limit, (_, unit) = robot.limits.effort[j], robot.units[robot.joints[j]]
        needed = np.median(shares[np.isfinite(shares[:, j]), j]) * limits.effort[j]
        raise TrajectoryError(
            f'the effort limit of {robot.joints[j]}, {limit:.4g} {unit}, holds the arm in none of '
            f'{len(shares)} poses, half of which need more than {needed:.4g} {unit}: correct '
            'the limit or the masses of the description, or leave the joint out (robot.joints)'
        )
    for most in (HELD_SHARE, 1.0):
        held = np.flatnonzero(largest <= most)
        free = held[scene.are_free(poses[held])]
        if free.size:
            break
    else:
        overlaps = (scene.clearances(poses[held[:MEASURED]]) < 0.0).mean(axis=0)
        pair = scene.geometry.collisionPairs[int(np.argmax(overlaps))]
        names = [str(scene.geometry.geometryObjects[k].name) for k in (pair.first, pair.second)]
        raise TrajectoryError(
            f'no pose is free of collisions: {" and ".join(names)} touch in most of them; correct '
            'the collision geometry of the description'
        )
    moves = np.random.default_rng(1).uniform(-1.0, 1.0, (MOVES, robot.n)) * width
    moves, rooms = np.concatenate([reach * moves for reach in REACHES]), dict[int, float]()
    for k in free[:: -(-len(free) // MEASURED)].tolist():
        ends = poses[k] + moves
        within = ends[effort_shares(ends).max(axis=1) <= 1.0]
        rooms[k] = float(scene.are_free(within).sum()) / len(ends)
    best = max(rooms, key=lambda k: rooms[k] - DISTANCE_COST * np.abs(draws[k]).mean())
    return np.asarray(poses[best]), rooms[best]


def place_robot(
    robot: Robot, settings: ExcitationSettings
) -> tuple[ExcitationSettings, tuple[Finding, ...]]:
    """
    Complete the workspace and the start: ground, distance between bodies, pose.

    The distance is the largest of `DISTANCES` that leaves room to move: links of some arms pass
    each other more closely than others keep from the table. Where no pose is free, shapes of
    links with one between them that overlap in many poses are not checked, or the ground is not.
    TrajectoryError: no pose is free even so, or none can be held.
    """
    ground: float | None = ground_height(robot, settings.workspace)
    hangs = tuple[Finding, ...]()
    try:
        CollisionScene(robot, dataclasses.replace(settings.workspace, ground=ground))
    except ConfigurationError as error:  # links are below it in every pose
        ground, hangs = None, (finding('arm_hangs', reason=str(error)),)
    standing = dataclasses.replace(settings.workspace, ground=ground)

    def ever_looser() -> Iterator[tuple[Workspace, tuple[Finding, ...]]]:
        """Give the workspace, then one without what may be wrong about it, with a finding."""
        yield standing, ()
        if pairs := overlapping_pairs(robot, standing):
            found = finding('overlapping', pairs=pairs)
            yield dataclasses.replace(standing, ignored_pairs=pairs), (found,)
        if ground is not None:
            found = finding('arm_hangs', reason=f'no pose is free above {ground:g} m')
            yield dataclasses.replace(standing, ground=None), (found,)

    reason: TrajectoryError | None = None
    for looser, loosened in ever_looser():
        placed = list[tuple[float, ExcitationSettings, tuple[Finding, ...]]]()
        for distance in DISTANCES:
            workspace = dataclasses.replace(looser, distance=distance)
            scene = CollisionScene(robot, workspace)
            try:
                start, room = find_start(robot, settings, scene)
            except TrajectoryError as error:
                reason = reason or error
                continue
            tried = dataclasses.replace(settings, start=tuple(start.tolist()), workspace=workspace)
            placed.append((room, tried, (*hangs, *scene.notes, *loosened)))
            if room >= ENOUGH_ROOM:
                break
        if placed:
            return max(placed, key=lambda each: each[0])[1:]
    assert reason is not None
    raise reason


def ground_height(robot: Robot, workspace: Workspace) -> float:
    """
    Return the height of the ground under what does not move [m], 0 where nothing is below.

    An arm is bolted down at its root frame; a robot's own may be far above its feet or pedestal.
    """
    scene, heights = _bare_scene(robot, workspace, workspace.distance), [0.0]
    for body in scene.geometry.geometryObjects:
        if body.parentJoint == 0:  # lowest point of the box of a body that is fixed to the base
            body.geometry.computeLocalAABB()
            box, row = body.geometry.aabb_local, body.placement.rotation[2]
            middle = body.placement.translation[2] + row @ (0.5 * (box.min_ + box.max_))
            heights.append(float(middle - np.abs(row) @ (0.5 * (box.max_ - box.min_))))
    lowest = min(heights)
    return round(lowest, 3) if lowest < -BASE_DEPTH else 0.0


def overlapping_pairs(robot: Robot, workspace: Workspace) -> tuple[str, ...]:
    """Return the pairs 'link_a/link_b', with one link between them, whose shapes overlap."""
    scene = _bare_scene(robot, workspace, min(DISTANCES))
    touching = (scene.clearances(robot.random_positions(POSES)) < 0.0).mean(axis=0)
    parents, bodies = list(robot.model.parents), scene.geometry.geometryObjects
    found = []
    for pair, share in zip(scene.geometry.collisionPairs, touching, strict=True):
        ends = sorted((bodies[pair.first], bodies[pair.second]), key=lambda x: int(x.parentJoint))
        first, second = (int(body.parentJoint) for body in ends)
        if share > OVERLAPPING and parents[parents[second]] == first:
            found.append('/'.join(link_name(body.name) for body in ends))
    return tuple(dict.fromkeys(found))


def _bare_scene(robot: Robot, workspace: Workspace, distance: float) -> CollisionScene:
    """Return the scene of the robot alone, without ground or tool box."""
    alone = dataclasses.replace(workspace, distance=distance, ground=None, lower=(), upper=())
    return CollisionScene(robot, alone)


# Velocity of a joint where no joint of its kind has a limit [rad/s, m/s]: slow for any arm.
SLOW, SLOW_PRISMATIC = 1.0, 0.1
# Effort limit over the largest effort that the motion needs, where the description has none.
EFFORT_RESERVE = 2.0
# Where masses are assumed, they may be half of what they are: the reserve is as many times larger.
UNKNOWN_MASSES = 2.0
# Least of these over the largest: the last link of a wrist is light, its gear needs more.
LEAST_EFFORT = 0.05
STATES = 200  # random states whose efforts are the load of the drives
# Natural frequencies of the loops over the update rate [rad/s/Hz], wanted and of stiff joints:
# several times the motion's, far below what a discrete loop and a cascade of joints bear.
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
OFFSET, NOISE = 0.1, 0.03  # over dry friction: constant torque, and σ of the efforts
RESERVE = 0.1  # share of the effort limit that stays free beyond what is known to be needed
# Search for a motion [s]: enough for the condition number of most arms, short for a first session.
DESIGN_TIME = 60.0
# Distance from the reference that stops a session [rad, m].
TRACKING_ERROR, TRACKING_ERROR_PRISMATIC = 0.1, 0.02
MAX_EFFORT_MARGIN = 0.5  # a margin beyond this leaves no motion worth the name


class CompleteLimits(NamedTuple):
    """Limits with what the description lacks filled in, and what drives then have to bear."""

    limits: Limits  # of velocity, acceleration and effort all finite
    rules: dict[str, str]  # by what was filled in: the rule, and the joints it was used for
    # (n,) over random states within them, by the prior's bodies: largest effort without friction
    # [N·m, N], and largest element of the mass matrix's diagonal [kg·m², kg].
    effort: Array
    inertia: Array


def complete_limits(robot: Robot, settings: ExcitationSettings) -> CompleteLimits:
    """Fill in what the description does not limit, by what is usual and what a motion needs."""
    limits, rules, alike = robot.limits, {}, robot.prismatic == robot.prismatic[:, None]
    lacking, none = dict[str, Mask](), np.full(robot.n, np.inf)
    slowest = np.min(np.where(alike, limits.filled('velocity', none)[0], np.inf), axis=1)
    default = np.where(robot.prismatic, SLOW_PRISMATIC, SLOW)
    slowest = np.where(np.isfinite(slowest), slowest, default)
    velocity, lacking['velocity'] = limits.filled('velocity', slowest)
    full_speed = velocity / settings.acceleration_time
    acceleration, lacking['acceleration'] = limits.filled('acceleration', full_speed)
    rng = np.random.default_rng(0)
    lower = np.maximum(limits.lower, -settings.amplitude)
    upper = np.minimum(limits.upper, settings.amplitude)
    chi = np.where([p.symbol in PLAIN_SYMBOLS for p in robot.parameters], 0.0, robot.prior)
    q = rng.uniform(np.minimum(lower, upper), upper, (STATES, robot.n))
    dq, ddq = (rng.choice((-1.0, 1.0), q.shape) * x for x in (velocity, acceleration))
    load = np.abs(inverse_dynamics(robot, chi, q, dq, ddq)).max(axis=0)
    inertia = np.diagonal(mass_matrix(robot, chi, q), axis1=1, axis2=2).max(axis=0)
    needed = np.maximum(load, LEAST_EFFORT * (load * alike).max(axis=1))
    reserve = EFFORT_RESERVE * (UNKNOWN_MASSES if robot.assumed_inertials else 1.0)
    effort, lacking['effort'] = limits.filled('effort', reserve * needed)
    texts = {
        'velocity': 'that of the slowest joint of the same kind, else '
        f'{SLOW:g} rad/s or {SLOW_PRISMATIC:g} m/s',
        'acceleration': f'full speed in {settings.acceleration_time:g} s',
        'effort': f'{reserve:g} times the largest effort that the motion needs, at least '
        f'{100 * LEAST_EFFORT:g} % of the largest of these',
    }
    for name, text in texts.items():
        if without := list(compress(robot.joints, lacking[name])):
            which = '' if lacking[name].all() else f' of {", ".join(without)}'
            rules[name] = f'The description has no {name} limit{which}: {text}.'
    filled = dataclasses.replace(
        limits, velocity=velocity, acceleration=acceleration, effort=effort
    )
    return CompleteLimits(filled, rules, load, inertia)


class SimulatedDrives(NamedTuple):
    """What a simulated robot has besides its description, (n,) each."""

    p: Array  # of the controller [N·m/rad]
    d: Array  # [N·m·s/rad]
    rotor_inertia: Array  # [kg·m²]
    viscous: Array  # friction [N·m·s/rad]
    coulomb: Array  # [N·m]
    offset: Array
    noise: Array  # σ of the efforts [N·m]
    effort_margin: float  # share of the effort limits that a motion leaves to rotors and friction


def drives_for_gains(
    robot: Robot, settings: ExcitationSettings, gains: tuple[Array, Array] | None,
    update_rate: float, tracking_error: Array,
) -> SimulatedDrives:  # fmt: skip
    """
    Guess drives that fit the robot's size and, where these are known, the controller's gains.

    `p = J ω²`, `d = 2 ζ J ω` with the inertia J of link and rotor; where load or friction would
    keep the joint too far from its reference, the rotor is larger and ω higher. Of the update rate
    of the controller [Hz], and the tracking error (n,) that stops a session [rad, m].

    Gains p and d (n,) [N·m/rad, N·m·s/rad], 0 where there is none, are taken to damp the joint
    critically, `J = d² / (4 ζ² p)`: what the link lacks of J is the rotor's.
    """
    limits, _, largest_effort, inertia = complete_limits(robot, settings)
    needed = np.minimum(largest_effort, limits.effort)
    largest = np.array([needed[robot.prismatic == kind].max() for kind in robot.prismatic])
    friction = FRICTION * needed + FRICTION_OF_LARGEST * largest
    coulomb = np.maximum(friction, robot.dry_friction)
    viscous = np.maximum(friction / limits.velocity, robot.damping)
    resistance = coulomb + viscous * limits.velocity
    total = (1.0 + ROTOR) * inertia
    stiff = np.maximum((needed + resistance) / LOAD_ERROR, coulomb / STICKING_ERROR)
    stiff = stiff / tracking_error
    p = np.maximum(total * (BANDWIDTH * update_rate) ** 2, stiff)
    total = np.maximum(total, p / (MAX_BANDWIDTH * update_rate) ** 2)
    d, rotor = 2.0 * DAMPING * np.sqrt(p * total), total - inertia
    known = robot.dry_friction + robot.damping * limits.velocity
    unknown = resistance - known + rotor * limits.acceleration
    if gains is not None:
        p, d = gains
        damped = d**2 / (4.0 * DAMPING**2 * np.where(p > 0.0, p, np.inf))
        rotor = np.maximum(rotor, damped - inertia)
    offset = OFFSET * np.where(np.arange(robot.n) % 2, -1.0, 1.0) * coulomb
    margin = float(np.max(unknown / limits.effort)) + RESERVE
    return SimulatedDrives(p, d, rotor, viscous, coulomb, offset, NOISE * coulomb, margin)


@dataclasses.dataclass(frozen=True)
class KnownFacts:
    """What is known of a robot besides its description: defaults, or as read from a live one."""

    joints: tuple[str, ...] = ()  # the controller's; empty: chosen from the description
    controller: str = 'arm_controller'
    update_rate: float = 1000.0  # of its commands [Hz]
    command_interface: str = 'effort'
    # Of its joints, by the names of `simulation.gains`; joints without: guessed.
    gains: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    effort_kind: str = 'auto'  # as `robot.effort_kind`
    mass: float = 0.0  # as `robot.mass`, for a description without inertials [kg]


@dataclasses.dataclass(frozen=True)
class RobotSetup:
    """What a configuration of a robot has to say."""

    robot: Robot  # with its joints; limits as in the description
    arm: ArmChoice
    locked: dict[str, float]  # positions of joints that cannot stand at 0
    limits: Limits  # complete
    rules: dict[str, str]  # of each kind of limit that the description lacks
    excitation: ExcitationSettings  # start, workspace, margins, time limit
    tracking_error: Array  # (n,) what stops a session [rad, m]
    drives: SimulatedDrives
    facts: KnownFacts
    # On what is not checked before the robot moves, by the names of `accept_unchecked`.
    unchecked: dict[str, Finding]
    notes: tuple[Finding, ...]  # what a user should look at


def set_up_robot(
    urdf: str, joints: Sequence[str] = (), tip: str = '', *, mesh_folders: tuple[str, ...] = (),
    facts: KnownFacts | None = None,
) -> RobotSetup:  # fmt: skip
    """
    Choose arm, limits, start, workspace and simulated drives of a robot.

    `joints` or `tip` say which arm, else it is the longest. ModelError: the description cannot
    become a model, or has no arm; UnknownNameError, ConfigurationError: joints or tip that do not
    exist or contradict each other; TrajectoryError: no start is free, or none can be held.
    """
    facts = facts or KnownFacts()
    tree = JointTree(urdf)
    arm = choose_arm(tree, joints or facts.joints, tip)
    # Where joints stand that are left out and cannot be at 0.
    others = [tree.joints[n] for n in tree.movable if n not in (*arm.joints, *tree.mimics)]
    locked = {joint.name: joint.rest for joint in others if joint.rest != 0.0}
    settings = RobotSettings(joints=arm.joints, locked=locked, mass=facts.mass)
    robot, following = build_robot(urdf, settings), tuple[Finding, ...]()
    if robot.followers:  # cylinders beside an arm, that no motion can be planned with
        names = [follower.name for follower in robot.followers]
        following = (finding('followers_stand_still', names),)
        standing = settings.locked | {name: tree.joints[name].rest for name in names}
        settings = dataclasses.replace(settings, locked=standing)
        robot = build_robot(urdf, settings)
    workspace = Workspace(frame=arm.tip, mesh_folders=mesh_folders)
    excitation = ExcitationSettings(workspace=workspace, time_limit=DESIGN_TIME)
    limits, rules, *_ = complete_limits(robot, excitation)
    error = np.where(robot.prismatic, TRACKING_ERROR_PRISMATIC, TRACKING_ERROR)
    gains = [facts.gains.get(joint, {}) for joint in robot.joints]
    p, d = (np.array([row.get(name, 0.0) for row in gains]) for name in 'pd')
    known = (p, d) if facts.command_interface == 'effort' and (p > 0.0).all() else None
    drives = drives_for_gains(robot, excitation, known, facts.update_rate, error)
    margin = min(max(drives.effort_margin, excitation.margins.effort), MAX_EFFORT_MARGIN)
    margins = Margins(effort=round(float(margin), 2))
    limited = dataclasses.replace(robot, limits=limits)
    excitation, notes = place_robot(limited, dataclasses.replace(excitation, margins=margins))
    unchecked = CollisionScene(robot, excitation.workspace).unchecked
    notes, stand = (*robot.warnings, *following, *notes), dict(settings.locked)
    return RobotSetup(
        robot, arm, stand, limits, rules, excitation, error, drives, facts, unchecked, notes
    )
