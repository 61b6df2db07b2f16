"""The identified description as URDF, and what a URDF lacks, the rotors, as SRDF."""

from xml.etree import ElementTree as ET

from ...core.model.urdf_parsing import parse_urdf, snap_angles
from .drives import explain_losses, FRICTION, ROTORS, values_by_joint
from .identified_model import IdentifiedModel
from .identified_urdf import identified_urdf
from .xml_text import comment

KEPT = frozenset({FRICTION, ROTORS})
ROTOR_NOTE = (
    'rotor inertias stand in armature of <dynamics>, which MuJoCo, Gazebo, Pinocchio and KDL do '
    'not read from a URDF: take mjcf or srdf'
)


def urdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """
    Write the identified description with a comment at its end on what it does not hold.

    Returns
    -------
    The text, and the sentences of the comment.

    """
    notes = explain_losses(model, KEPT)
    if model.robot.rotor_inertia:
        notes.insert(0, ROTOR_NOTE)
    notes += snap_angles(parse_urdf(model.robot.urdf))
    text = identified_urdf(model.robot, model.chi, model.plain_friction).rstrip()
    return f'{text}\n{ET.tostring(comment(notes), encoding="unicode")}\n', notes


def srdf(model: IdentifiedModel) -> tuple[str, list[str]]:
    """
    Write rotor inertias as an SRDF for `pinocchio.loadRotorParameters`.

    What it calls `mass` is the inertia of the rotor, on the joint's side with a gear ratio of 1.

    Returns
    -------
    The text, and sentences on what it does not hold, which also stand in it.

    """
    file = ET.Element('robot', name=model.robot.name)
    rotors = ET.SubElement(file, 'rotor_params')
    for joint, values in values_by_joint(model.robot, model.chi).items():
        if joint in model.robot.joints and 'Ia' in values:
            inertia = repr(max(values['Ia'], 0.0))
            ET.SubElement(rotors, 'joint', name=joint, mass=inertia, gear_ratio='1')
    names = ', '.join(coupling.name for coupling in model.robot.couplings)
    notes = ['it holds rotor inertias alone: take the rest from a URDF']
    if names:
        notes.append(f'motors that drive several joints ({names}) are left out')
    file.insert(0, comment(notes))
    ET.indent(file)
    return ET.tostring(file, encoding='unicode') + '\n', notes
