"""What an identification leaves behind, and its results as messages."""

from collections.abc import Iterable, Sequence
import math
from pathlib import Path
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from ...core.model import RobotSettings
from ...core.monitoring.external_effort import ContactThresholds
from ...core.regression.validation import Validation
from ...core.verification.gains import GainProposal
from ...files.results import Results
from ...files.verification import proposal_sentence
from ..common.messages import format_value, status, status_array, to_time


class IdentificationOutcome(NamedTuple):
    """What topics need of an identification."""

    results: Results
    folder: Path  # of the files
    source_urdf: str  # from which the robot was built
    robot_settings: RobotSettings  # with the joints and the friction that were chosen
    urdf: str  # with identified parameters
    chi: np.ndarray  # (p,) parameters that give the identified torques, others zero
    consistent: np.ndarray  # (p,) parameters of bodies that can exist
    thresholds: ContactThresholds | str  # of external efforts, or why there are none
    gains: GainProposal | str  # for the recording's, or why there are none; '': no such controller
    origin: int  # the robot's clock at time 0 of the results [ns]


def parameters_message(results: Results, stamp: Time) -> DiagnosticArray:
    """One status a joint: `ZZ1R`, `standard.ZZ1`, `didim.ZZ1R`: 'value; σ; %σ; unit; class'."""
    groups, other = dict[str, dict[str, str]](), results.compared
    both = {'': results.base, 'standard.': results.standard}
    more = {f'{other.method}.': other.base} if other else {}
    for prefix, entries in (both | more).items():
        for entry in entries:
            numbers = map(format_value, map(float, (entry.value, entry.sigma, entry.percent)))
            text = '; '.join((*numbers, entry.unit, entry.kind))
            groups.setdefault(entry.joint, {})[f'{prefix}{entry.name}'] = text
    title = f'{results.method}: value; σ; %σ; unit; class'
    return status_array(stamp, (status(joint, title, values) for joint, values in groups.items()))


def summary_message(results: Results, stamp: Time) -> DiagnosticArray:
    """One status per joint: relative residual, R² and RMS, of validation and of identification."""
    fits, statuses = {row.joint: row for row in results.identification}, []
    title = 'on the validation trajectory' if results.validation else 'on the identified motion'
    for row in results.validation or results.identification:
        fit = fits[row.joint]
        values = {
            'relative_residual': row.relative,
            'moving_relative_residual': row.moving,
            **{name: getattr(row, name) for name in ('r2', 'rms', 'torque', 'unit')},
            'fit_relative_residual': fit.relative,
            **{'fit_r2': fit.r2, 'fit_rms': fit.rms},
        }
        text, failed = f'{100.0 * row.relative:.2f} % {title}', not math.isfinite(row.relative)
        statuses.append(status(row.joint, text, values, failed=failed))
    return status_array(stamp, statuses)


def gains_message(proposal: GainProposal, stamp: Time) -> DiagnosticArray:
    """One status per joint: old and new p, i, d, ω_n, ζ and margins, and what they are worth."""
    statuses, text = [], proposal_sentence(proposal)
    for k, (joint, new) in enumerate(proposal.new.items()):
        values: dict[str, Any] = {'inertia': new.inertia, 'better': proposal.better}
        values['error_ratio'] = proposal.ratio[k] if proposal.ratio else math.nan
        both = (proposal.old[joint], proposal.margins), (new, proposal.new_margins)
        for prefix, (gains, margins) in zip(('old', 'new'), both, strict=True):
            for name in ('p', 'i', 'd', 'natural_frequency', 'damping'):
                values[f'{prefix}_{name}'] = getattr(gains, name)
            values[f'{prefix}_gain_margin'], values[f'{prefix}_phase_margin'] = margins
        statuses.append(status(joint, text, values))
    return status_array(stamp, statuses)


def effort_messages(torques: Validation, values: np.ndarray, origin: int) -> Iterable[JointState]:
    """Efforts at the recorded stamps, one message a sample; `origin` is time zero [ns]."""
    for time, effort in zip(torques.time, values, strict=True):
        yield effort_message(torques.joints, origin + round(float(time) * 1e9), effort)


def effort_message(joints: Sequence[str], stamp: int, effort: np.ndarray) -> JointState:
    """Efforts of all joints at a stamp [ns]."""
    header = Header(stamp=to_time(stamp))
    return JointState(header=header, name=list(joints), effort=np.asarray(effort, float).tolist())
