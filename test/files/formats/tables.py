"""Tables of a small arm for the tests."""

import numpy as np

from robotid_ros.files.formats.open_table import read_joint_table
from robotid_ros.files.formats.read_options import ReadOptions
from robotid_ros.files.formats.table import from_arrays

TIME = np.arange(600) * 0.01
Q = np.column_stack([np.sin(2.0 * TIME), 0.5 * np.cos(3.0 * TIME)])
DQ = np.column_stack([2.0 * np.cos(2.0 * TIME), -1.5 * np.sin(3.0 * TIME)])
# No multiple of a velocity, however late, which one sine and its derivative make.
TAU = Q + 3.0 * DQ + 2.0 * np.cos(Q)

_JOINT = """<link name="{0}_link"/><joint name="{0}" type="{1}"><parent link="{2}"/>
<child link="{0}_link"/><axis xyz="0 0 1"/><limit lower="-1.5" upper="1.5"/></joint>"""


def urdf(*joints, kinds=()):
    """Chain joints, revolute ones but for `kinds`."""
    parts, parent = ['<robot name="arm"><link name="base"/>'], 'base'
    for k, joint in enumerate(joints):
        parts.append(_JOINT.format(joint, kinds[k] if kinds else 'revolute', parent))
        parent = f'{joint}_link'
    return ''.join([*parts, '</robot>'])


def table(**columns):
    """Make a table; a matrix `q_` becomes the columns q_1, q_2, …."""
    arrays = {}
    for name, values in columns.items():
        if np.ndim(values) == 2 and name.endswith('_'):
            arrays |= {f'{name}{k + 1}': values[:, k] for k in range(values.shape[1])}
        else:
            arrays[name] = np.asarray(values)
    return from_arrays('log.csv', arrays)


def read(options=None, joints=('a', 'b'), **columns):
    """Read joint states of a table, columns as in `table`."""
    columns = {'t': TIME, 'q_': Q, 'tau_': TAU} | columns
    columns = {name: values for name, values in columns.items() if values is not None}
    given = {'urdf': urdf(*joints)} | (options or {})
    return read_joint_table(table(**columns), ReadOptions(**given))
