"""What an identification leaves: plain values, alone and beside others, and their files."""

from collections.abc import Mapping, Sequence
import dataclasses
from dataclasses import dataclass, field
import io
import json
import math
from pathlib import Path
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np

from ..core.diagnostics.data_quality import DataQuality
from ..core.findings import as_data, Finding, from_data, Severity
from ..core.model.settings import RobotSettings
from ..core.parameters.plain_friction import PlainFriction
from ..core.regression.validation import Validation
from ..core.verdict import decide_level, JointError, THRESHOLDS, Verdict
from ..exceptions import ConfigurationError, FileError
from .atomic import file_errors, read_text, write_bytes, write_text
from .bounded import damage_errors, load_npz
from .verification import read_verification, VERIFICATION, Verification
from .yaml import dump_yaml, from_plain, parse_yaml, to_plain

if TYPE_CHECKING:
    from ..core.excitation.problem import Known
    from ..core.model.robot import Robot

URDF = 'identified.urdf'
PARAMETERS = 'parameters.yaml'
TORQUES = 'torques.npz'
REPORT = 'report.html'
# What an identification writes.
RESULT_FILES = (PARAMETERS, TORQUES, URDF, REPORT)
FORMAT, SERVO_FORMAT = 1, 'servos-1'
# Numbers of `data` that the report shows.
NUMBERS = {'base_residual', 'consistent_residual', 'from', 'to', 'rate'}
# Words of earlier versions; all others are warnings.
SEVERITIES = {'note': Severity.INFO, 'serious': Severity.ERROR}
# What an identification of servos from commands writes.
MODEL, DESCRIPTION = 'identified.xml', 'description.urdf'
SERVO_FILES = (PARAMETERS, MODEL, DESCRIPTION)


@dataclass(frozen=True)
class Entry:
    """One parameter as a user reads it."""

    name: str  # 'ZZ1R' or 'ZZ1'
    value: float  # [unit]
    sigma: float  # [unit]
    percent: float  # 100 σ/|value|
    unit: str = ''  # SI, joint side
    joint: str = ''  # joint or coupling that it belongs to
    # Of base parameters 'essential', 'small' or 'prior' (near the robot description's value, the
    # motion tells less); class of a standard parameter.
    kind: str = ''
    combination: str = ''  # a base parameter as a sum of standard ones
    # The standard parameter that stands for a base parameter: all others zero, these alone give
    # the same torques.
    column: str = ''
    prior: float | None = None  # value before the identification, None when there is none
    true: float | None = None  # value that a simulation ran with, None on a real robot

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
    """Goodness of fit of one joint."""

    joint: str
    relative: float  # ‖Y − Wχ‖/‖Y‖
    rms: float  # root mean square of the residual [unit]
    torque: float  # the same of the measured torque [unit]
    unit: str = 'N·m'  # or 'N'
    moving: float = math.nan  # `relative` while the joint moves: friction at rest has no model
    r2: float = math.nan  # coefficient of determination

    @property
    def reported(self) -> float:
        """Relative residual to judge by: that while the joint moves, where there is one."""
        return self.relative if math.isnan(self.moving) else self.moving


def total_residual(rows: Sequence[Residual]) -> float:
    """Relative residual of all joints together; NaN where torques and forces do not add up."""
    if len({row.unit for row in rows}) != 1:
        return math.nan
    residual, torque = np.array([(row.rms**2, row.torque**2) for row in rows]).sum(axis=0)
    return float(np.sqrt(residual / torque)) if torque else math.nan


@dataclass(frozen=True)
class Comparison:
    """What another method found in the same recording: base parameters and residuals."""

    method: str
    base: tuple[Entry, ...]
    identification: tuple[Residual, ...]
    validation: tuple[Residual, ...] = ()


@dataclass(frozen=True)
class Results:
    """Everything that an identification leaves behind, as plain values."""

    robot: str
    method: str
    created: str  # ISO 8601
    joints: tuple[str, ...]
    base: tuple[Entry, ...]  # parameters
    standard: tuple[Entry, ...]
    identification: tuple[Residual, ...]  # per joint
    validation: tuple[Residual, ...] = ()  # empty without other data
    condition_number: float = math.nan  # of the weighted observation matrix
    data: Mapping[str, Any] = field(default_factory=dict)  # recording, duration and the like
    # By joint, whether the link's parameters are those of a physical body.
    consistent: Mapping[str, bool] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()  # what matters most first
    # One row of numbers per iteration, of methods that iterate.
    history: tuple[Mapping[str, float], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # the configuration used
    versions: Mapping[str, str] = field(default_factory=dict)  # by package
    torques: Mapping[str, Validation] = field(
        default_factory=dict
    )  # 'identification', 'validation'
    # Count, values, residual and path of the selection of essential parameters.
    essential: Mapping[str, Any] = field(default_factory=dict)
    compared: Comparison | None = None  # what another method found
    # What the mixed model opened, and what that gains; empty: nothing was open.
    selection: Mapping[str, Any] = field(default_factory=dict)
    verification: Verification | None = None  # what they were worth on the robot
    # Keys of `robot` in a configuration with which identified.urdf is the model.
    model: Mapping[str, Any] = field(default_factory=dict)
    quality: DataQuality | None = None  # of the data
    # By joint or coupling, what stands for its friction where a format has no other law; empty in
    # files of earlier versions.
    plain_friction: Mapping[str, PlainFriction] = field(default_factory=dict)
    verdict: Verdict | None = None  # None in files of earlier versions, see `verdict_of`
    # Where they predict another recording, its residuals by `BASE`, `STANDARD`, `PRIOR`; no file
    # has these.
    sets: Mapping[str, tuple[Residual, ...]] = field(default_factory=dict)

    @property
    def minimal_parameters(self) -> dict[str, float]:
        """Standard parameters that give the identified torques; those left out are zero."""
        return {entry.column: entry.value for entry in self.base}


def verdict_of(results: Results) -> Verdict:
    """Return the verdict of results; by the residuals alone where a file does not have it."""
    if results.verdict is not None:
        return results.verdict
    rows = results.validation or results.identification
    validated = bool(results.validation)
    kind = 'measured' if validated else 'from_model'
    return decide_level(
        [JointError(row.joint, **{kind: row.reported}) for row in rows],
        results.findings,
        residual=max((row.reported for row in rows), default=math.nan),
        validated=validated,
    )


def base_covariance(results: Results) -> np.ndarray:
    """Return the covariance of base parameters (b, b); ConfigurationError: old files lack it."""
    lower, size = results.quality.correlation if results.quality else (), len(results.base)
    if len(lower) != size:
        raise ConfigurationError(
            'the results have no covariance of the parameters: identify again'
        )
    correlation = np.zeros((size, size))
    for k, row in enumerate(lower):
        correlation[k, : k + 1] = correlation[: k + 1, k] = row
    sigma = np.array([entry.sigma for entry in results.base])
    return correlation * np.outer(sigma, sigma)


def known_of(results: Results) -> 'Known':
    """Return what is known for the next design; ConfigurationError: old files lack it."""
    from ..core.excitation.problem import Known

    data, rows = results.data, results.identification
    try:
        logs = data.get('logs', [data])
        duration = sum(float(log['to']) - float(log['from']) for log in logs)
        rate = float(data.get('independent_rows') or sum(data['rows'])) / len(rows) / duration
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise ConfigurationError(
            'the results lack the duration and the number of rows: identify again'
        ) from None
    joints = {each.joint: each.from_parameters for each in verdict_of(results).joints}
    return Known(
        joints=results.joints,
        names=tuple(entry.name for entry in results.base),
        value=np.array([entry.value for entry in results.base]),
        covariance=base_covariance(results),
        expected=np.array([joints.get(row.joint, math.nan) for row in rows]),
        noise=np.array([row.rms for row in rows]),
        effort=np.array([row.torque for row in rows]),
        rate=rate,
    )


def dump_known(known: 'Known', robot: 'Robot') -> str:
    """Write what is known of a robot while it moves, and its friction; `read_known` reads it."""
    friction = [[(term.name, dict(term.constants)) for term in own] for own in robot.friction]
    values = {**vars(known), 'friction': friction}
    return json.dumps(values, default=np.ndarray.tolist)


def read_known(text: str, robot: 'Robot') -> tuple['Known', 'Robot']:
    """Return what is known, and the robot with that friction; ConfigurationError: damaged."""
    from ..core.excitation.problem import Known
    from ..core.model.friction import make_terms
    from ..core.model.robot_builder import with_friction

    try:
        values = json.loads(text)
        friction = values.pop('friction')
        terms = (
            tuple(term for name, constants in own for term in make_terms((name,), constants))
            for own in friction
        )
        return from_plain(Known, values), with_friction(robot, tuple(terms))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f'what is known of the robot is damaged ({error!r}): is everything of one version?'
        ) from error


def chosen_settings(settings: RobotSettings, results: Results) -> RobotSettings:
    """Return a robot's settings with the friction that its identification chose."""
    if not results.selection:
        return settings
    chosen = {name: results.model[name] for name in ('friction_constants', 'effort_kind')}
    friction = {joint: tuple(terms) for joint, terms in results.model['friction'].items()}
    return dataclasses.replace(settings, friction=friction, **chosen)


# The sets of parameters that predict the same recording.
BASE, STANDARD, PRIOR = 'base', 'standard', 'prior'


# What a session has to reach: relative residual on the validation, true parameters within ±3σ.
MAX_RESIDUAL, MIN_SHARE_WITHIN = (THRESHOLDS[name] for name in ('recovered', 'recovered_share'))


class Recovery(NamedTuple):
    """How well a simulated robot was found again."""

    inside: int  # ±3σ of the truth, of so many base parameters of which that is known
    known: int
    residual: float  # the largest of a moving joint on the validation motion

    @property
    def passed(self) -> bool:
        """Whether enough true parameters lie within ±3σ and the residual is small."""
        enough = self.known and self.inside >= MIN_SHARE_WITHIN * self.known
        return bool(enough and self.residual <= MAX_RESIDUAL)

    def __str__(self) -> str:
        return (
            f'{self.inside} of {self.known} true base parameters lie within ±3σ; the largest '
            f'validation residual in motion is {100 * self.residual:.2f} %'
        )


def recovery_of(results: Results) -> Recovery:
    """Return how well the truth, which stands beside results, was found again."""
    worst = max((row.moving for row in results.validation), default=float('inf'))
    return Recovery(*count_within_sigma(results.base), worst)


# Difference of two results over its σ from which it is none of noise.
LARGE = 3.0


@dataclass(frozen=True)
class Difference:
    """One parameter in two results; second minus first."""

    name: str
    unit: str
    first: float  # [unit], as the next four
    first_sigma: float
    second: float
    second_sigma: float
    difference: float
    normalised: float | None  # over its σ, of independent estimates; None where there is no σ

    @property
    def large(self) -> bool:
        """Whether it is more than noise explains."""
        return self.normalised is not None and abs(self.normalised) > LARGE


def differences(first: Sequence[Entry], second: Sequence[Entry]) -> list[Difference]:
    """Compare parameters that both have; base parameters of the same combination are the same."""
    others, found = {(entry.name, entry.combination): entry for entry in second}, []
    for a in first:
        if b := others.get((a.name, a.combination)):
            sigma, change = math.hypot(a.sigma, b.sigma), b.value - a.value
            normalised = change / sigma if sigma and math.isfinite(sigma) else None
            values = (a.value, a.sigma, b.value, b.sigma, change, normalised)
            found.append(Difference(a.name, a.unit, *values))
    return found


def write_results(results: Results, folder: str | Path) -> Path:
    """Write `parameters.yaml`, whose path is returned, and `torques.npz`, exact to the bit."""
    elsewhere = 'torques', 'verification', 'sets'
    names = [f.name for f in dataclasses.fields(results) if f.name not in elsewhere]
    plain = {name: to_plain(getattr(results, name)) for name in names}
    plain['findings'] = [to_plain(as_data(found)) for found in results.findings]
    if results.torques:
        arrays: dict[str, Any] = {
            f'{name}.{key}': np.asarray(value)
            for name, each in results.torques.items()
            for key, value in vars(each).items()
            if value is not None
        }
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)
        write_bytes(Path(folder) / TORQUES, stream.getvalue())
    return write_text(Path(folder) / PARAMETERS, dump_yaml({'format': FORMAT, **plain}))


def results_folder(path: str | Path) -> Path:
    """Return the folder of results, of which the path is, or of the `parameters.yaml` in it."""
    return Path(path) if Path(path).is_dir() else Path(path).parent


def read_results(path: str | Path) -> Results:
    """Read `parameters.yaml`, or its folder, and what is beside it; FileError: none such."""
    path = Path(path, PARAMETERS) if Path(path).is_dir() else Path(path)
    if not path.exists():
        raise FileError(
            f"no such file: '{path}'; give a {PARAMETERS}, or the folder that robotid identify "
            'wrote it to'
        )
    content = parse_yaml(read_text(path), str(path))
    if isinstance(content, Mapping) and content.get('format') == SERVO_FORMAT:
        raise FileError(
            f"'{path}' holds servos that were identified from commands, no torques: use the "
            'identified.xml beside it in MuJoCo'
        )
    if not isinstance(content, Mapping) or content.get('format') != FORMAT:
        raise FileError(f"'{path}' holds no identified parameters: give a {PARAMETERS}")
    with damage_errors(path, 'identify again', FileError):
        names = (field.name for field in dataclasses.fields(Results))
        # Files of earlier versions lack others; without these one was cut short.
        values = {k: content[k] for k in names if k in content or k == 'history'}
        if 'findings' not in content:  # of earlier versions, with sentences
            severities = content.get('severities') or ['warning'] * len(content['warnings'])
            found = [
                from_data(str(text), SEVERITIES.get(severity, Severity.WARNING))
                for text, severity in zip(content['warnings'], severities, strict=True)
            ]
        elif isinstance(content['findings'], list):
            found = [from_data(each) for each in content['findings']]
        else:
            raise TypeError('findings are no list')
        values['findings'] = tuple(found)
        values['quality'] = content.get('quality') or None  # empty of earlier versions
        values['torques'] = _read_torques(path.with_name(TORQUES))
        verified = read_verification(path.with_name(VERIFICATION))
        # Of other parameters that were in this folder before, it says nothing.
        fits = verified is not None and verified.results == values['created']
        values['verification'] = verified if fits else None
        results = from_plain(Results, values)
        for entry in (*results.base, *results.standard):
            if not math.isfinite(entry.value):
                raise ValueError(f'{entry.name} is {entry.value}')
        for name in NUMBERS & results.data.keys():
            float(results.data[name] or 0.0)
        for step in results.essential.get('path', ()):
            dict(step)
        return results


def _read_torques(path: Path) -> dict[str, Validation]:
    if not path.exists():
        return {}
    found: dict[str, dict[str, Any]] = {}
    known = {item.name for item in dataclasses.fields(Validation)}
    # NumPy and zlib raise whatever the bytes lead to.
    with file_errors(path), damage_errors(path, 'identify again, or remove it', FileError):
        with load_npz(path) as arrays:
            for key in arrays:
                name, _, field = key.partition('.')
                if field in known:
                    found.setdefault(name, {})[field] = arrays[key]
        for each in found.values():
            each['joints'] = tuple(map(str, each['joints']))
        return {name: Validation(**each) for name, each in found.items()}
