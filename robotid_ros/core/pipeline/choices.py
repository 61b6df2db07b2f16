"""What the configuration leaves open, chosen from a recording of any length."""

import dataclasses
from itertools import chain

from ..identification_settings import IdentificationSettings
from ..model.robot import Robot
from ..selection.model_selection import is_open, motion_start, select_model, without_choice
from ..selection.selection import Selection
from ..signals.recording import MAX_SAMPLES, Recording
from .chunked_estimation import RecordingOrChunks
from .several_logs import LogSet, longest_log

Choice = tuple[RecordingOrChunks, Robot, IdentificationSettings, Selection | None]


def choose_model(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> Choice:
    """
    Choose by cross-validation what is open; of chunks, by the first one that moves.

    Parameters
    ----------
    recording : in memory, or its successive chunks
    robot, settings : what may be open

    Returns
    -------
    All of them with the choices made, and how, None where nothing was open

    """
    if not is_open(robot, settings):
        return recording, robot, without_choice(settings), None
    log = longest_log(recording)
    if isinstance(log, Recording):
        part, whole = log, len(log.time) <= MAX_SAMPLES
    else:
        chunks, whole, read = iter(log), False, list[Recording]()
        for chunk in chunks:
            # What can be read again need not be kept.
            read = [*read, chunk] if chunks is recording else [chunk]
            if motion_start(chunk) is not None:
                break
        # An iterator has given its first chunks away; what can be read again starts anew.
        recording = chain(read, chunks) if chunks is recording else recording
        if not read:
            return recording, robot, without_choice(settings), None
        part = read[-1]
    if isinstance(recording, LogSet):
        whole = recording.in_memory
    if not whole and settings.signals.rows == 'auto':
        # Every chunk has ends, whose transients would count twice.
        signals = dataclasses.replace(settings.signals, rows='moving')
        settings = dataclasses.replace(settings, signals=signals)
    warm_up = whole and isinstance(recording, Recording)
    return recording, *select_model(part, robot, settings, warm_up)
