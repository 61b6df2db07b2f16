"""Pinocchio's model of a description."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pinocchio

from ...exceptions import ModelError, reason_of
from .urdf_parsing import MOVABLE_TYPES

UNLIMITED = '1e30'  # larger limits are none: continuous joints get it as revolute ones


def build_model(root: ElementTree.Element) -> Any:
    """Build Pinocchio's model of all joints, writing limits that lack, or raise a ModelError."""
    for joint in root.findall('joint'):
        if joint.get('type') in MOVABLE_TYPES:
            limit = joint.find('limit')
            if limit is None:
                limit = ElementTree.SubElement(joint, 'limit')
            limit.attrib = {'effort': UNLIMITED, 'velocity': UNLIMITED, **limit.attrib}
            for key in ('effort', 'velocity'):
                if limit.attrib[key].lstrip().startswith('-'):  # which some write for none
                    limit.attrib[key] = UNLIMITED
            if joint.get('type') == 'continuous':
                joint.set('type', 'revolute')
                limit.attrib |= {'lower': f'-{UNLIMITED}', 'upper': UNLIMITED}
        if (mimic := joint.find('mimic')) is not None:
            joint.remove(mimic)
    try:
        return pinocchio.buildModelFromXML(ElementTree.tostring(root, encoding='unicode'))
    except (ValueError, RuntimeError, IndexError) as error:
        raise ModelError(
            f'the robot description is not a usable URDF ({reason_of(error)}): check it with '
            'check_urdf'
        ) from error
