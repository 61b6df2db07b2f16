"""From samples to parameters: the observation system, estimators, what follows from them."""

from ..model.base_parameters import base_parameters
from ..payload.drive_gains import DriveGains, identify_drive_gains
from ..payload.payload import identify_payload, Payload, payload_between
from ..regression.estimators import fit
from ..regression.goodness_of_fit import Validation
from .identify import identify
from .results import BaseParameters, Essential, Estimate, Identification, Standard
from .settings import IdentificationSettings
from .validation import validate

__all__ = [
    'BaseParameters',
    'DriveGains',
    'Essential',
    'Estimate',
    'Identification',
    'IdentificationSettings',
    'Payload',
    'Standard',
    'Validation',
    'base_parameters',
    'fit',
    'identify',
    'identify_drive_gains',
    'identify_payload',
    'payload_between',
    'validate',
]
