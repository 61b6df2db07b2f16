"""An exported SDFormat file as a model of Pinocchio, by the rules of SDFormat 1.11."""

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

AXIS = {'revolute': pin.JointModelRevoluteUnaligned, 'prismatic': pin.JointModelPrismaticUnaligned}
AXIS['continuous'] = AXIS['revolute']


def numbers(element, tag):
    return np.array([float(word) for word in element.findtext(tag).split()])


def pose(element):
    x = numbers(element, 'pose')
    return pin.SE3(pin.Quaternion(x[6], *x[3:6]).matrix(), x[:3])


def model_of(text):
    """Build Pinocchio's model by the rules of SDFormat 1.11: frames are relative to others."""
    (robot,) = ElementTree.fromstring(text).findall('model')
    joints = {j.findtext('child'): j for j in robot.findall('joint')}
    model, numbers_of = pin.Model(), {}
    for link in robot.findall('link'):
        name, joint = link.get('name'), joints[link.get('name')]
        parent, number = joint.findtext('parent'), 0
        if joint.get('type') != 'fixed':
            place = pose(joint)
            assert link.find('pose').get('relative_to') == joint.get('name')
            frame = joint.find('pose').get('relative_to')
            moves = parent in joints and joints[parent].get('type') != 'fixed'
            assert frame == (parent if moves else '__model__')
            kind = AXIS[joint.get('type')](numbers(joint.find('axis'), 'xyz'))
            number = model.addJoint(numbers_of.get(parent, 0), kind, place, joint.get('name'))
            inertial = link.find('inertial')
            tensor = [float(inertial.find('inertia').findtext(k)) for k in TENSOR]
            central = np.array(tensor)[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
            mass = float(inertial.findtext('mass'))
            body = pin.Inertia(mass, np.zeros(3), central).se3Action(pose(inertial))
            model.appendBodyToJoint(number, body, pin.SE3.Identity())
        numbers_of[name] = number
    return model, robot


TENSOR = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
