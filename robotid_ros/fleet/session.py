"""One bag: what a worker makes of it, and its row in the store."""

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.diagnostics.assumptions import data_warnings
from ..core.finding_codes import render
from ..core.findings import Finding
from ..core.identification_settings import IdentificationSettings
from ..core.pipeline.estimation import as_asked
from ..core.pipeline.observation import observe_log
from ..core.regression.covariance import count_blocks
from ..core.regression.estimate import Estimate
from ..core.regression.estimators import fit
from ..core.regression.model_error import COLUMNS
from ..core.regression.observation_system import Factors, Rows, System
from ..core.regression.triangular_factors import compress, joined
from ..core.signals.recording import Recording
from ..exceptions import FileError, RankDeficientError, RobotIdError
from ..files.bags import open_recording
from ..files.formats.read_options import ReadOptions
from ..files.identification_input import split
from .model import FleetModel
from .sources import Source

# A row of a table of the store.
Row = dict[str, Any]

# Of a bag: σ of a pool of K bags come from so many times K batches.
MOST_BATCHES = 16
# What became of a bag. The motion of one that is UNDETERMINED does not tell all parameters, though
# its factors help others. LOST says nothing about it: the next run tries it again.
IDENTIFIED, UNDETERMINED, FAILED, LOST = 'identified', 'undetermined', 'failed', 'lost'
# Stamps before that are of a clock that was never set [s since 1970].
CLOCK_SET = 1_000_000_000


def identify_session(location: str, model: FleetModel) -> Row:
    """Identify one bag, and return what it says as columns of its row; never raises."""
    try:
        return _identify(location, model)
    except RobotIdError as error:
        return without_result(FAILED, str(error))
    except (OSError, MemoryError) as error:
        return without_result(LOST, f'{type(error).__name__}: {error}')
    except Exception as error:
        reason = f'{type(error).__name__}: {error}; the bag is damaged, or a bug'
        return without_result(FAILED, reason)


def without_result(status: str, reason: str) -> Row:
    """Return the columns of a bag that gave nothing."""
    empty = {name: list[Any]() for name in ('notes', 'warnings', 'joints', 'parameters')}
    numbers = {'samples': 0, 'duration': 0.0, 'rate': 0.0}
    return {'status': status, 'reason': reason, 'time': None, **numbers, **empty}


def _identify(location: str, model: FleetModel) -> Row:
    robot, base, settings = model.build()
    joints, options = robot.recorded_joints, ReadOptions(urdf=model.urdf)
    log = split(open_recording(location, joints, options=options))[0]
    observed = observe_log(log, robot, base, settings.signals, isinstance(log, Recording))
    system, most = observed.system, MOST_BATCHES
    estimate, reason = _fitted(system, settings)
    warnings: Sequence[Finding] = ()
    if estimate is not None:
        warnings = data_warnings(robot, base, observed.samples, observed.sampled_systems, estimate)
        if isinstance(system, Rows):
            most = min(most, count_blocks(system, estimate.value))
    whole = compress(system, most)
    factors, known = joined(whole), log.origin > CLOCK_SET * 10**9
    row = {
        'status': UNDETERMINED if estimate is None else IDENTIFIED,
        'reason': reason,
        'time': datetime.fromtimestamp(log.origin * 1e-9, timezone.utc) if known else None,
        'notes': [render(note) for note in dict.fromkeys([*log.notes, *observed.notes])],
        'warnings': list(map(render, warnings)),
        'samples': log.size,
        'duration': log.duration,
        'rate': log.rate,
        **estimate_columns(whole, estimate),
        'factor_size': factors.shape[-1],
        'factors': _packed(factors),
        'batches': _packed(np.asarray(whole.batches)),
    }
    for joint in row['joints']:
        joint['delay'] = observed.delays.get(joint['name'], 0.0)
    return row


def _fitted(system: System, settings: IdentificationSettings) -> tuple[Estimate | None, str]:
    """Return the estimate, or why the rows do not determine the parameters."""
    try:
        return fit(as_asked(system, settings), settings.method, settings.iterations), ''
    except RankDeficientError as error:
        return None, str(error)


def session_row(found: Row, source: Source, labels: Row, size: int) -> Row:
    """Return the row of a session: what its bag says, its source, labels and size [bytes]."""
    time = datetime.fromisoformat(source.time) if source.time else found['time']
    given = {'source': source.location, 'tags': [*source.tags], 'temperature': source.temperature}
    return {**found, **labels, **given, 'time': time, 'bytes': size}


def estimate_columns(system: Factors, estimate: Estimate | None) -> Row:
    """Return the columns that say what was estimated of a system, and how well."""
    joints = {'name': system.joints, 'rows': system.equations.tolist()}
    # Of one that is not determined, names and units still belong to the factors.
    parameters = {'name': system.names, 'unit': system.units}
    row: Row = {}
    if estimate is not None:
        joints['residual'] = estimate.residual.tolist()
        joints['sigma_torque'] = estimate.sigma_torque.tolist()
        parameters |= {'value': estimate.value.tolist(), 'sigma': estimate.sigma.tolist()}
        row['residual'] = float(estimate.total_residual)
        row['condition'] = float(estimate.condition_number)
    for name, columns in (('joints', joints), ('parameters', parameters)):
        values = zip(*columns.values(), strict=True)
        row[name] = [dict(zip(columns, each, strict=True)) for each in values]
    return row


def _packed(factors: Array) -> Array:
    """Return the upper triangles of (…, b, b), row by row."""
    rows, columns = np.triu_indices(factors.shape[-1])
    return np.asarray(factors[..., rows, columns].ravel())


def _unpacked(values: Any, joints: int, size: int) -> Array:
    """Return (joints, K, size, size) upper triangular matrices."""
    rows, columns = np.triu_indices(size)
    flat = np.asarray(values, dtype=float).reshape(joints, -1, len(rows))
    factors = np.zeros((*flat.shape[:2], size, size))
    factors[..., rows, columns] = flat
    return factors


def factors_of(row: Row) -> Factors:
    """
    Return the triangular factors of a session's row.

    FileError: a program that counted the model's errors otherwise wrote it.
    """
    joints, parameters = row['joints'], row['parameters']
    n, b, size = len(joints), len(parameters), int(row['factor_size'])
    if size != b + COLUMNS + 1:
        raise FileError(
            f'the store is of robotid_ros {row["version"]}, which this one cannot merge: run the '
            'fleet into a new store'
        )
    factors = _unpacked(row['factors'], n, size)[:, 0]
    return Factors(
        tuple(str(each['name']) for each in parameters),
        tuple(str(each['unit']) for each in parameters),
        tuple(str(joint['name']) for joint in joints),
        factors[:, :, :b],
        factors[:, :, -1],
        np.ones((n, size), dtype=bool),
        np.array([joint['rows'] for joint in joints], dtype=np.intp),
        _unpacked(row['batches'], n, b + 1),
        D=factors[:, :, b:-1],
    )
