"""Recordings: rosbag2 folders and files, read whole or cut short, written to lose nothing."""

from .reading import blocks, open_recording, read_recording
from .recovery import finalise
from .session import dump_session, Session
from .tape import Tape
from .writer import BagWriter

__all__ = [
    'BagWriter',
    'Session',
    'Tape',
    'blocks',
    'dump_session',
    'finalise',
    'open_recording',
    'read_recording',
]
