"""Results on disk: `parameters.yaml` and the torques behind it, written whole and read back."""

from collections.abc import Mapping, Sequence
import dataclasses
from dataclasses import dataclass, field
import math
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints, TypeVar

import numpy as np

from ..core.model.settings import RobotSettings
from ..exceptions import FileError
from .atomic import read_text, write_text
from .torques_file import read_torques, Torques, write_torques
from .yaml import dump_yaml, parse_yaml

PARAMETERS = 'parameters.yaml'
TORQUES = 'torques.npz'
URDF = 'identified.urdf'
REPORT = 'report.html'
FORMAT = 1
T = TypeVar('T')


@dataclass(frozen=True)
class Entry:
    """
    One parameter as a user reads it.

    Attributes
    ----------
    name : 'ZZ1R' or 'ZZ1'
    value, sigma : [unit]
    percent : 100 σ/|value|
    unit : SI, joint side
    joint : joint or coupling that it belongs to
    kind : 'essential', 'small' or 'prior' (near the robot description's value, the motion tells
        less) for base parameters; class of a standard parameter
    combination : a base parameter as a sum of standard ones
    column : the standard parameter that stands for a base parameter: all others zero, these alone
        give the same torques
    prior : value before the identification, None when there is none
    true : value that a simulation ran with, None on a real robot

    """

    name: str
    value: float
    sigma: float
    percent: float
    unit: str = ''
    joint: str = ''
    kind: str = ''
    combination: str = ''
    column: str = ''
    prior: float | None = None
    true: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the 95 % confidence interval."""
        return self.value - 1.96 * self.sigma, self.value + 1.96 * self.sigma

    @property
    def error(self) -> float:
        """Distance from the true value over σ; NaN where there is none."""
        if self.true is None or not self.sigma:
            return math.nan
        return (self.value - self.true) / self.sigma


def count_within_sigma(entries: Sequence[Entry]) -> tuple[int, int]:
    """Count entries whose true value is within ±3σ, and those with a true value."""
    known = [(abs(e.value - e.true), e.sigma) for e in entries if e.true is not None]
    return sum(distance <= 3.0 * sigma for distance, sigma in known), len(known)


@dataclass(frozen=True)
class Residual:
    """
    Goodness of fit of one joint.

    Attributes
    ----------
    joint : name
    relative : ‖Y − Wχ‖/‖Y‖
    rms, torque : root mean squares of the residual and of the measured torque [unit]
    unit : 'N·m' or 'N'
    moving : `relative` while the joint moves: friction at rest has no model
    r2 : coefficient of determination

    """

    joint: str
    relative: float
    rms: float
    torque: float
    unit: str = 'N·m'
    moving: float = float('nan')
    r2: float = float('nan')

    @property
    def reported(self) -> float:
        """Relative residual to judge by: that while the joint moves, where there is one."""
        return self.relative if math.isnan(self.moving) else self.moving


def total_residual(rows: Sequence[Residual]) -> float:
    """Relative residual of all joints together; NaN where torques and forces do not add up."""
    if len({row.unit for row in rows}) != 1:
        return float('nan')
    squares = np.array([(row.rms**2, row.torque**2) for row in rows]).sum(axis=0)
    return float(np.sqrt(squares[0] / squares[1])) if squares[1] else float('nan')


@dataclass(frozen=True)
class Comparison:
    """What another method found in the same recording: base parameters and residuals."""

    method: str
    base: tuple[Entry, ...]
    identification: tuple[Residual, ...]
    validation: tuple[Residual, ...] = ()


@dataclass(frozen=True)
class Results:
    """
    Everything that an identification leaves behind, as plain values.

    Attributes
    ----------
    robot, method, created : what, how, when (ISO 8601)
    data : recording, duration and the like, for people
    joints : names
    base, standard : parameters
    identification, validation : residuals per joint; validation is empty without other data
    condition_number : of the weighted observation matrix
    consistent : {joint: whether the link's parameters are those of a physical body}
    essential : count, values, residual and path of the selection of essential parameters
    definite : {set of standard parameters: links with a positive definite inertia at each of the
        'tolerances'}
    warnings : sentences
    history : one row of numbers per iteration, of methods that iterate
    compared : what another method found, or None
    selection : what was chosen by cross-validation and compared with what; empty: nothing
    settings : the configuration used, with what was chosen
    versions : {package: version}
    torques : {'identification' or 'validation': Torques}

    """

    robot: str
    method: str
    created: str
    joints: tuple[str, ...]
    base: tuple[Entry, ...]
    standard: tuple[Entry, ...]
    identification: tuple[Residual, ...]
    validation: tuple[Residual, ...] = ()
    condition_number: float = float('nan')
    data: Mapping[str, Any] = field(default_factory=dict)
    consistent: Mapping[str, bool] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    history: tuple[Mapping[str, float], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    torques: Mapping[str, Torques] = field(default_factory=dict)
    essential: Mapping[str, Any] = field(default_factory=dict)
    definite: Mapping[str, Sequence[float]] = field(default_factory=dict)
    compared: Comparison | None = None
    selection: Mapping[str, Any] = field(default_factory=dict)

    @property
    def minimal_parameters(self) -> dict[str, float]:
        """Standard parameters that give the identified torques; those left out are zero."""
        return {entry.column: entry.value for entry in self.base}


def prediction_text(results: Results) -> str:
    """Set the residuals of base parameters and of `identified.urdf` side by side; '' without."""
    names = ('base_residual', 'consistent_residual', 'prior_spread')
    base, consistent, spread = (float(results.data.get(name, math.nan)) for name in names)
    if math.isnan(base) or math.isnan(consistent):
        return ''
    trust = f'taken to be right to {100 * spread:.3g} %' if spread <= 1.0 else 'hardly trusted'
    text = (
        f'Residual of the fit: base parameters {100 * base:.2f} %, {URDF} {100 * consistent:.2f} '
        f'% (inertias of the robot description {trust}).'
    )
    if 'obstacle' in results.data:
        least = 100 * float(results.data['attainable'])
        text += (
            f' No physically consistent parameters leave less than {least:.2f} %: '
            f"link or drive of '{results.data['obstacle']}' is in the way."
        )
    return text


def chosen_settings(settings: RobotSettings, results: Results) -> RobotSettings:
    """Return a robot's settings with the friction that its identification chose."""
    if not results.selection:
        return settings
    chosen = results.settings['robot']
    return dataclasses.replace(
        settings,
        friction={joint: tuple(terms) for joint, terms in chosen['friction'].items()},
        friction_constants=chosen['friction_constants'],
        effort_kind=chosen['effort_kind'],
    )


def write_results(results: Results, folder: str | Path) -> Path:
    """
    Write `parameters.yaml` and `torques.npz`; every number reads back bit for bit.

    Returns
    -------
    Path of `parameters.yaml`.

    Raises
    ------
    FileError : the folder cannot be written

    """
    plain = {f.name: _plain(getattr(results, f.name)) for f in dataclasses.fields(results)}
    del plain['torques']
    if results.torques:
        write_torques(Path(folder) / TORQUES, results.torques)
    return write_text(Path(folder) / PARAMETERS, dump_yaml({'format': FORMAT, **plain}))


def read_results(path: str | Path) -> Results:
    """
    Read `parameters.yaml`, or the folder that holds it; torques too when they are beside it.

    Raises
    ------
    FileError : it is missing, or not what `write_results` writes

    """
    path = Path(path)
    path = path / PARAMETERS if path.is_dir() else path
    if not path.exists():
        raise FileError(
            f"no such file: '{path}'; give a {PARAMETERS}, or the folder that robotid identify "
            'wrote it to'
        )
    content = parse_yaml(read_text(path), str(path))
    if not isinstance(content, Mapping) or content.get('format') != FORMAT:
        raise FileError(f"'{path}' holds no identified parameters: give a {PARAMETERS}")
    try:
        values = {
            f.name: content[f.name] for f in dataclasses.fields(Results) if f.name in content
        }
        values |= _tables(values)
        if values.get('compared'):
            other = values['compared']
            values['compared'] = _checked(Comparison, {**other, **_tables(other)})
        for name in ('joints', 'warnings', 'history'):
            if not isinstance(values[name], list):
                raise TypeError(f'{name} is no list')
            values[name] = tuple(values[name])
        values['torques'] = read_torques(path.with_name(TORQUES))
        return _checked(Results, values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"'{path}' is damaged ({error}): identify again") from error


def _checked(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass of values that have the types it declares."""
    for name, hint in get_type_hints(kind).items():
        if name in values and not _fits(values[name], hint):
            raise TypeError(f'{name} is {values[name]!r:.80}')
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a declared type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if origin is None:
        return isinstance(value, hint)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(v, inner[1]) for v in value.values())
    if origin in (tuple, Sequence):
        return isinstance(value, tuple | list) and all(_fits(v, inner[0]) for v in value)
    return any(_fits(value, kind) for kind in inner)


def _tables(content: Mapping[str, Any]) -> dict[str, Any]:
    """Read the tables that a result, or one to compare with, has."""
    kinds = {'base': Entry, 'standard': Entry, 'identification': Residual, 'validation': Residual}
    return {name: _entries(kind, content[name]) for name, kind in kinds.items() if name in content}


def _entries(kind: type[T], rows: Sequence[Mapping[str, Any]]) -> tuple[T, ...]:
    return tuple(_checked(kind, row) for row in rows)


def _plain(value: Any) -> Any:
    """Turn dataclasses, tuples and numpy numbers into what YAML knows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
