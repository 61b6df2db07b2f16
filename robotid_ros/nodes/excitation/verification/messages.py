"""What `~/verification` says."""

from collections.abc import Iterable, Iterator

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import Header

from ....files.verification.values import TrackingRow, Verification
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
        values = {
            'gravity': row.gravity,
            'gravity_error': row.gravity_error,
            'gravity_worst': row.gravity_worst,
            'stiction': row.stiction,
            'predicted_stiction': row.predicted_stiction,
            'unit': row.unit,
        }
        yield status(f'static {row.joint}', text, values)


def _tracking(kind: str, how: str, rows: Iterable[TrackingRow]) -> Iterator[DiagnosticStatus]:
    for row in rows:
        text = f'tracking error {how}: {row.ratio:.3g} times smaller'
        values = {
            'rms_before': row.rms_before,
            'rms_after': row.rms_after,
            'peak_before': row.peak_before,
            'peak_after': row.peak_after,
            'ratio': row.ratio,
            'unit': row.unit,
        }
        yield status(f'{kind} {row.joint}', text, values)
