"""One bag, or a piece of one: what a worker makes of it. Nothing here writes or remembers."""

from collections.abc import Sequence
import dataclasses
import time

import numpy as np

from ..core.arrays import Array
from ..core.diagnostics.assumptions import data_warnings
from ..core.identification_settings import IdentificationSettings
from ..core.pipeline.chunked_estimation import ChunkedSystem
from ..core.pipeline.estimation import as_asked
from ..core.pipeline.several_logs import observe_log, stack_factors
from ..core.regression.covariance import count_blocks
from ..core.regression.estimate import Estimate
from ..core.regression.estimators import fit
from ..core.regression.observation_system import System
from ..core.regression.triangular_factors import compress
from ..core.signals.recording import Recording
from ..exceptions import FileError, RankDeficientError, RobotIdError
from ..files.bags.recording import open_recording, pieces_of, read_recording
from ..files.bags.storage import UNBOUNDED, Window
from ..files.formats.read_options import ReadOptions
from ..files.identification_input import split
from ..files.remote_file import is_url
from .model import FleetModel

# Of a bag: σ of a pool of K bags come from so many times K batches.
MOST_BATCHES = 16
# What became of a bag. LOST says nothing about it: the next run tries it again.
IDENTIFIED, UNDETERMINED, FAILED, LOST = 'identified', 'undetermined', 'failed', 'lost'
# Stamps before that are of a clock that was never set [s since 1970].
CLOCK_SET = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class Task:
    """A bag, or the messages of it received in a window, and the model of its robot."""

    location: str
    model: FleetModel
    window: Window = UNBOUNDED
    pieces: int = 1


@dataclasses.dataclass(frozen=True)
class Session:
    """
    What a bag says.

    Attributes
    ----------
    status : IDENTIFIED; UNDETERMINED where its motion alone does not tell all parameters, though
        its factors help others; FAILED for good; LOST by a worker, a network or a disk
    reason : of any other status than IDENTIFIED
    system : triangular factors, or None
    estimate : of it alone, or None
    delays : of efforts [s], by joint
    notes, warnings : on the signals, on the data
    origin : the robot's clock at the first sample [ns], 0 where it was never set
    duration, rate, samples : of what was used [s, Hz]
    seconds : of processor time that it took
    windows : pieces to cut it into instead of all that

    """

    status: str
    reason: str = ''
    system: System | None = None
    estimate: Estimate | None = None
    delays: dict[str, float] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    origin: int = 0
    duration: float = 0.0
    rate: float = 0.0
    samples: int = 0
    seconds: float = 0.0
    windows: tuple[Window, ...] = ()


def identify_session(task: Task, piece_seconds: float) -> Session:
    """
    Identify one bag, or say into which pieces to cut it; never raises.

    Parameters
    ----------
    task : what to do
    piece_seconds : length of a piece of a bag that is too long for memory

    """
    began = time.process_time()
    try:
        session = _identify(task, piece_seconds)
    except RobotIdError as error:
        # An address that does not answer says nothing about what is there.
        gone = isinstance(error, FileError) and is_url(task.location)
        session = Session(LOST if gone else FAILED, str(error))
    except (OSError, MemoryError) as error:
        session = Session(LOST, f'{type(error).__name__}: {error}')
    except Exception as error:
        session = Session(FAILED, f'{type(error).__name__}: {error}; the bag is damaged, or a bug')
    return dataclasses.replace(session, seconds=time.process_time() - began)


def _identify(task: Task, piece_seconds: float) -> Session:
    robot, base, settings = task.model.build()
    joints, options = robot.recorded_joints, ReadOptions(urdf=task.model.urdf)
    if task.window == UNBOUNDED and task.pieces == 1:
        windows = pieces_of(task.location, joints, piece_seconds, options=options)
        if len(windows) > 1:
            return Session(LOST, 'its pieces were not put together', windows=tuple(windows))
        log = split(open_recording(task.location, joints, options=options))[0]
    else:
        log = read_recording(task.location, joints, options=options, window=task.window)
    whole = isinstance(log, Recording)
    observed = observe_log(log, robot, base, settings.signals, whole)
    most = max(1, MOST_BATCHES * 2 // task.pieces) if task.pieces > 1 else MOST_BATCHES
    system = observed.system
    estimate, reason = _fitted(system, settings)
    warnings = _warnings(task, observed, estimate)
    if estimate is not None and whole and task.pieces == 1:
        most = min(most, count_blocks(system, estimate.value))
    return Session(
        UNDETERMINED if estimate is None else IDENTIFIED,
        reason,
        plain(compress(system, most)),
        estimate,
        dict(observed.delays),
        tuple(dict.fromkeys([*log.notes, *observed.notes])),
        warnings,
        log.origin if log.origin > CLOCK_SET * 10**9 else 0,
        log.duration,
        log.rate,
        log.size,
    )


def _fitted(system: System, settings: IdentificationSettings) -> tuple[Estimate | None, str]:
    """Return the estimate, or why the rows do not determine the parameters."""
    try:
        return fit(as_asked(system, settings), settings.method, settings.iterations), ''
    except RankDeficientError as error:
        return None, str(error)


def _warnings(task: Task, observed: ChunkedSystem, estimate: Estimate | None) -> tuple[str, ...]:
    if estimate is None or task.pieces > 1:
        return ()
    robot, base, _ = task.model.build()
    return tuple(data_warnings(robot, base, observed.samples, observed.sampled_systems, estimate))


def put_together(pieces: Sequence[Session], model: FleetModel) -> Session:
    """Return the session whose pieces these are, in their order; those that failed are noted."""
    _, _, settings = model.build()
    used = [piece for piece in pieces if piece.system is not None]
    lost = [piece for piece in pieces if piece.status == LOST]
    if not used or lost:
        return (lost or list(pieces))[0]
    systems = [piece.system for piece in used if piece.system is not None]
    system = compress(stack_factors(systems), 2 * MOST_BATCHES)
    estimate, reason = _fitted(system, settings)
    failed = [piece.reason for piece in pieces if piece.status == FAILED]
    notes = [f'a long recording: the factors of {len(used)} pieces were merged']
    notes += [f'{len(failed)} pieces were left out: {why}' for why in failed[:1]]
    joints = {joint for piece in used for joint in piece.delays}
    return Session(
        UNDETERMINED if estimate is None else IDENTIFIED,
        reason,
        system,
        estimate,
        {j: float(np.mean([p.delays.get(j, 0.0) for p in used])) for j in sorted(joints)},
        (*notes, *dict.fromkeys(note for piece in used for note in piece.notes)),
        (),
        used[0].origin,
        sum(piece.duration for piece in used),
        used[0].rate,
        sum(piece.samples for piece in used),
        sum(piece.seconds for piece in pieces),
    )


def plain(system: System) -> System:
    """Return the system of factors without what only rows in memory have."""
    return dataclasses.replace(system, noise=None, measured=None, moving=None, Z=None)


def system_of_factors(
    columns: tuple[Sequence[str], Sequence[str]],
    joints: Sequence[str],
    factors: Array,
    batches: Array,
    counts: Array,
) -> System:
    """
    Make a system of the factors of a store.

    Parameters
    ----------
    columns : names and units of the b base parameters
    joints : n
    factors : (n, b + d + 1, b + d + 1) of [W D Y]
    batches : (n, K, b + 1, b + 1) of [W Y]
    counts : (n,) equations

    """
    names, units = map(tuple, columns)
    n, size, _ = factors.shape
    b = len(names)
    return System(
        names,
        units,
        tuple(joints),
        np.arange(size, dtype=float),
        factors[:, :, :b],
        factors[:, :, -1],
        np.ones((n, size), dtype=bool),
        counts=counts.astype(np.intp),
        batches=batches,
        D=factors[:, :, b:-1] if size > b + 1 else None,
    )
