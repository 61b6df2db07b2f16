"""Resampling as the settings ask for it: bootstrap covariance, leave-one-period-out residuals."""

import dataclasses

from ...exceptions import RecordingError
from ..identification_settings import IdentificationSettings
from ..regression.block_bootstrap import bootstrap, leave_one_out
from ..regression.estimate import Estimate
from ..regression.observation_system import System


def resample(
    estimate: Estimate, system: System, period: float | None, settings: IdentificationSettings
) -> tuple[Estimate, list[str]]:
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
    listed = ', '.join(
        f'{joint} {100 * low:.1f}-{100 * high:.1f} %'
        for joint, low, high in zip(
            system.joints, residuals.min(axis=0), residuals.max(axis=0), strict=True
        )
    )
    return estimate, [f'each of {len(residuals)} periods, predicted from the others: {listed}']
