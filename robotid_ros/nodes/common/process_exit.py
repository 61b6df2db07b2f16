"""The end of a process that the middleware may keep from ending."""

import faulthandler
import os

_NOWHERE = open(os.devnull, 'w')


def exit_after(seconds: float) -> None:
    """
    End this process with code 1 after a time, whatever it does then.

    Fast DDS was seen to spin for ever while it destroys a participant, and to hold Python's lock
    meanwhile: no thread of Python's own could end that.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=_NOWHERE)


def cancel_exit() -> None:
    """Take `exit_after` back."""
    faulthandler.cancel_dump_traceback_later()
