"""An identified payload as messages."""

from collections.abc import Mapping
import math
from typing import NamedTuple

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3
from std_msgs.msg import Header

from ...core.findings import Finding
from ..common.messages import format_value, status


class PayloadOutcome(NamedTuple):
    """
    What a payload's identification leaves behind, as plain values.

    Attributes
    ----------
    frame : of all values
    link : whose frame that is
    central : value, σ and unit of mass, centre of mass and inertia at it; σ infinite where the
        data do not determine a value
    parameters : the same of `XX … M` at the frame
    lines : by maker, None where the data lack a number of it
    findings : what to doubt
    path : of the file

    """

    frame: str
    link: str
    central: Mapping[str, tuple[float, float, str]]
    parameters: Mapping[str, tuple[float, float, str]]
    lines: Mapping[str, str | None]
    findings: tuple[Finding, ...]
    path: str

    @property
    def sentence(self) -> str:
        """Mass and centre of mass, as far as they are determined."""
        (mass, sigma, _), *centre = (self.central[name] for name in ('mass', *'xyz'))
        shown = ', '.join(f'{x:.4f}' if math.isfinite(s) else 'unknown' for x, s, _ in centre)
        heavy = f'{mass:.4g} ± {sigma:.2g} kg' if math.isfinite(sigma) else 'an unknown mass'
        return f'{heavy} at ({shown}) m in {self.frame}'


def inertia_message(outcome: PayloadOutcome, stamp: Time) -> InertiaStamped | None:
    """Return the body, None where a value of it is not determined."""
    if not all(math.isfinite(sigma) for _, sigma, _ in outcome.central.values()):
        return None
    m, x, y, z, *moments = (value for value, _, _ in outcome.central.values())
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    inertia = Inertia(m=m, com=Vector3(x=x, y=y, z=z), **dict(zip(names, moments, strict=True)))
    return InertiaStamped(header=Header(stamp=stamp, frame_id=outcome.link), inertia=inertia)


def payload_message(outcome: PayloadOutcome, stamp: Time) -> DiagnosticArray:
    """One status each: body, parameters at the frame, makers' lines; 'value; σ; unit'."""
    lines = {maker: line for maker, line in outcome.lines.items() if line is not None}
    lacking = [name for name, (_, sigma, _) in outcome.central.items() if not math.isfinite(sigma)]
    level = DiagnosticStatus.WARN if lacking else DiagnosticStatus.OK
    said = f'not determined: {", ".join(lacking)}' if lacking else outcome.sentence
    frame = f"where {outcome.frame} is the maker's flange frame"
    statuses = (
        status('payload', said, _entries(outcome.central), level=level),
        status('parameters', f'at {outcome.frame}', _entries(outcome.parameters), level=level),
        status('lines', frame, lines),
    )
    return DiagnosticArray(header=Header(stamp=stamp, frame_id=outcome.link), status=statuses)


def _entries(values: Mapping[str, tuple[float, float, str]]) -> dict[str, str]:
    """Write values that are determined; the others are left out."""
    return {
        name: f'{format_value(value)}; {format_value(sigma)}; {unit}'
        for name, (value, sigma, unit) in values.items()
        if math.isfinite(sigma)
    }
