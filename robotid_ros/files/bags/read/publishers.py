"""Joint states of several publishers as one table, in the order of joints asked for."""

from collections.abc import Callable, Sequence

import numpy as np

from ....exceptions import RecordingError, UnknownNameError
from .joint_states import FIELDS, JointStates

# Publishers of some joints each are interpolated together when this share of their stamps has
# neighbours in all of them, at most so many usual intervals apart: a tenth may be lost at the ends
# and in gaps, publishers that ran one after the other are refused.
MIN_SHARED, MAX_SPACING = 0.9, 4.0


def select_joints(tables: Sequence[JointStates], joints: Sequence[str] | None) -> JointStates:
    """
    Make one table with the joints asked for.

    One publisher that has them all is preferred, then one with effort, then the fastest; several
    that have some of them each are joined by interpolation.

    Raises
    ------
    UnknownNameError : nobody publishes a joint
    RecordingError : the joints come from publishers that do not run at one time

    """
    ranked = sorted(tables, key=lambda t: (t.has_effort, len(t.stamp)), reverse=True)
    if joints is None:
        joints = ranked[0].joints
    known = tuple(sorted({name for table in ranked for name in table.joints}))
    for joint in joints:
        if joint not in known:
            raise UnknownNameError('joint of the recording', joint, known)
    for table in ranked:
        if set(joints) <= set(table.joints):
            return table.columns(joints)
    return _interpolate_together(ranked, joints)


def _interpolate_together(ranked: Sequence[JointStates], joints: Sequence[str]) -> JointStates:
    """Bring all publishers onto the stamps of the slowest; exact where they run in step."""
    owners = {j: next(t for t in ranked if j in t.joints) for j in joints}
    used = {id(t): t for t in owners.values()}
    slowest = min(used.values(), key=lambda t: len(t.stamp))
    groups = ' and '.join(f'[{", ".join(t.joints)}]' for t in used.values())
    # A sample counts where every publisher has one before and one after it, not far away.
    together = np.ones(len(slowest.stamp), dtype=bool)
    columns: dict[str, dict[str, np.ndarray]] = {f: {} for f in FIELDS}
    exact = True
    for key, table in used.items():
        sorted_table = table.rows(np.unique(table.stamp, return_index=True)[1])
        inside, interpolate = _interpolator(slowest.stamp, sorted_table.stamp)
        together &= inside
        exact &= bool(np.isin(slowest.stamp, sorted_table.stamp).all())
        for joint in (j for j in joints if id(owners[j]) == key):
            index = table.joints.index(joint)
            for name in FIELDS:
                values = getattr(sorted_table, name)[:, index]
                columns[name][joint] = interpolate(values)
    if together.mean() < MIN_SHARED:
        raise RecordingError(
            f'joint states come from several publishers that do not run at one time ({groups}): '
            'record one publisher of all joints, or identify each group by itself'
        )
    note = '' if exact else f'{groups} come from different publishers: interpolated'
    tables = (np.column_stack([columns[f][j] for j in joints]) for f in FIELDS)
    notes = (note,) if note else ()
    result = JointStates(tuple(joints), slowest.stamp, slowest.received, *tables, notes=notes)
    return result.rows(together)


def _interpolator(
    wanted: np.ndarray, stamp: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return where stamps lie between others, not far from them, and how to interpolate there."""
    if len(stamp) < 2:
        return np.zeros(len(wanted), dtype=bool), lambda v: np.full(len(wanted), np.nan)
    after = np.clip(np.searchsorted(stamp, wanted), 1, len(stamp) - 1)
    width = stamp[after] - stamp[after - 1]
    usual = float(np.median(np.diff(stamp)))
    # At the ends half a sample is not worth a hole.
    inside = (wanted >= stamp[0] - 0.5 * usual) & (wanted <= stamp[-1] + 0.5 * usual)
    return inside & (width <= MAX_SPACING * usual), lambda v: np.interp(
        wanted - stamp[0], stamp - stamp[0], v
    )
