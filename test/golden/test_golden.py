"""
Results that must not change while the code around them does.

Each case goes in where users do, by the library or the command line. Parameters with σ, the bodies
of `identified.urdf`, residuals, findings and verdict are compared with `golden.json`. Where other
results are meant, `make golden` writes that file again, and the message of its commit says why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import functools
from importlib.metadata import version
import io
import json
import math
import os
from pathlib import Path
import re
import sys
import tempfile
from typing import Any
from xml.etree import ElementTree

import bag_tools
import numpy as np
import pytest
import yaml

import robotid_ros as rid
from robotid_ros.cli.main import main
from robotid_ros.core.signals.recording import Controller, Recording, Reference
from robotid_ros.files.bags import open_recording
from robotid_ros.files.collect_results import collect_results
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.export.identified_model import identified_urdf
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import DEFAULTS
from robotid_ros.files.results import read_results, Results, verdict_of
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.plant.physics import Physics

ROOT = Path(__file__).resolve().parents[2]
DATASETS = ROOT.parent / 'shared' / 'datasets'
GOLDEN = Path(__file__).with_name('golden.json')
# Of a parameter relative to its value or its σ, whichever is larger; of all else relative.
TOLERANCE = 1e-9
# On another processor, whose linear algebra rounds otherwise: the same, and what is nothing.
# Processors with the same vector units differed by 9e-9, kernels for AVX2 and AVX-512 by 1.2e-6.
ELSEWHERE, NOTHING = 1e-5, 1e-8
# Other versions of these sum, factor or integrate in another order.
PACKAGES = ('numpy', 'scipy', 'pin', 'mujoco')
DIGITS = 13
# Whatever is cheap and leaves nothing to choose.
PLAIN = {'method': 'wls', 'model': 'plain', 'signals': {'cutoff': 15.0}}


# --- where logs come from ---


@functools.cache
def session(name: str) -> Recording:
    """Run a shipped design on the simulated robot."""
    return simulated(name)


def simulated(name: str, **settings: Any) -> Recording:
    """Run one period of a shipped design and its validation motion, with other settings."""
    values = yaml.safe_load((ROOT / 'config' / f'{name}.yaml').read_text())
    values['/**']['ros__parameters']['excitation']['periods'] = 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'robot.yaml'
        path.write_text(yaml.safe_dump(values))
        design = read_design(ROOT / 'config' / 'trajectories' / f'{name}.yaml')
        return rid.simulate(path, design, **settings)


def decimated(log: Recording, every: int) -> dict[str, np.ndarray]:
    """Return the columns of one of so many samples, by joint."""
    columns = {'time': log.time[::every]}
    for k, joint in enumerate(log.joints):
        columns[f'{joint}_position'] = log.position[::every, k]
        columns[f'{joint}_effort'] = log.effort[::every, k]
    return columns


def write_table(columns: Mapping[str, np.ndarray], path: Path) -> Path:
    """Write columns as CSV, npz or MAT."""
    if path.suffix == '.csv':
        rows, names = np.column_stack([*columns.values()]), ','.join(columns)
        np.savetxt(path, rows, delimiter=',', header=names, comments='')
    elif path.suffix == '.npz':
        np.savez(path, **columns)
    else:
        from scipy.io import savemat

        savemat(path, columns)
    return path


def data(name: str) -> Path:
    """Return a file of the measured data; skip where they are not on this machine."""
    if not (DATASETS / name).exists():
        pytest.skip(f'the measured data are not there: {DATASETS / name}')
    return DATASETS / name


@functools.cache
def tx40(every: int = 5) -> dict[str, np.ndarray]:
    """Return the columns of the TX-40's log."""
    log = np.load(data('tx40/traj1.npz'))
    joints = tuple(f'joint_{j}' for j in range(1, 7))
    return decimated(Recording(joints, log['t'], log['q'], log['tau']), every)


def emps(seconds: float) -> Recording:
    """Return the beginning of EMPS's log, with the controller and what it followed."""
    log = np.load(data('emps/ident.npz'))
    gain, kp, kv = (float(log[name].squeeze()) for name in ('gtau', 'kp', 'kv'))
    time = log['t'].ravel()
    first = time < seconds
    q, tau, wanted = (log[k].reshape(len(time), -1)[first] for k in ('q', 'tau', 'q_ref'))
    speed = np.gradient(wanted, 1e-3, axis=0)
    gains = {'joint_1': {'kp': kp, 'kv': kv * gain, 'differences': 1.0, 'limit': 10.0 * gain}}
    return Recording(
        *(('joint_1',), time[first], q, tau),
        source='emps',
        reference=Reference(time[first], wanted, speed, np.zeros_like(q), tau),
        controller=Controller('cascade', 'cascade', 1000.0, ('joint_1',), ('effort',), gains),
    )


def elastic() -> tuple[rid.Robot, Recording]:
    """Drive the planar arm with springs by PD along its design; return the second period."""
    path = ROOT / 'config' / 'planar_2r_elastic.yaml'
    configuration, rate, noise = load(path), 1000.0, np.random.default_rng(0)
    physics = Physics(
        read_urdf(configuration), configuration.simulation, configuration.robot.joints
    )
    gains = [configuration.simulation.gains[joint] for joint in physics.joints]
    p, d = np.array([g.p for g in gains]), np.array([g.d for g in gains])
    trajectory = read_design(ROOT / 'config/trajectories/planar_2r_elastic.yaml').trajectory
    wanted, rows = trajectory.sample(np.arange(round(8.9 * rate)) / rate), []
    physics.set_state(wanted.q[0], wanted.dq[0])
    for q, dq in [*zip(wanted.q, wanted.dq, strict=True)] * 2:
        effort = p * (q - physics.position) + d * (dq - physics.velocity)
        rows.append(physics.joint_state(effort))
        physics.step(effort)
    q, _, tau = (np.array(x) for x in zip(*rows[len(wanted.q) :], strict=True))
    q = q + 1e-6 * noise.normal(size=q.shape)
    tau = tau + 0.05 * noise.normal(size=tau.shape)
    time = np.arange(len(q)) / rate
    return rid.load_robot(path), Recording(physics.joint_state_names, time, q, tau, source='arm')


# --- ways in ---


def command(*arguments: Any) -> None:
    """Run the command line, silently; an unusable result is one."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main([str(argument) for argument in arguments])
    assert code in (0, 4), said.getvalue()


def by_command(folder: Path, *arguments: Any) -> dict[str, Any]:
    """Identify at the command line, and read the files."""
    command('identify', *arguments, '-o', folder / 'out')
    return observed(read_results(folder / 'out'), (folder / 'out' / 'identified.urdf').read_text())


def by_library(log: Any, robot: Any = None, other: Any = None, **settings: Any) -> dict[str, Any]:
    """Identify by the library."""
    found = rid.identify(log, robot, other, **settings)
    urdf = identified_urdf(found.robot, found.standard.value, found.plain_friction)
    return observed(collect_results(found, log), urdf)


# --- cases ---

CASES: dict[str, Callable[[Path], dict[str, Any]]] = {}


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a case of its name."""
    CASES[function.__name__] = function
    return function


@case
def session_arm3(_: Path) -> Any:
    return by_library(session('arm3'))


@case
def session_scara(_: Path) -> Any:
    return by_library(session('scara'))


@case
def session_tx40(_: Path) -> Any:
    return by_library(session('tx40'))


@case
def session_ur10(_: Path) -> Any:
    return by_library(session('ur10'))


@case
def session_scara_of_rough_sensors(_: Path) -> Any:
    noise = {'position': [2e-4], 'effort': [1.0, 0.04]}
    return by_library(simulated('scara', seed=7, noise=noise), method='irls')


@case
def session_along_the_simulated_loop(_: Path) -> Any:
    return by_library(session('scara'), method='didim')


@case
def measured_bag(folder: Path) -> Any:
    bag = data('ur10/ur10_exciting_trajectory.db3')
    return by_command(folder, bag, '-c', ROOT / 'config' / 'ur10.yaml', '--part', '0:0.5')


@case
def measured_bag_of_a_description(_: Path) -> Any:
    urdf = data('ur10/robot.urdf')
    log = rid.load(data('ur10/ur10_exciting_trajectory.db3'), urdf=urdf).between(0.0, 8.0)
    return by_library(log, urdf)


@case
def measured_npz(folder: Path) -> Any:
    path = write_table(tx40(), folder / 'tx40.npz')
    parts = '--to', 3.65, '--validation-part', '3.65s:7.3s'
    return by_command(folder, path, '-c', ROOT / 'config' / 'tx40.yaml', *parts)


@case
def measured_along_the_simulated_loop(_: Path) -> Any:
    robot = rid.load_robot(ROOT / 'config' / 'emps.yaml')
    signals = {'decimation': 15, 'cutoff': 60.0, 'standstill': 0.0}
    return by_library(emps(5.0), robot, method='didim', signals=signals)


@case
def table_csv(folder: Path) -> Any:
    log = session('arm3').phase('exciting')
    path = write_table(decimated(log, 2), folder / 'arm.csv')
    return by_command(folder, path, '--urdf', ROOT / 'urdf' / 'arm3.urdf')


@case
def table_mat(folder: Path) -> Any:
    path = write_table(tx40(10), folder / 'arm.mat')
    urdf = ROOT / 'urdf' / 'tx40.urdf'
    return by_command(folder, path, '--urdf', urdf, '--method', 'ols', '--to', 7.2)


@case
def several_logs(folder: Path) -> Any:
    logs = [session('scara').phase(name) for name in ('exciting', 'validating')]
    paths = [
        write_table(decimated(x, 2), folder / f'{k}.csv') for k, x in zip('ab', logs, strict=True)
    ]
    return by_command(folder, *paths, '-c', ROOT / 'config' / 'scara.yaml')


@case
def bag_in_chunks(folder: Path) -> Any:
    table = write_table(decimated(session('arm3'), 2), folder / 'arm.csv')
    bag_tools.write_table(folder, open_table(table, DEFAULTS), name='arm')
    robot = rid.load_robot(ROOT / 'config' / 'arm3.yaml')
    log = open_recording(folder / 'arm', robot.joints, max_samples=1500)
    assert not isinstance(log, Recording)
    return by_library(log, robot, **PLAIN)


@case
def elastic_joints(_: Path) -> Any:
    robot, log = elastic()
    return by_library(log, robot, signals={'cutoff': 10.0, 'standstill': 0.2})


@case
def payload(folder: Path) -> Any:
    body = {'mass': 2.0, 'com': [0.2, -0.05, 0.0], 'inertia': [0.01, 0.01, 0.02, 0.0, 0.0, 0.0]}
    logs = {'empty': session('scara'), 'loaded': simulated('scara', payload=body)}
    paths = [
        write_table(decimated(log.phase('exciting'), 2), folder / f'{name}.csv')
        for name, log in logs.items()
    ]
    command(
        *('payload', *paths, '-c', ROOT / 'config' / 'scara.yaml', '-o', folder / 'body.yaml'),
        *('--frame', 'joint_2'),
    )
    found = yaml.safe_load((folder / 'body.yaml').read_text())
    values = {k: [e['value'], e['sigma']] for k, e in found['parameters'].items()}
    codes = [(each['code'], each['joints']) for each in found['findings']]
    return {'parameters': values, 'findings': coded(codes)}


def disturbed(change: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> Any:
    """Identify the arm from efforts that something changes, given time and positions."""
    log = session('arm3').phase('exciting')
    time, q, tau = (x[::2].copy() for x in (log.time, log.position, log.effort))
    change(time, q, tau)
    other = rid.from_arrays(time, q, tau, joints=log.joints)
    return by_library(other, rid.load_robot(ROOT / 'urdf' / 'arm3.urdf', other), **PLAIN)


@case
def fault_opposite_sign(_: Path) -> Any:
    def change(time, q, tau):
        tau[:, 1] *= -1.0

    return disturbed(change)


@case
def fault_exchanged_columns(_: Path) -> Any:
    def change(time, q, tau):
        tau[:, [0, 1]] = tau[:, [1, 0]]

    return disturbed(change)


@case
def fault_gain_of_a_joint(_: Path) -> Any:
    def change(time, q, tau):
        tau[:, 2] *= 4.0

    return disturbed(change)


@case
def fault_efforts_are_currents(_: Path) -> Any:
    def change(time, q, tau):
        tau *= 0.03

    return disturbed(change)


@case
def fault_clipped(_: Path) -> Any:
    def change(time, q, tau):
        bound = 0.7 * np.abs(tau[:, 1]).max()
        np.clip(tau[:, 1], -bound, bound, out=tau[:, 1])

    return disturbed(change)


@case
def fault_scale_changes(_: Path) -> Any:
    def change(time, q, tau):
        tau[time > time.mean(), 0] *= 1.4

    return disturbed(change)


@case
def fault_missing_stamps_and_glitches(_: Path) -> Any:
    def change(time, q, tau):
        time[400:] += 0.3
        q[900, 1] += 0.5
        tau[700:720, 0] = np.nan

    return disturbed(change)


@case
def fault_joint_hardly_moves(_: Path) -> Any:
    def change(time, q, tau):
        q[:, 2] = q[:1, 2] + 1e-3 * np.sin(time)

    return disturbed(change)


@case
def fault_gravity(_: Path) -> Any:
    log = session('arm3').phase('exciting')
    robot = rid.load_robot(ROOT / 'urdf' / 'arm3.urdf', log, gravity=[0.0, -9.81, 0.0])
    return by_library(log, robot, **PLAIN)


# --- what is compared ---


def observed(results: Results, urdf: str) -> dict[str, Any]:
    """Return what must stay: lists of numbers, names, words."""
    verdict, parts = verdict_of(results), ('identification', 'validation')
    return {
        'parameters': {e.name: [e.value, e.sigma] for e in results.base},
        'standard': {e.name: [e.value, e.sigma] for e in results.standard},
        'residuals': {
            part: {r.joint: [r.relative, r.moving, r.rms] for r in getattr(results, part)}
            for part in parts
        },
        'urdf': dict(bodies(urdf)),
        'findings': coded((each.code, each.joints) for each in results.findings),
        'verdict': {
            'level': verdict.level,
            'reason': verdict.reason,
            'validated': verdict.validated,
            'unit': verdict.effort_unit,
            'severe': verdict.severe,
            'errors': {
                e.joint: [e.from_parameters, e.from_model, e.measured] for e in verdict.joints
            },
        },
    }


def coded(findings: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the codes of what was found, with the joints, in alphabetical order."""
    return sorted(' '.join((code, *joints)) for code, joints in findings)


def bodies(urdf: str) -> Iterator[tuple[str, list[float]]]:
    """Yield mass, centre and inertia of each link, and friction of each joint."""
    for part in ElementTree.fromstring(urdf):
        for element in [*part.iterfind('inertial/*'), *part.iterfind('dynamics')]:
            numbers = ' '.join(element.attrib.values()).split()
            yield f'{part.get("name")} {element.tag}', [float(x) for x in numbers]


def rounded(value: Any) -> Any:
    """Return a value as JSON keeps it: numbers with `DIGITS` digits, NaN and infinity as text."""
    if isinstance(value, Mapping):
        return {str(k): rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return float(f'{value:.{DIGITS}g}') if math.isfinite(value) else str(value)


def differences(
    golden: Any, found: Any, tolerance: float = TOLERANCE, path: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield what is not as it was."""
    where = ' / '.join(path)
    if isinstance(golden, dict) and isinstance(found, dict):
        for key in [*golden, *(k for k in found if k not in golden)]:
            if key in golden and key in found:
                yield from differences(golden[key], found[key], tolerance, (*path, key))
            else:
                yield f'{where} / {key}: {"new" if key in found else "gone"}'
    elif path and path[0] == 'findings':
        yield from (f'finding gone: {text}' for text in golden if text not in found)
        yield from (f'finding new: {text}' for text in found if text not in golden)
    elif not isinstance(golden, list) or len(golden) != len(found):
        if golden != found:
            yield f'{where}: {golden} → {found}'
    else:
        # Of a parameter and its σ; of the numbers of one XML element, such as an inertia.
        whole = max((abs(x) for x in golden if isinstance(x, float)), default=0.0)
        joint = {'parameters': [whole, None], 'standard': [whole, None]}.get(path[0])
        scales = joint or [whole if path[0] == 'urdf' else None] * len(golden)
        for old, new, scale in zip(golden, found, scales, strict=True):
            if old == new:
                continue
            numbers = isinstance(old, float) and isinstance(new, float)
            size = (scale or abs(old)) if numbers else 0.0
            least = 0.0 if tolerance == TOLERANCE else NOTHING
            if not numbers or abs(old - new) > max(tolerance * size, least):
                off = f', {abs(old - new) / size:.1e}' if size else ''
                yield f'{where}: {old} → {new}{off}'


def versions() -> dict[str, str]:
    """Return the versions that may change the last digits."""
    return {name: version(name) for name in PACKAGES}


def processor() -> str:
    """Name what linear algebra rounds by: the processor, its vector units, kernels asked for."""
    first = Path('/proc/cpuinfo').read_text().split('\n\n')[0]
    facts = dict(re.findall(r'^(\S.*?)\s*:\s*(.*)', first, re.MULTILINE))
    kinds = ('vendor_id', 'cpu family', 'model', 'stepping', 'model name', 'cache size')
    units = {x for x in facts.get('flags', '').split() if re.match('avx|fma|amx', x)}
    asked = os.environ.get('OPENBLAS_CORETYPE', '')
    return ' '.join([asked, *(facts.get(kind, '') for kind in kinds), *sorted(units)]).strip()


# --- tests ---


@pytest.mark.parametrize('name', CASES)
def test_results_are_as_they_were(name: str, tmp_path: Path):
    golden = json.loads(GOLDEN.read_text())
    if golden['versions'] != versions():
        pytest.skip(f'golden.json is of {golden["versions"]}, this is {versions()}')
    found = json.loads(json.dumps(rounded(CASES[name](tmp_path))))
    same = golden['processor'] == processor()
    tolerance = TOLERANCE if same else ELSEWHERE
    assert not list(differences(golden['cases'][name], found, tolerance))


def test_every_case_is_kept():
    assert set(json.loads(GOLDEN.read_text())['cases']) == set(CASES)


def test_a_difference_is_one():
    golden = {'parameters': {'a': [1.0, 0.1]}, 'findings': ['x'], 'verdict': {'level': 'good'}}
    for change in (
        {'parameters': {'a': [1.0 + 2e-9, 0.1]}},
        {'parameters': {'a': [1.0, 0.1 * (1 + 2e-9)]}},
        {'parameters': {'a': [1.0, 'nan']}},
        {'parameters': {}},
        {'findings': []},
        {'verdict': {'level': 'fair'}},
    ):
        assert len([*differences(golden, golden | change)]) == 1, change
    assert not [*differences(golden, golden | {'parameters': {'a': [1.0 + 5e-10, 0.1]}})]


def write() -> None:
    """Write `golden.json` from the code as it is."""
    kept = {}
    for name, function in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                kept[name] = rounded(function(Path(folder)))
            except pytest.skip.Exception as error:
                sys.exit(f'{GOLDEN.name} stays as it is: {error}')
        print(name, kept[name].get('verdict', {}).get('level', ''), flush=True)
    made = {'versions': versions(), 'processor': processor(), 'cases': kept}
    text = json.dumps(made, indent=1, ensure_ascii=False)
    # One list of numbers a line.
    text = re.sub(r'\[\s+([-\d"][^\[\]{}]*?)\s+\]', lambda m: f'[{" ".join(m[1].split())}]', text)
    GOLDEN.write_text(f'{text}\n')


if __name__ == '__main__':
    sys.exit(write())
