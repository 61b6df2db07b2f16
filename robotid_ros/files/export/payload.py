"""
An identified payload for other programs: a YAML file, a URDF link, a line for each maker.

Makers differ in units, frames and order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.finding_codes import as_data
from ...core.findings import Finding
from ...core.payload.payload import Payload
from ..atomic import write_text
from ..provenance import versions
from ..yaml import dump_yaml
from .bodies import MOMENTS

# Significant digits of makers' lines: more than any identification knows, enough that a body
# stays possible.
DIGITS = 7
AXES = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')


def write_payload(
    path: str | Path,
    payload: Payload,
    facts: Mapping[str, Any],
    findings: Iterable[Finding],
    link: str = '',
    *,
    overwrite: bool = True,
) -> Path:
    """
    Write a payload; what the data do not determine is null, its σ infinite.

    Facts are plain values: robot, recordings. `link` is the one whose frame that of the payload
    is; '': it has its name. FileError: the file cannot be written.
    """
    columns = (payload.names, payload.value, payload.sigma, payload.units)
    parameters = {
        name: {'value': _known(value, sigma), 'sigma': float(sigma), 'unit': unit}
        for name, value, sigma, unit in zip(*columns, strict=True)
    }
    sigma = payload.central_sigma
    values = [_known(*each) for each in zip(payload.central, sigma, strict=True)]
    content = {
        'format': 1,
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        **facts,
        'frame': payload.frame,
        **_central(values),
        'sigma': _central(sigma.tolist()),
        'possible': payload.consistent,
        'parameters': parameters,
        'lines': maker_lines(payload),
        'urdf': payload_urdf(payload, link or payload.frame),
        'findings': [as_data(found) for found in findings],
        'versions': versions(),
    }
    return write_text(path, dump_yaml(content), overwrite=overwrite)


def payload_urdf(payload: Payload, link: str) -> str | None:
    """Return a link and the joint that fixes it to `link`; None where it has no inertia."""
    if not np.isfinite(payload.central_sigma).all():
        return None
    moments = ' '.join(
        f'{name}="{float(x)!r}"' for name, x in zip(MOMENTS, payload.central[4:], strict=True)
    )
    xyz = ' '.join(repr(float(x)) for x in payload.centre_of_mass)
    return (
        '<link name="payload">\n'
        '  <inertial>\n'
        f'    <origin xyz="{xyz}" rpy="0 0 0"/>\n'
        f'    <mass value="{payload.mass!r}"/>\n'
        f'    <inertia {moments}/>\n'
        '  </inertial>\n'
        '</link>\n'
        '<joint name="payload_joint" type="fixed">\n'
        f'  <parent link="{link}"/>\n'
        '  <child link="payload"/>\n'
        '</joint>\n'
    )


def _known(value: float, sigma: float) -> float | None:
    return float(value) if np.isfinite(sigma) else None


def _central(values: Sequence[float | None] | Array) -> dict[str, Any]:
    """Name mass, centre of mass and inertia at it, (10,)."""
    return {
        'mass': values[0],
        'centre_of_mass': list(values[1:4]),
        'inertia_at_centre': dict(zip(AXES, values[4:], strict=True)),
    }


def maker_lines(payload: Payload) -> dict[str, str | None]:
    """
    Return the line to paste for each maker's controller, None where the data lack a number of it.

    All count in the frame of the payload, which has to be the maker's flange frame.
    """
    known = np.isfinite(payload.central_sigma)
    return {
        maker: line(payload) if known[: 10 if inertia else 4].all() else None
        for maker, (line, inertia) in MAKERS.items()
    }


def universal_robots(payload: Payload) -> str:
    """URScript: kg, m, kg·m² at the centre of mass, axes of the tool flange; xx yy zz xy xz yz."""
    xx, xy, xz, yy, yz, zz = payload.central[4:]
    values = [_number(payload.mass), f'[{_numbers(payload.centre_of_mass)}]']
    if np.isfinite(payload.central_sigma).all():
        values.append(f'[{_numbers((xx, yy, zz, xy, xz, yz))}]')
    return f'set_target_payload({", ".join(values)})'


def franka(payload: Payload) -> str:
    """C++ of libfranka: kg, m from the flange, kg·m² at the centre of mass by columns."""
    inertia = _numbers(payload.inertia.ravel(order='F'))
    centre = _numbers(payload.centre_of_mass)
    return f'robot.setLoad({_number(payload.mass)}, {{{{{centre}}}}}, {{{{{inertia}}}}});'


def kuka(payload: Payload) -> str:
    """
    KRL: kg, mm from the flange, kg·m² about the principal axes through the centre of mass.

    A, B, C [degrees] turn the flange's axes into the principal ones: A about Z, then B about the
    new Y, then C about the new X.
    """
    from scipy.spatial.transform import Rotation

    moments, axes = principal_axes(payload.inertia)
    angles = Rotation.from_matrix(axes).as_euler('ZYX', degrees=True)
    frame = dict(zip('XYZABC', (*(1000.0 * payload.centre_of_mass), *angles), strict=True))
    inertia = dict(zip('XYZ', moments, strict=True))
    return (
        f'LOAD_DATA[1]={{M {_number(payload.mass)},CM {{{_fields(frame)}}},'
        f'J {{{_fields(inertia)}}}}}'
    )


def kinova(payload: Payload) -> str:
    """Python of the Kortex API: kg, m from the interface module; it takes no inertia."""
    centre = 'tool.tool_mass_center'
    return (
        'tool = control_config.GetToolConfiguration(); '
        f'tool.tool_mass = {_number(payload.mass)}; '
        f'{centre}.x, {centre}.y, {centre}.z = {_numbers(payload.centre_of_mass)}; '
        'control_config.SetToolConfiguration(tool)'
    )


# Of each maker: its line, and whether it cannot do without the inertia.
MAKERS: dict[str, tuple[Callable[[Payload], str], bool]] = {
    'universal_robots': (universal_robots, False),
    'franka': (franka, True),
    'kuka': (kuka, True),
    'kinova': (kinova, False),
}


def principal_axes(inertia: Array) -> tuple[Array, Array]:
    """
    Return principal moments (3,) and a rotation (3, 3) with I = R diag(moments) Rᵀ.

    Of the 24 rotations that do, the one that turns least.
    """
    moments, vectors = np.linalg.eigh(inertia)
    rotations = [
        (order, vectors[:, order] * signs)
        for order in map(list, itertools.permutations(range(3)))
        for signs in itertools.product((1.0, -1.0), repeat=3)
        if np.linalg.det(vectors[:, order] * signs) > 0.0
    ]
    order, axes = max(rotations, key=lambda each: np.trace(each[1]))  # 1 + 2 cos of the angle
    return moments[order], axes


def _fields(values: dict[str, float]) -> str:
    return ','.join(f'{name} {_number(value)}' for name, value in values.items())


def _numbers(values: Sequence[float] | Array) -> str:
    return ', '.join(map(_number, values))


def _number(value: float) -> str:
    """Write a number without an exponent, which not every controller reads."""
    return np.format_float_positional(
        float(value) + 0.0, precision=DIGITS, fractional=False, trim='0'
    )
