"""
Errors that a user can meet: one sentence each, with the remedy.

Every error derives from `RobotIdError`, carries its evidence as attributes, and also inherits the
built-in that it refines, so that generic code keeps working. Programs decide on its type and
attributes, never on its text: the type is its code.
"""

from collections.abc import Iterable, Sequence
import errno

MOST_NAMES, FEW = 40, 8  # of a list of names in a sentence; FEW are a line or two


def shortened(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """List names, the first ones of many."""
    text = ', '.join(names[:most]) or 'none'
    return f'{text}, … ({len(names)} in all)' if len(names) > most else text


def use_one_of(name: str, valid: Iterable[str]) -> str:
    """Return the remedy of a name that does not exist: the nearest one, and all."""
    import difflib  # here: most runs end well

    known, lower = {each.casefold(): each for each in valid}, name.casefold()
    nearest = difflib.get_close_matches(lower, known, 1)
    nearest = nearest or [each for each in known if lower and each.startswith(lower)]
    named = [each or "''" for each in known.values()]
    every = f'use one of {shortened(named)}'
    hint = f"did you mean '{known[nearest[0]]}'?" if nearest else every
    return f'{hint} ({every})' if nearest and len(known) <= FEW else hint


def reason_of(error: BaseException) -> str:
    """Return on one line what an error of a library says, or its type where it says nothing."""
    return ' '.join(str(error).split()).rstrip('.') or type(error).__name__


# What to do about errors of the system.
REMEDIES = {
    'free some space, or name another place': (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    'change its rights, or name another one': (errno.EACCES, errno.EPERM, errno.EROFS),
    'allow more open files (ulimit -n)': (errno.EMFILE, errno.ENFILE),
}


def reason_of_system(error: OSError) -> str:
    """Return what the system says of a file, with the remedy where there is one."""
    remedies = [text for text, codes in REMEDIES.items() if error.errno in codes]
    return '; '.join([(error.strerror or str(error)).lower(), *remedies])


class RobotIdError(Exception):
    """Base of every error that is raised on purpose: its text is shown; others are bugs."""


class ConfigurationError(RobotIdError, ValueError):
    """A configuration has an unknown key, a wrong type or an impossible value."""


class ModelError(RobotIdError, ValueError):
    """A robot description cannot be turned into a dynamic model."""


class UnknownNameError(RobotIdError, KeyError):
    """The name of, for example, a joint is not among the valid ones; the text lists them."""

    def __init__(self, kind: str, name: str, valid: tuple[str, ...]):
        self.kind, self.name, self.valid = kind, name, tuple(valid)
        super().__init__(f"unknown {kind} '{name}': {use_one_of(name, self.valid)}")

    @classmethod
    def check(cls, kind: str, names: Iterable[str], valid: Iterable[str]) -> None:
        """Raise one for the first of some names that is not valid."""
        known = tuple(valid)
        for name in names:
            if name not in known:
                raise cls(kind, name, known)

    def __str__(self) -> str:
        return str(self.args[0])


class RecordingError(RobotIdError, ValueError):
    """A recording is missing, damaged or does not hold what an identification needs."""


class StandstillError(RecordingError):
    """No joint moves in a recording, or in a piece of one."""


class FileError(RobotIdError, OSError):
    """A file cannot be read or written."""


class MissingPackageError(RobotIdError, ImportError):
    """A package that only some functions need is not installed."""


class TrajectoryError(RobotIdError, ValueError):
    """A trajectory cannot be designed, read or run."""


class LimitError(TrajectoryError):
    """A joint leaves a limit; value and limit in its SI units, time [s] from the start."""

    def __init__(self, joint: str, quantity: str, time: float, value: float, limit: float):
        self.joint, self.quantity, self.time = joint, quantity, time
        self.value, self.limit = value, limit
        super().__init__(
            f'{quantity} of {joint} is {value:.4g} at {time:.3f} s, beyond its limit of '
            f'{limit:.4g} by {abs(value - limit):.3g}: lower the amplitude or design again'
        )


class CollisionError(TrajectoryError):
    """A trajectory brings two bodies closer than allowed."""


class RankDeficientError(RobotIdError, ArithmeticError):
    """Data cannot tell columns apart; singular values (scaled, descending) stand beside."""

    def __init__(
        self, names: Sequence[str], singular_values: Sequence[float], joints: Sequence[str] = ()
    ):
        self.names, self.singular_values = tuple(names), tuple(singular_values)
        of = f' of {shortened(joints)}' if joints else ''
        super().__init__(
            f'the motion does not excite {", ".join(self.names)}{of}: '
            'run a richer trajectory, leave out joints that hardly move (--joints names the '
            'others), or take these parameters out of the model'
        )


class DivergenceError(RobotIdError, ArithmeticError):
    """An iteration, counted from 1, does not converge; the last good estimate, if any, is kept."""

    def __init__(self, message: str, iteration: int, estimate: object = None):
        self.iteration, self.estimate = iteration, estimate
        super().__init__(message)


class ControllerError(RobotIdError, RuntimeError):
    """A controller is missing, is not what the session needs, or refused a request."""


class RobotStateError(RobotIdError, RuntimeError):
    """The running robot left what is safe: stale, NaN, out of limits or off its reference."""


class TrackingError(RobotStateError):
    """A joint does not follow its reference: the controller may have noticed it first."""


class SensorError(RobotStateError):
    """What a joint measures is wrong: its controller, which uses it, cannot hold it."""


class SilentRobotError(RobotStateError):
    """States of a robot or its controller have stopped: controller_manager may know why."""

    def __init__(self, message: str, joints: Sequence[str]):
        self.joints = tuple(joints)
        super().__init__(message)
