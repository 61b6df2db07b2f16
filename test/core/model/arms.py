"""Robots to test with, as URDF text."""

from robotid_ros.core.model import build_robot, Robot, RobotSettings

LINK = """
<link name="{name}"><inertial><origin xyz="{x} {y} {z}" rpy="0.1 0.2 0.3"/><mass value="{m}"/>
<inertia ixx="0.02" ixy="0.001" ixz="0.002" iyy="0.03" iyz="-0.001" izz="0.025"/></inertial></link>
"""
JOINT = """
<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>
<limit lower="-2" upper="2" velocity="3" effort="50"/>
<dynamics damping="0.5" friction="0.25"/>{extra}</joint>
"""
# A rod that hangs on one joint.
ROD = """
<robot name="rod">
  <link name="base"/>
  <joint name="a" type="revolute">
    <parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="10" effort="100"/>
  </joint>
  <link name="rod"><inertial><origin xyz="0 0 -0.3"/><mass value="4"/>
    <inertia ixx="0.2" iyy="0.2" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>
"""


def urdf(
    kinds: tuple[str, ...] = ('revolute', 'revolute', 'prismatic', 'continuous'),
    names: tuple[str, ...] = ('waist', 'arm', 'slide', 'turn'),
    rpy: str = '1.5707963267948966 0 0.3',
    extra: str = '',
) -> str:
    """Return an arm of several joints, with names that are not in alphabetical order."""
    parts = [LINK.format(name='base', x=0, y=0, z=0, m=1)]
    parent = 'base'
    for k, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        child = f'link_{k}'
        parts.append(LINK.format(name=child, x=0.1, y=0.02 * k, z=0.05, m=1.5 + k))
        parts.append(
            JOINT.format(
                name=name,
                kind=kind,
                parent=parent,
                child=child,
                xyz='0.2 0.05 0.3',
                rpy=rpy,
                axis='0 0 1' if k % 2 else '0 1 0',
                extra=extra if k == len(kinds) - 1 else '',
            )
        )
        parent = child
    return f'<robot name="arm">{"".join(parts)}</robot>'


def arm(**settings: object) -> Robot:
    """Return the robot of `urdf()`."""
    return build_robot(urdf(), RobotSettings(**settings))
