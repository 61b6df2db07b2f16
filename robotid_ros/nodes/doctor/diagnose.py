"""All checks of a graph."""

from ...core.findings import Finding, in_order
from .client_checks import client_findings, publisher_findings
from .controller_checks import controller_findings, manager_findings
from .description_checks import described_robot
from .effort_checks import effort_findings
from .graph_snapshot import GraphSnapshot
from .joint_state_checks import joint_state_findings
from .network_checks import network_findings, quality_findings
from .recording_checks import disk_findings


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
            *publisher_findings(snapshot),
            *quality_findings(snapshot),
            *disk_findings(snapshot),
        )
    )
