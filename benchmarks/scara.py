"""
The SCARA study of DIDIM (Gautier, Janot, Vandanjon): its tables 1 to 9 beside ours.

    python benchmarks/scara.py [--check] [--plots DIR] [--duration SECONDS] [--seed N]

The robot is integrated here, from the equations of the paper (eq. 65) written out by hand, by
scipy's odeint with sign(q̇) = tanh(q̇/1e-5): nothing of it is the package's. Loops: PD, ζ = 1,
ω_n = 2π·1 and 2π·10 rad/s, at 200 Hz on the true state. Recorded: position with noise of 2e-5 rad,
torque with white noise of 8 % of its RMS (the paper's residual without filtering).
Reference: sums of three sines a joint, from rest (COMPONENTS below), slow against ω_n.
"""

import argparse
import dataclasses
from math import cos, sin, tanh
from pathlib import Path
import sys

import numpy as np
from scipy.integrate import odeint
from scipy.signal import butter, sosfiltfilt

from robotid_ros.core.estimation import base_parameters
from robotid_ros.core.estimation.estimators import Estimate, fit
from robotid_ros.core.model import build_robot
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.history import History
from robotid_ros.core.replay.laws import pd
from robotid_ros.core.replay.loop import Desired
from robotid_ros.core.replay.observe import observe
from robotid_ros.core.replay.problem import Replay
from robotid_ros.core.replay.reference import bandwidth, Torque
from robotid_ros.core.replay.settings import ReplaySettings
from robotid_ros.core.replay.simulate import Simulation
from robotid_ros.core.replay.start import start_from
from robotid_ros.exceptions import DivergenceError
from robotid_ros.files.configuration import load

ROOT = Path(__file__).resolve().parent.parent
RATE = 200.0
LENGTH = 0.5
NAMES = ('ZZ1R', 'Fv1', 'Fc1', 'ZZ2R', 'LMX2', 'LMY2', 'Fv2', 'Fc2')
NOMINAL = np.array([3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137])
MATTER = [0, 2, 3, 4, 7]
# Our base parameters hold MX2 and MY2 where the paper's hold L times them.
PER_PAPER = np.array([1.0, 1.0, 1.0, 1.0, LENGTH, LENGTH, 1.0, 1.0])
OMEGA, ZETA = 2.0 * np.pi * np.array([1.0, 10.0]), np.ones(2)
INERTIA = np.array([3.44 + 0.062 + 2.0 * 0.121, 0.062])
POSITION_NOISE, TORQUE_NOISE = 2e-5, 0.08
# Amplitude [rad], angular frequency [rad/s], phase [rad].
COMPONENTS = (
    ((4.8, 0.105, 0.0), (1.8, 0.215, 1.3), (0.6, 0.445, 2.0)),
    ((2.0, 0.285, 0.4), (1.0, 0.655, 2.1), (0.44, 0.985, 4.0)),
)
# What the paper prints: estimate and relative standard deviation [%], table 1, 2, 5, 7, 8.
PAPER = {
    '1 IDIM': (
        [3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137],
        [0.50, 52, 6.0, 0.51, 0.56, 5.0, 23, 2.3],
    ),
    '1 DIDIM': (
        [3.45, 0.04, 0.82, 0.061, 0.124, 0.007, 0.014, 0.133],
        [0.52, 40, 3.0, 0.49, 0.52, 3.5, 30, 3.0],
    ),
    '2 DIDIM': (
        [3.45, 0.02, 0.85, 0.061, 0.124, 0.007, 0.01, 0.132],
        [0.2, 15, 1.0, 0.1, 0.1, 2.0, 10, 0.3],
    ),
    '5 IDIM': (
        [3.10, 0.9, 1.0, 0.025, 0.075, -0.02, 0.35, 0.19],
        [0.3, 100, 5, 5.5, 5.3, 250, 800, 23],
    ),
    '5 DIDIM': (
        [3.45, 0.04, 0.81, 0.061, 0.124, 0.008, 0.01, 0.13],
        [0.5, 30, 3, 0.5, 0.5, 4.0, 25, 3.0],
    ),
    '7 IDIM': (
        [1.50, 0.095, 0.55, 0.14, 0.63, 0.1, 0.001, 0.19],
        [1.6, 80, 23.3, 6.7, 2.7, 11.8, 700, 68.4],
    ),
    '7 DIDIM': (
        [3.45, 0.05, 0.81, 0.061, 0.124, 0.008, 0.023, 0.13],
        [0.1, 21, 0.24, 0.3, 0.3, 5.6, 48, 1.5],
    ),
    '8 DIDIM': (
        [3.44, 0.02, 0.86, 0.060, 0.124, 0.007, 0.01, 0.13],
        [0.2, 15, 1.0, 0.1, 0.1, 2.0, 10, 0.3],
    ),
}
PAPER_ERRORS = {
    '3': ([0.42, 0.036, 0.02, 0.018], [3.20, 0.110, 0.02, 0.022]),
    '9': ([0.6, 0.05, 0.06, 0.04, 0.025, 0.02, 0.02], [3.0, 0.11, 0.05, 0.02, 0.025, 0.02, 0.02]),
}


def acceleration(state: tuple[float, ...], _: float, tau1: float, tau2: float) -> tuple:
    """Return the state's derivative: eq. 65 solved for the accelerations, by hand."""
    _, q2, v1, v2 = state
    zz1, fv1, fc1, zz2, lmx, lmy, fv2, fc2 = NOMINAL
    even, odd = lmx * cos(q2) - lmy * sin(q2), lmx * sin(q2) + lmy * cos(q2)
    m11, m12, m22 = zz1 + zz2 + 2.0 * even, zz2 + even, zz2
    b1 = tau1 + odd * v2 * (2.0 * v1 + v2) - fv1 * v1 - fc1 * tanh(v1 / 1e-5)
    b2 = tau2 - odd * v1 * v1 - fv2 * v2 - fc2 * tanh(v2 / 1e-5)
    determinant = m11 * m22 - m12 * m12
    return v1, v2, (m22 * b1 - m12 * b2) / determinant, (m11 * b2 - m12 * b1) / determinant


@dataclasses.dataclass(frozen=True)
class Data:
    """One experiment: reference, true state (K, 4), measured position and torque (K, 2)."""

    reference: tuple[np.ndarray, np.ndarray, np.ndarray]
    state: np.ndarray
    q: np.ndarray
    tau: np.ndarray


def reference(t: np.ndarray, speed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q_r and its derivatives, (K, 2): the sines, on a clock that starts from rest."""
    ramp = 4.0
    u = np.clip(t / ramp, 0.0, 1.0)
    clock = speed * np.where(t < ramp, ramp * (u**3 - u**4 / 2.0), t - ramp / 2.0)
    rate, change = speed * (3.0 * u**2 - 2.0 * u**3), speed * 6.0 * u * (1.0 - u) / ramp
    q, dq, ddq = (np.zeros((t.size, 2)) for _ in range(3))
    for j, sines in enumerate(COMPONENTS):
        for a, w, phase in sines:
            q[:, j] += a * np.sin(w * clock + phase)
            dq[:, j] += a * w * np.cos(w * clock + phase) * rate
            ddq[:, j] -= (
                a
                * w
                * (w * np.sin(w * clock + phase) * rate**2 - np.cos(w * clock + phase) * change)
            )
    return q, dq, ddq


def experiment(duration: float, seed: int, omega: np.ndarray = OMEGA, speed: float = 1.0) -> Data:
    """Run the robot under its PD loops and measure it."""
    t = np.arange(round(duration * RATE)) / RATE
    motion = reference(t, speed)
    kp, kv = omega / (2.0 * ZETA), 2.0 * ZETA * omega * INERTIA
    state = np.concatenate([motion[0][0], np.zeros(2)])
    states, tau = np.empty((t.size, 4)), np.empty((t.size, 2))
    for k, wanted in enumerate(motion[0]):
        states[k] = state
        tau[k] = kv * (kp * (wanted - state[:2]) - state[2:])
        state = odeint(acceleration, state, (0.0, 1.0 / RATE), (*tau[k],), rtol=1e-9, atol=1e-11)
        state = state[-1]
    rng = np.random.default_rng(seed)
    noise = TORQUE_NOISE * tau.std(axis=0) * rng.normal(size=tau.shape)
    position = states[:, :2] + POSITION_NOISE * rng.normal(size=tau.shape)
    return Data(motion, states, position, tau + noise)


def differentiated(data: Data, cutoff: float, stride: int = 1) -> Simulation:
    """Return the measured motion as IDIM sees it: low-passed (0: not), central differences."""
    q = data.q[::stride]
    if cutoff > 0.0:
        q = sosfiltfilt(butter(4, cutoff / (RATE / stride / 2.0), output='sos'), q, axis=0)
    dq = np.gradient(q, stride / RATE, axis=0)
    ddq = np.gradient(dq, stride / RATE, axis=0)
    return Simulation(RATE / stride, q, dq, ddq, data.tau[::stride], np.sign(dq))


def problem(
    data: Data, keep: int, stride: int = 1, share: float = 1.0, omega: np.ndarray = OMEGA
) -> Replay:
    """Return the experiment ready for DIDIM, its simulated loop at `share` of the bandwidth."""
    configuration = load(ROOT / 'config' / 'scara.yaml')
    robot = build_robot((ROOT / 'urdf' / 'scara.urdf').read_text(), configuration.robot)
    filtered = differentiated(data, 20.0)
    rows = np.arange(0, data.tau.shape[0], stride)
    return Replay(
        robot,
        base_parameters(robot),
        pd(RATE, share * omega, ZETA, INERTIA),
        Desired(*data.reference, np.zeros_like(data.tau)),
        Torque(rows.astype(float), data.tau[rows], np.ones(rows.size, dtype=bool), RATE / stride),
        ReplaySettings(decimation=keep, step=1.0 / RATE),
        measured=(filtered.q, filtered.dq, filtered.ddq),
        a_priori=INERTIA,
    )


def idim(case: Replay, motion: Simulation, stride: int = 1) -> Estimate:
    """Identify from the measured motion, with the same decimation and the same fit."""
    torque = case.torque._replace(row=case.torque.row / stride)
    law = dataclasses.replace(case.law, rate=motion.rate)
    return fit(observe(dataclasses.replace(case, torque=torque, law=law), motion), 'wls')


def table(title: str, columns: dict[str, Estimate], paper: tuple[str, ...]) -> None:
    """Print estimates with σ and %σ beside the paper's."""
    print(f'\n{title}')
    print(
        f'{"":6s}{"nominal":>9s}'
        + ''.join(f'{n:>12s} 2sigma   %sig' for n in columns)
        + ''.join(f'{"paper " + n:>16s}   %sig' for n in paper)
    )
    for i, name in enumerate(NAMES):
        ours = ''.join(
            f'{e.value[i] * PER_PAPER[i]:12.4f} {2 * e.sigma[i] * PER_PAPER[i]:6.4f} '
            f'{min(e.relative_sigma[i], 9999):6.1f}'
            for e in columns.values()
        )
        theirs = ''.join(f'{PAPER[n][0][i]:16.3f} {PAPER[n][1][i]:6.1f}' for n in paper)
        print(f'{name:6s}{NOMINAL[i]:9.3f}{ours}{theirs}')
    print(
        'relative error '
        + ', '.join(
            f'{n} {e.total_residual:.3f} ({", ".join(f"{r:.3f}" for r in e.residual)})'
            for n, e in columns.items()
        )
    )


def course(title: str, history: History, paper: str) -> None:
    """Print the torque error and the closeness of the motion at every iteration."""
    print(
        f'\n{title}: torque error of joints 1, 2 (paper), closeness of position, velocity, '
        'acceleration to actual / to reference [%]'
    )
    theirs = PAPER_ERRORS[paper]
    for record in history.iterations:
        k = record.number
        text = ' '.join(f'{t[k]:.3f}' for t in theirs) if k < len(theirs[0]) else '-'
        actual = ' '.join(f'{100 * x:5.2f}' for part in record.to_measured for x in part)
        wanted = ' '.join(f'{100 * x:5.2f}' for part in record.to_reference for x in part)
        error = ' '.join(f'{x:.3f}' for x in record.torque_error)
        print(f'  {k}: {error} ({text})   {actual}  /  {wanted}')


def deviation(estimate: Estimate) -> np.ndarray:
    """Return the relative deviation from nominal, (8,)."""
    return estimate.value * PER_PAPER / NOMINAL - 1.0


class Claims:
    """What the paper claims, and whether it holds here."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, text: str, holds: bool) -> None:
        """Print one claim."""
        self.failed += not holds
        print(f'{"holds " if holds else "FAILS "} {text}')


def percent(values: np.ndarray) -> str:
    """Print shares as percentages."""
    return ' '.join(f'{100 * x:.1f}' for x in values) + ' %'


def sweep(data: Data, claims: Claims) -> None:
    """Print steps and bias against the simulated loop's bandwidth, then against the motion's."""
    print(
        '\nsimulated bandwidth / actual: steps, torque error, deviation of '
        + ' '.join(NAMES[i] for i in MATTER)
    )
    for share in (1.0, 0.8, 2.0 / 3.0, 0.5, 1.0 / 3.0, 0.25):
        said, steps = [], None
        try:
            case = problem(data, 20, share=share)
            estimate, _, history = didim(case, start_from(case, 'regular'))
            said, steps = list(history.warnings), history.steps
            text = f'{estimate.total_residual:.3f}  {percent(deviation(estimate)[MATTER])}'
        except DivergenceError as error:
            said, text = [str(error)], 'diverges'
        print(f'  {share:4.2f}: {steps}  {text}  {"; ".join(said)[:300]}')
        if share == 0.5:
            claims('half the bandwidth: at most 6 steps', steps is not None and steps <= 6)
            off = np.abs(deviation(estimate))[MATTER]
            claims(f'half the bandwidth: within 5 % ({percent(off)})', bool(off.max() <= 0.05))
        if share <= 1.0 / 3.0:
            doubted = text == 'diverges' or any('not trustworthy' in line for line in said)
            claims('a third and beyond: said not to be trustworthy', doubted)
    print(
        '\nω_n1 / bandwidth of the motion of joint 1: steps, torque error, deviation; with the '
        'right loop | with one of 0.8 of the bandwidth'
    )
    for ratio in (40.0, 20.0, 10.0, 5.0, 2.5):
        speed = OMEGA[0] / (bandwidth(data.reference[1], RATE)[0] * ratio)
        fast = experiment(min(120.0, 120.0 / speed), 5, speed=speed)
        texts = [attempt(problem(fast, 20 if speed < 3.0 else 5, share=x)) for x in (1.0, 0.8)]
        print(f'  {ratio:5.2f}: ' + ' | '.join(texts))


def attempt(case: Replay) -> str:
    """Return the outcome of DIDIM from the regular start in one line."""
    try:
        estimate, _, history = didim(case, start_from(case, 'regular'))
    except DivergenceError as error:
        return str(error)[:120]
    shares = percent(deviation(estimate)[MATTER])
    warned = ' warned' if history.warnings else ''
    return f'{history.steps}  {estimate.total_residual:.3f}  {shares}{warned}'


def plots(folder: Path, histories: dict[str, History]) -> None:
    """Draw figures 11 to 15 of the paper: closeness, torque error, parameters, per iteration."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for name, history in histories.items():
        records = history.iterations
        k = [record.number for record in records]
        figure, axes = pyplot.subplots(3, 2, figsize=(9, 9), sharex=True)
        for row, quantity in enumerate(('position', 'velocity', 'acceleration')):
            for j in range(2):
                for key, mark in (('to_measured', 'o-'), ('to_reference', '*-')):
                    values = [getattr(getattr(r, key), quantity)[j] for r in records]
                    axes[row, j].plot(k, values, mark, label=key.replace('_', ' '))
                axes[row, j].set_title(f'relative error of {quantity}, joint {j + 1}')
        axes[0, 0].legend()
        figure.savefig(folder / f'{name}_closeness.svg')
        figure, axes = pyplot.subplots(2, 1, figsize=(9, 6), sharex=True)
        for j in range(2):
            axes[j].semilogy(k, [record.torque_error[j] for record in records], 'o-')
            axes[j].set_title(f'relative torque error, joint {j + 1}')
        figure.savefig(folder / f'{name}_torque.svg')
        figure, axes = pyplot.subplots(2, 4, figsize=(12, 6), sharex=True)
        for i, axis in enumerate(axes.ravel()):
            axis.plot(k, [record.value[i] * PER_PAPER[i] for record in records], 'o-')
            axis.axhline(NOMINAL[i], color='0.6')
            axis.set_title(NAMES[i])
        figure.savefig(folder / f'{name}_parameters.svg')
        pyplot.close('all')


def good_data(data: Data, claims: Claims) -> dict[str, History]:
    """Tables 1 to 4: filtered data, from the IDIM solution and from the regular start."""
    case = problem(data, 20)
    known = idim(case, differentiated(data, 20.0))
    near, _, first = didim(case, case.lift(known.value))
    far, _, second = didim(case, start_from(case, 'regular'))
    other, _, third = didim(case, start_from(case, 'prior'))
    table('Table 1, IDIM start', {'IDIM': known, 'DIDIM': near}, ('1 IDIM', '1 DIDIM'))
    table('Table 2, regular start', {'DIDIM': far}, ('2 DIDIM',))
    course('Table 3, figures 11 and 12', second, '3')
    print('\nTable 4, figure 13: parameters at each iteration')
    for record in second.iterations:
        print(f'  {record.number}: ' + ' '.join(f'{x:8.4f}' for x in record.value * PER_PAPER))
    claims(f'IDIM start: 2 steps ({first.steps})', first.steps <= 2)
    claims(f'regular start: 3, at most 4 steps ({second.steps})', second.steps <= 4)
    gap = np.abs(far.value - near.value) / far.sigma
    claims(f'both starts agree within 1 sigma ({gap.max():.2f})', bool(gap.max() <= 1.0))
    claims(
        f'so does a start from CAD ({third.steps} steps)',
        bool(np.all(np.abs(other.value - near.value) <= near.sigma)),
    )
    return {'full': second}


def bad_data(data: Data, claims: Claims) -> None:
    """Tables 5 to 7: sampled at 0.5 Hz without anti-alias filter; at 200 Hz without any filter."""
    stride = round(RATE / 0.5)
    slow = problem(data, 1, stride)
    sampled = differentiated(data, 0.0, stride)
    known = idim(slow, sampled, stride)
    found, _, history = didim(slow, start_from(slow, 'regular'))
    table('Table 5, 0.5 Hz', {'IDIM': known, 'DIDIM': found}, ('5 IDIM', '5 DIDIM'))
    fine = differentiated(data, 0.5)
    errors = [
        np.linalg.norm(a[::stride] - b, axis=0) / np.linalg.norm(a[::stride], axis=0)
        for a, b in ((fine.dq, sampled.dq), (fine.ddq, sampled.ddq))
    ]
    print(
        'Table 6, errors of IDIM at 0.5 Hz: velocity, acceleration of joints 1, 2: '
        + percent(np.concatenate(errors))
        + '  (paper 39 80, 73 81)'
    )
    off = np.abs(deviation(found))[MATTER]
    sure = (
        np.abs(found.value * PER_PAPER - NOMINAL)[MATTER] <= (3 * found.sigma * PER_PAPER)[MATTER]
    )
    claims(
        f'0.5 Hz: DIDIM within 5 % or 3 sigma ({percent(off)}, {history.steps} steps)',
        bool(np.all((off <= 0.05) | sure)),
    )
    wrong = np.abs(deviation(known))[MATTER]
    claims(f'0.5 Hz: IDIM fails ({percent(wrong)})', bool(wrong.max() > 0.2))
    raw = problem(data, 1)
    known = idim(raw, differentiated(data, 0.0))
    found, _, history = didim(raw, start_from(raw, 'regular'))
    table('Table 7, 200 Hz without filter', {'IDIM': known, 'DIDIM': found}, ('7 IDIM', '7 DIDIM'))
    off, wrong = np.abs(deviation(found))[MATTER], np.abs(deviation(known))[MATTER]
    claims(
        f'no filter: DIDIM within 3 % ({percent(off)}, {history.steps} steps)',
        bool(np.all(off <= 0.03)),
    )
    claims(f'no filter: IDIM fails ({percent(wrong)})', bool(wrong.max() > 0.2))


def main() -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--check', action='store_true', help='fail where a claim does not hold')
    parser.add_argument('--plots', type=Path, help='folder for figures 11 to 15')
    parser.add_argument('--duration', type=float, default=400.0, help='of the experiment [s]')
    parser.add_argument('--seed', type=int, default=1, help='of the noise')
    arguments = parser.parse_args()
    data = experiment(arguments.duration, arguments.seed)
    ratio = OMEGA / bandwidth(data.reference[1], RATE)
    print(
        f"{arguments.duration:.0f} s at {RATE:.0f} Hz, ω_n over the motion's bandwidth "
        f'{ratio[0]:.1f} and {ratio[1]:.1f}, torque RMS '
        + ' and '.join(f'{x:.2f}' for x in data.tau.std(axis=0))
        + ' N·m'
    )
    claims = Claims()
    histories = good_data(data, claims)
    bad_data(data, claims)
    half = problem(data, 20, share=0.5)
    estimate, _, history = didim(half, start_from(half, 'regular'))
    table('Table 8, half the simulated bandwidth', {'DIDIM': estimate}, ('8 DIDIM',))
    course('Table 9, figures 14 and 15', history, '9')
    sweep(data, claims)
    if arguments.plots:
        plots(arguments.plots, histories | {'half': history})
    return int(arguments.check and claims.failed > 0)


if __name__ == '__main__':
    sys.exit(main())
