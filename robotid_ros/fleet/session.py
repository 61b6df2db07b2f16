"""The model of a type of robots, what a worker makes of a bag by it, and the row of that."""

from collections.abc import Sequence
import dataclasses
from datetime import datetime, timezone
from functools import lru_cache
import hashlib
import json
from typing import Any

import numpy as np

from ..core.arrays import Array
from ..core.diagnostics.data_warnings import data_warnings
from ..core.findings import Finding, render
from ..core.identification_settings import IdentificationSettings
from ..core.model import build_robot, Robot, RobotSettings
from ..core.model.base_parameters import base_parameters
from ..core.model.robot import BaseParameters
from ..core.pipeline.choices import without_choice
from ..core.pipeline.estimation import as_configured, check_method
from ..core.pipeline.observation import LogSet, observe_log
from ..core.regression.covariance import count_blocks
from ..core.regression.estimate import Estimate
from ..core.regression.estimators import fit
from ..core.regression.model_error import COLUMNS
from ..core.regression.observation_system import compress, Factors, joined, Rows
from ..core.signals.recording import Recording
from ..exceptions import ConfigurationError, FileError, RankDeficientError, RobotIdError
from ..files.bags import open_recording
from ..files.configuration import load, read_urdf
from ..files.formats.read_options import ReadOptions
from ..files.identification_input import split
from ..node_settings import FleetSettings
from ..settings import parse

# A row of a table of the store.
Row = dict[str, Any]

MOST_BATCHES = 16  # of a bag: σ of a pool of K bags come from so many times K batches
# What became of a bag. The motion of one that is UNDETERMINED does not tell all parameters, though
# its factors help others. LOST says nothing about it: the next run tries it again.
IDENTIFIED, UNDETERMINED, FAILED, LOST = 'identified', 'undetermined', 'failed', 'lost'
CLOCK_SET = 1_000_000_000  # stamps before that are of a clock that was never set [s since 1970]

# Methods that need no more than triangular factors, which can be merged.
MERGED_METHODS = ('auto', 'wls', 'ols', 'tls')


@dataclasses.dataclass(frozen=True)
class FleetModel:
    """
    What the robots of a type have in common.

    Nothing is chosen bag by bag but filters and delays: factors merge only where they have the
    same columns. `content` has URDF, robot and identification as JSON, from which all else
    follows.
    """

    type: str
    content: str

    @property
    def hash(self) -> str:
        """Hash of all that a result depends on besides its bag."""
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def urdf(self) -> str:
        """Text of the robot description."""
        return str(json.loads(self.content)['urdf'])

    def build(self) -> tuple[Robot, BaseParameters, IdentificationSettings]:
        """Build the robot, once a process; RobotIdError: a fleet cannot be identified so."""
        return _build(self.content)


@lru_cache(maxsize=16)
def _build(content: str) -> tuple[Robot, BaseParameters, IdentificationSettings]:
    groups: dict[str, Any] = json.loads(content)
    settings = without_choice(parse(IdentificationSettings, groups['identification']))
    if settings.method not in MERGED_METHODS:
        raise ConfigurationError(
            f'a fleet is identified by merging triangular factors, which method '
            f"'{settings.method}' cannot: use one of {', '.join(MERGED_METHODS)}"
        )
    robot = build_robot(groups['urdf'], parse(RobotSettings, groups['robot']))
    check_method(LogSet(()), robot.elastic or robot, settings)
    return robot, base_parameters(robot), settings


def load_models(configurations: Sequence[str]) -> tuple[dict[str, FleetModel], FleetSettings]:
    """Read configurations, each a file or TYPE=FILE: models by type, and settings of the first."""
    models, first = dict[str, FleetModel](), FleetSettings()
    for text in configurations:
        named, _, file = text.rpartition('=')
        configuration = load(file)
        urdf, robot = read_urdf(configuration), configuration.robot
        first = first if models else configuration.fleet
        if urdf is None:
            raise ConfigurationError(f"'{file}' names no robot description: add robot.urdf")
        settings = dataclasses.asdict(configuration.identification)
        # Those of a node have more, which say nothing of the results.
        own = {f.name: settings[f.name] for f in dataclasses.fields(IdentificationSettings)}
        robot_settings = dataclasses.asdict(dataclasses.replace(robot, urdf=''))
        groups = {'urdf': urdf, 'robot': robot_settings, 'identification': own}
        model = FleetModel(named or robot.name, json.dumps(groups, sort_keys=True))
        model = dataclasses.replace(model, type=model.type or model.build()[0].name)
        model.build()  # what is wrong with it is said before the work begins
        if model.type in models:
            raise ConfigurationError(
                f"two configurations are of type '{model.type}': name them TYPE=FILE"
            )
        models[model.type] = model
    return models, first


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
    estimate, reason = None, ''
    try:
        estimate = fit(as_configured(system, settings), settings.method, settings.iterations)
    except RankDeficientError as error:
        reason = str(error)
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


def factors_of(row: Row) -> Factors:
    """Return a session's triangular factors; FileError: they count errors otherwise."""
    joints, parameters = row['joints'], row['parameters']
    n, b, size = len(joints), len(parameters), int(row['factor_size'])
    if size != b + COLUMNS + 1:
        raise FileError(
            f'the store is of robotid_ros {row["version"]}, which this one cannot merge: run the '
            'fleet into a new store'
        )

    def unpacked(name: str, size: int) -> Array:
        """Return upper triangular matrices, (joints, K, size, size)."""
        rows, columns = np.triu_indices(size)
        flat = np.asarray(row[name], dtype=float).reshape(n, -1, len(rows))
        found = np.zeros((*flat.shape[:2], size, size))
        found[..., rows, columns] = flat
        return found

    factors = unpacked('factors', size)[:, 0]
    names, units = (tuple(str(each[key]) for each in parameters) for key in ('name', 'unit'))
    counts = np.array([joint['rows'] for joint in joints], dtype=np.intp)
    return Factors(
        *(names, units, tuple(str(joint['name']) for joint in joints)),
        *(factors[:, :, :b], factors[:, :, -1], np.ones((n, size), dtype=bool)),
        *(counts, unpacked('batches', b + 1)),
        D=factors[:, :, b:-1],
    )
