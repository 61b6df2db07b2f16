"""All checks of a graph."""

import dataclasses
from typing import Any

from ...core.findings import Finding, in_order
from ...core.setup.robot_setup import KnownFacts
from ...exceptions import ControllerError, ModelError
from ...simulation_settings import GainSettings
from ..common.controller import ControllerDescription
from .controller_checks import controller_findings, manager_findings
from .effort_checks import described_robot, effort_findings, effort_kind
from .graph_snapshot import GraphSnapshot
from .joint_state_checks import joint_state_findings
from .network_checks import client_findings, disk_findings, network_findings, quality_findings

# By the first three characters of a code.
SUBJECTS = dict(
    F10='network', F11='topics', F12='controller', F13='DIDIM', F14='hardware',
    F15='joint states', F16='timing', F17='clock', F18='efforts', F19='description',
    F20='other clients', F21='disk',
)  # fmt: skip


def subject_of(found: Finding) -> str:
    """Return what was looked at; findings of the model are about the description."""
    return SUBJECTS[found.code[:3]] if len(found.code) > 4 else 'description'


def known_facts(snapshot: GraphSnapshot) -> tuple[str, KnownFacts]:
    """
    Return the text of a robot's description, and what else its graph tells.

    No description or several are a ModelError, no joint_trajectory_controller a ControllerError.
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


def diagnose(snapshot: GraphSnapshot) -> tuple[Finding, ...]:
    """Return what there is to say about a graph, the worst first."""
    robot, description = described_robot(snapshot)
    if not snapshot.nodes:  # whatever is missing is missing for that reason
        return in_order((*network_findings(snapshot), *disk_findings(snapshot)))
    return in_order(
        (
            *network_findings(snapshot),
            *controller_findings(snapshot, robot),
            *manager_findings(snapshot),
            *joint_state_findings(snapshot, robot),
            *effort_findings(snapshot, robot),
            *description,
            *client_findings(snapshot),
            *quality_findings(snapshot),
            *disk_findings(snapshot),
        )
    )
