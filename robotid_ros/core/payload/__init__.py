"""Payload and drive gains, from two sessions with different loads."""

from .payload import (
    DriveGains as DriveGains,
    identify_drive_gains as identify_drive_gains,
    identify_payload as identify_payload,
    KnownArm as KnownArm,
    Payload as Payload,
    payload_from_recordings as payload_from_recordings,
)
