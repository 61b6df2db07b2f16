"""Payload and drive gains, from two sessions with different loads."""

from .payload import (
    DriveGains,
    identify_drive_gains,
    identify_payload,
    KnownArm,
    Payload,
    payload_from_recordings,
)

__all__ = [
    'DriveGains',
    'KnownArm',
    'Payload',
    'identify_drive_gains',
    'identify_payload',
    'payload_from_recordings',
]
