"""Resampling as the settings ask for it: bootstrap covariance, leave-one-period-out residuals."""

import dataclasses

from ...exceptions import RecordingError
from ..finding_codes import finding
from ..findings import Finding
from ..identification_settings import IdentificationSettings
from ..regression.block_bootstrap import bootstrap, leave_one_out
from ..regression.estimate import Estimate
from ..regression.observation_system import System


def resample(
    estimate: Estimate, system: System, period: float | None, settings: IdentificationSettings
) -> tuple[Estimate, list[Finding]]:
    """Return the estimate with the covariance asked for, and how well periods predict others."""
    if settings.covariance == 'bootstrap':
        covariance = bootstrap(system, estimate.method)
        estimate = dataclasses.replace(estimate, covariance=covariance)
    if not settings.leave_one_out:
        return estimate, []
    if period is None:
        raise RecordingError(
            'leave_one_out needs the period of the motion, two times or more: record such a '
            'trajectory, or set identification.leave_one_out to false'
        )
    method = 'wls' if estimate.method == 'ml' else estimate.method
    residuals = leave_one_out(system, period, method)
    low, high = residuals.min(axis=0), residuals.max(axis=0)
    note = finding('periods_predicted', system.joints, count=len(residuals), low=low, high=high)
    return estimate, [note]
