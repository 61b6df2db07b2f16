"""Recordings: rosbag2 folders and files, read whole or cut short, written to lose nothing."""

from .mcap_writer import BagWriter
from .recording import ChunkedRecording, open_recording, read_recording
from .repair import repair_bag
from .session import dump_session, Session

__all__ = [
    'BagWriter',
    'ChunkedRecording',
    'Session',
    'dump_session',
    'open_recording',
    'read_recording',
    'repair_bag',
]
