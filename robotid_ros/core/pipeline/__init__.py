"""From a recording to an identification: the list of the steps, and its result."""

from .identification import identify
from .results import Identification
from .validation import validate

__all__ = ['Identification', 'identify', 'validate']
