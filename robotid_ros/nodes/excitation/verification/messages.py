"""What `~/verification` says."""

from collections.abc import Iterable, Iterator
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import Header

from ....core.verification.static_postures import JointStatics
from ....files.verification import TrackingRow, Verification
from ...common.messages import status


def verification_message(found: Verification, stamp: Time) -> DiagnosticArray:
    """One status a joint for each thing that was verified, `tracking <joint>` and so on."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(_statuses(found)))


def _statuses(found: Verification) -> Iterator[DiagnosticStatus]:
    yield from _tracking('tracking', 'with feed-forward', found.tracking)
    if found.reason:
        yield status('feed-forward', found.reason, {}, level=DiagnosticStatus.WARN)
    for effort in found.efforts:
        text = f'{100 * effort.relative:.2f} % of the effort is not predicted'
        values = {'relative_residual': effort.relative, 'rms': effort.rms, 'unit': effort.unit}
        yield status(f'effort {effort.joint}', text, values)
    if found.gains is not None:
        values = {'kept': found.gains.kept}
        yield status('gains', found.gains.sentence, values)
        yield from _tracking('gains', 'with the proposed gains', found.gains.tracking)
    for row in found.static:
        text = (
            f'gravity {row.gravity_error:.3g} {row.unit} off, stiction {row.stiction:.3g} '
            f'{row.unit}'
        )
        yield status(f'static {row.joint}', text, _values(row))


def _tracking(kind: str, how: str, rows: Iterable[TrackingRow]) -> Iterator[DiagnosticStatus]:
    for row in rows:
        text = f'tracking error {how}: {row.ratio:.3g} times smaller'
        yield status(f'{kind} {row.joint}', text, {**_values(row), 'ratio': row.ratio})


def _values(row: TrackingRow | JointStatics) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name != 'joint'}
