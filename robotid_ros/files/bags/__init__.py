"""Recordings: rosbag2 folders and files, read whole or cut short, written to lose nothing."""

from .read.chunked_recording import Tape
from .read.recording import blocks, open_recording, read_recording
from .repair.mcap_recovery import finalise
from .schema.session_header import dump_session, Session
from .write.bag_writer import BagWriter

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
