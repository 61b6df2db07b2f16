"""Recordings: rosbag2 folders and files, read whole or cut short, written to lose nothing."""

from .mcap_writer import BagWriter
from .recording import ChunkedRecording, open_recording
from .session import dump_session, RecordedSession

__all__ = ['BagWriter', 'ChunkedRecording', 'RecordedSession', 'dump_session', 'open_recording']
