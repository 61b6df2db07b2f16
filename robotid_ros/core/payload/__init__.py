"""Payload and drive gains, from two sessions with different loads."""

from .drive_gains import DriveGains, identify_drive_gains
from .payload import identify_payload, KnownArm, Payload, payload_from_recordings

__all__ = [
    'DriveGains',
    'KnownArm',
    'Payload',
    'identify_drive_gains',
    'identify_payload',
    'payload_from_recordings',
]
