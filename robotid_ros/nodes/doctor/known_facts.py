"""What a live robot tells a configuration that is written for it."""

import dataclasses
from typing import Any

from ...core.setup.robot_setup import KnownFacts
from ...exceptions import ControllerError, ModelError
from ...simulation_settings import GainSettings
from ..common.controller import ControllerDescription
from .graph_snapshot import GraphSnapshot
from .weight_checks import effort_kind


def known_facts(snapshot: GraphSnapshot) -> tuple[str, KnownFacts]:
    """
    Read a robot's description, controller and efforts from its graph.

    Returns
    -------
    The description's text, and what is known besides.

    Raises
    ------
    ModelError : nobody publishes a description, or there are several
    ControllerError : no joint_trajectory_controller answers

    """
    controller = snapshot.controller
    if controller is None:
        found = ', '.join(snapshot.candidates)
        remedy = f'name one of {found} by --controller' if found else "'robotid doctor' says more"
        raise ControllerError(f"no controller answers as '{snapshot.controller_name}': {remedy}")
    if len(snapshot.descriptions) != 1:
        count = len(snapshot.descriptions) or 'no'
        raise ModelError(
            f'there are {count} robot descriptions on the graph, one is needed: start '
            'robot_state_publisher once, or name the URDF'
        )
    facts = KnownFacts(
        joints=controller.joints,
        controller=snapshot.controller_name,
        update_rate=snapshot.rate or KnownFacts.update_rate,
        command_interface=controller.followed_interface,
        gains={joint: _gains(controller, joint) for joint in controller.gains},
        effort_kind=effort_kind(snapshot),
    )
    return snapshot.descriptions[0], facts


def _gains(controller: ControllerDescription, joint: str) -> dict[str, Any]:
    """Gains of a joint that differ from the defaults."""
    found = {}
    for field in dataclasses.fields(GainSettings):
        name = f'gains.{joint}.{field.name}'
        value = controller.gains[joint].get(field.name, controller.values.get(name))
        if value is not None and (value != field.default or field.name in ('p', 'd')):
            found[field.name] = value
    return found
