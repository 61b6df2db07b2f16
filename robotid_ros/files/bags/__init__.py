"""Recordings: rosbag2 folders and files, read whole or cut short, written to lose nothing."""

from .reading import blocks, read_recording
from .recovery import finalise
from .session import dump_session, Session
from .writer import BagWriter

__all__ = ['BagWriter', 'Session', 'blocks', 'dump_session', 'finalise', 'read_recording']
