"""Descriptions of robots, made of rows: (joint, type, parent link, child link)."""

from collections.abc import Iterable

Row = tuple[str, str, str, str]
LIMIT = '<limit lower="-2" upper="2" velocity="2" effort="60"/>'
INERTIAL = (
    '<inertial><origin xyz="0.02 0.01 {z}"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def chain(prefix: str, parent: str, count: int) -> list[Row]:
    """Return revolute joints in series from a link, a tool of its joint's name at their end."""
    links = [parent, *(f'{prefix}_link_{k}' for k in range(1, count + 1))]
    rows = [(f'{prefix}_{k}', 'revolute', links[k - 1], links[k]) for k in range(1, count + 1)]
    return [*rows, (f'{prefix}_tool0', 'fixed', links[-1], f'{prefix}_tool0')]


def description(
    rows: Iterable[Row],
    inside: dict[str, str] | None = None,
    shapes: dict[str, str] | None = None,
    end: str = '',
    mass: float = 1.0,
) -> str:
    """
    Write a URDF; axes turn from z to y and back along a chain, links are 0.3 m long.

    Parameters
    ----------
    rows : the joints
    inside : what a joint holds besides, instead of its limits
    shapes : collision elements by link
    end : what stands behind all links and joints
    mass : of each link [kg]

    """
    rows, parts = list(rows), ['<robot name="made">']
    links = list(dict.fromkeys(name for row in rows for name in row[2:]))
    inertial = INERTIAL.format(z=0.15, mass=mass)
    for name in links:
        shape = (shapes or {}).get(name, '')
        parts.append(f'<link name="{name}">{inertial}{shape}</link>')
    for number, (name, kind, parent, child) in enumerate(rows):
        axis = '0 0 1' if number % 2 == 0 else '0 1 0'
        own = (inside or {}).get(name, LIMIT)
        z = 0.0 if parent == links[0] else 0.3
        parts.append(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="0 0 {z}"/><axis xyz="{axis}"/>{own}</joint>'
        )
    return ''.join([*parts, end, '</robot>'])
