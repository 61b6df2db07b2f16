"""MoveIt's controllers: its goals go to the node `feedforward`, which adds the efforts."""

from ..yaml import dump_yaml
from .identified_model import IdentifiedModel


def moveit(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Return what stands in MoveIt's `moveit_controllers.yaml` instead of the arm's controller."""
    name = 'feedforward'
    entry = {
        'type': 'FollowJointTrajectory',
        'action_ns': 'follow_joint_trajectory',
        'default': True,
        'joints': list(model.robot.recorded_joints),
    }
    manager = {'controller_names': [name], name: entry}
    note = "the node 'feedforward' must run: it hands MoveIt's goals on to the arm's controller"
    return f'# {note}\n{dump_yaml({"moveit_simple_controller_manager": manager})}', [note]
