"""
An identified robot as SDFormat, for Gazebo.

Links that move as one are one link, as Gazebo has them of a URDF too: a link without mass would
get the default of 1 kg. Those that are fixed to it are frames of their names. The version is the
first one with joints that mimic others; Gazebo Harmonic reads it.
"""

import numpy as np

from .bodies import explain_impossible, MOMENTS, principal_inertia, read_parts, render_description
from .identified_model import explain_losses, FRICTION, IdentifiedModel, SPRINGS

WORLD, JOINT_SUFFIX = 'world', '_joint'


def sdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Write an identified robot as SDFormat, with a comment on what it lacks; return both."""
    model = model.for_simulation
    parts = read_parts(model)
    bodies, links = parts.bodies, {name for body in parts.bodies for name in body.links}
    rows = []
    for body in bodies:
        # The world is no link: where a description has one of this name, what is fixed to it is.
        name = next((name for name in body.links if name != WORLD), WORLD)
        back, centre = np.linalg.inv(body.links[name]), np.eye(4)
        mass, centre[:3, 3], moments, axes = principal_inertia(back @ body.inertial @ back.T)
        tensor = ((axes * moments) @ axes.T)[np.triu_indices(3)]
        places = {link: back @ place for link, place in body.links.items() if link != WORLD}
        rows.append((body, name, centre, mass, dict(zip(MOMENTS, tensor, strict=True)), places))
    notes = explain_losses(model, {FRICTION, SPRINGS}) + explain_impossible(bodies)
    taken = sorted(links & {joint.name for joint in parts.joints})
    if taken:
        notes.append(
            f'joints may not be named like links: {", ".join(taken)} got {JOINT_SUFFIX} behind it'
        )

    def free(joint: str) -> str:
        """Return the name of a joint: all names of a model have to differ."""
        return joint + JOINT_SUFFIX if joint in links else joint

    values = vars(parts) | {'model': model, 'bodies': rows, 'notes': notes}
    return render_description('sdf.xml', values, free=free), notes
