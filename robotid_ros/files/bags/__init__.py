"""Recordings: rosbag2 folders and files, read whole or cut short, written to lose nothing."""

from .read.chunked_recording import ChunkedRecording
from .read.recording import open_recording, read_recording
from .repair.repair import repair_bag
from .schema.session_header import dump_session, Session
from .write.bag_writer import BagWriter

__all__ = [
    'BagWriter',
    'ChunkedRecording',
    'Session',
    'dump_session',
    'open_recording',
    'read_recording',
    'repair_bag',
]
