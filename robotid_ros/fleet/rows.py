"""Rows of the store from sessions and estimates, and their factors back."""

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.regression.estimate import Estimate
from ..core.regression.model_error import COLUMNS
from ..core.regression.observation_system import System
from ..core.regression.triangular_factors import joined
from ..exceptions import FileError
from .session import Session, system_of_factors
from .sources import Source


def session_row(
    session: Session, source: Source, labels: Mapping[str, Any], size: int
) -> dict[str, Any]:
    """
    Return the row of a session.

    Parameters
    ----------
    session : what was found
    source : where, with the labels that a user gave
    labels : key, bag, configuration, version
    size : of the bag [bytes]

    """
    time = datetime.fromisoformat(source.time) if source.time else None
    if time is None and session.origin:
        time = datetime.fromtimestamp(session.origin * 1e-9, timezone.utc)
    row = {
        **labels,
        'source': source.location,
        'time': time,
        'tags': list(source.tags),
        'temperature': source.temperature,
        'status': session.status,
        'reason': session.reason,
        'notes': list(session.notes),
        'warnings': list(session.warnings),
        'bytes': size,
        'samples': session.samples,
        'duration': session.duration,
        'rate': session.rate,
        'joints': [],
        'parameters': [],
    }
    if session.system is not None:
        row |= _factors(session.system)
        row['joints'] = [
            {**joint, 'delay': session.delays.get(joint['name'], 0.0)}
            for joint in joint_rows(session.system, session.estimate)
        ]
        # Of one that is not determined, names and units still belong to the factors.
        pairs = zip(session.system.names, session.system.units, strict=True)
        row['parameters'] = [{'name': name, 'unit': unit} for name, unit in pairs]
    if session.estimate is not None:
        row |= estimate_columns(session.estimate)
    return row


def joint_rows(system: System, estimate: Estimate | None) -> list[dict[str, Any]]:
    """Return the number of equations of each joint, and what an estimate leaves of it."""
    rows: list[dict[str, Any]] = [
        {'name': joint, 'rows': int(count)}
        for joint, count in zip(system.joints, system.equations, strict=True)
    ]
    if estimate is not None:
        for row, residual, sigma in zip(
            rows, estimate.residual, estimate.sigma_torque, strict=True
        ):
            row |= {'residual': float(residual), 'sigma_torque': float(sigma)}
    return rows


def estimate_columns(estimate: Estimate) -> dict[str, Any]:
    """Return the columns that say what was estimated, and how well."""
    columns = (estimate.names, estimate.units, estimate.value.tolist(), estimate.sigma.tolist())
    return {
        'residual': float(estimate.total_residual),
        'condition': float(estimate.condition_number),
        'parameters': [
            dict(zip(('name', 'unit', 'value', 'sigma'), values, strict=True))
            for values in zip(*columns, strict=True)
        ],
    }


def _factors(system: System) -> dict[str, Any]:
    total = joined(system)
    assert system.batches is not None
    return {
        'factor_size': total.shape[-1],
        'factors': _packed(total),
        'batches': _packed(system.batches),
    }


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


def factors_of(row: Mapping[str, Any]) -> System:
    """
    Return the triangular factors of a session's row.

    Raises
    ------
    FileError : a program that counted the model's errors otherwise wrote it

    """
    joints, parameters = row['joints'], row['parameters']
    names, units = ([str(p[key]) for p in parameters] for key in ('name', 'unit'))
    n, size = len(joints), int(row['factor_size'])
    if size != len(names) + COLUMNS + 1:
        raise FileError(
            f'the store is of robotid_ros {row["version"]}, which this one cannot merge: run the '
            'fleet into a new store'
        )
    return system_of_factors(
        (names, units),
        [str(joint['name']) for joint in joints],
        _unpacked(row['factors'], n, size)[:, 0],
        _unpacked(row['batches'], n, len(names) + 1),
        np.array([joint['rows'] for joint in joints]),
    )
