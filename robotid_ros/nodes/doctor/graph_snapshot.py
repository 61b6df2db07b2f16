"""A ROS graph as it was heard and asked for a moment, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...files.configuration import Configuration
from ...files.formats.joint_table import JointTable
from ..common.controller import ControllerDescription

Stamps = NDArray[np.int64]


@dataclass(frozen=True)
class Endpoint:
    """A publisher or subscription: full name of its node, and its quality of service."""

    node: str
    reliable: bool = True
    latched: bool = False


@dataclass(frozen=True)
class Topic:
    """A topic by its full name, and who uses it."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscribers: tuple[Endpoint, ...] = ()

    @property
    def publishing_nodes(self) -> str:
        """Names of the nodes that publish."""
        return ', '.join(sorted({end.node for end in self.publishers}))


@dataclass(frozen=True)
class ControllerStates:
    """When a controller said its state (K,) [ns], and whether the last one holds efforts."""

    received: Stamps
    commands_effort: bool = False


@dataclass(frozen=True)
class ManagerState:
    """
    What controller_manager says.

    Attributes
    ----------
    controllers, hardware : states such as 'active' by name
    types : type of each controller, where it is known
    claimed : command interfaces that each controller holds, where it is known
    in_gazebo : whether some hardware is Gazebo's
    rate : its update rate [Hz], 0 when unknown
    warnings : what it complains about on /diagnostics
    obstacle : why its services were not asked, '' when they were

    """

    controllers: Mapping[str, str] = field(default_factory=dict)
    hardware: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    claimed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    in_gazebo: bool = False
    rate: float = 0.0
    warnings: tuple[str, ...] = ()
    obstacle: str = ''


@dataclass(frozen=True)
class Disk:
    """Where recordings will go: the folder, why nothing can be written there, free space [B]."""

    folder: str
    obstacle: str = ''
    free: int = 0


@dataclass(frozen=True)
class GraphSnapshot:
    """
    Everything that the doctor listened to and asked for.

    Attributes
    ----------
    configuration : of the robot, defaults where none was given
    controller_name : of the joint_trajectory_controller that is meant, relative to the namespace
    name_was_given : whether a user named it
    candidates : controllers that serve follow_joint_trajectory, likewise
    controller : what it says about itself, None where it does not answer
    nodes : all others on the graph
    topics : by the names that this package gives them, such as 'joint_states'
    joint_state_topics : every topic of JointState on the graph
    joint_states : those of each set of joints, the fullest first
    malformed : joint states that name a joint twice or lack values
    controller_states : of that controller
    descriptions : different texts on robot_description
    configured_description : text of the URDF that the configuration names, '' without one
    running_goals : of the controller's action
    clock : (2, K) when /clock was received, and the time it told [ns]; empty with real time
    manager : None where no controller_manager is there
    environment : variables that decide who hears whom
    disk : where recordings go

    """

    configuration: Configuration
    controller_name: str
    name_was_given: bool = False
    candidates: tuple[str, ...] = ()
    controller: ControllerDescription | None = None
    nodes: tuple[str, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    joint_state_topics: tuple[str, ...] = ()
    joint_states: tuple[JointTable, ...] = ()
    malformed: int = 0
    controller_states: ControllerStates | None = None
    descriptions: tuple[str, ...] = ()
    configured_description: str = ''
    running_goals: int = 0
    clock: Stamps = field(default_factory=lambda: np.empty((2, 0), np.int64))
    manager: ManagerState | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    disk: Disk | None = None

    def topic(self, name: str) -> Topic:
        """Return a topic by this package's name; one without anybody where it is unknown."""
        return self.topics.get(name, Topic(name))

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints that are meant: the configuration's, else the controller's."""
        given = self.configuration.robot.joints
        return given or (self.controller.joints if self.controller is not None else ())

    @property
    def rate(self) -> float:
        """Update rate of the controller, 0 when unknown [Hz]."""
        own = self.controller.rate if self.controller else 0.0
        return own or (self.manager.rate if self.manager else 0.0)

    @property
    def description(self) -> str:
        """Description that a session would take, '' without any."""
        return self.configured_description or next(iter(self.descriptions), '')

    @property
    def states(self) -> JointTable | None:
        """The joint states that hold most of the joints that are meant, None where silent."""
        wanted = set(self.joints)
        return max(
            self.joint_states,
            key=lambda stream: (len(wanted & set(stream.joints)), len(stream.stamp)),
            default=None,
        )
