"""
Efforts in coarse steps: least squares beside the likelihood of intervals, and dither.

    python benchmarks/studies/coarse_efforts.py [--runs N] [--check]

An arm with two servos, its torques by MuJoCo's inverse dynamics along 30 s of sines at 100 Hz,
with noise, read in steps; positions have 4096 steps a turn. Steps and noise are shares of the root
mean square of each torque. Likelihood: each torque is replaced by its expectation within its step,
given the fit so far, until the fit stays (EM, Dempster et al. 1977); its residuals are divided by
the share of the information that is left (Louis 1982). Dither: uniform noise of a step is added.
Printed: error of predicted torques on another motion, over their root mean square, and the share
of parameters within 3 σ of the truth.
"""

from dataclasses import replace
import sys

import _benchmarks  # noqa: F401
from commands import plant, ROBOTS, urdf
from common import command_line, verdict
import mujoco
import numpy as np
from scipy.ndimage import maximum_filter1d
from scipy.special import ndtr

from robotid_ros.core.model import build_robot, Robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.model_error import count_model_error
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, Samples, SignalSettings

RATE, SECONDS, ENCODER = 100, 30.0, 2.0 * np.pi / 4096
FV, FC = 0.06, 0.05
# Steps and noise, over the root mean square of the torque; readings below so many steps are 0.
STEPS, NOISES, DEAD = (0.02, 0.1, 0.3, 1.0), (0.0, 0.05, 0.2), (0.5, 2.0)
PASSES, CONVERGED = 30, 1e-4
METHODS = 'least squares', 'without zeros', 'dither', 'intervals'
# Least squares may be so many times worse than intervals up to steps of this share, and less often
# than that within 3 σ; with zeros left out its error falls to this share where the zone is wide.
WORSE, FINE, WITHIN, FALLS = 1.1, 0.1, 0.95, 0.5


def motion(n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return times, positions, velocities and accelerations of sums of sines."""
    t, rng = np.arange(0.0, SECONDS, 1.0 / RATE), np.random.default_rng(seed)
    w = 2.0 * np.pi * rng.uniform(0.1, 1.2, (n, 5, 1))
    phase, size = rng.uniform(0.0, 6.28, (n, 5, 1)), 0.5 / (1.0 + 0.3 * w)
    x = w * t + phase
    parts = size * np.sin(x), size * w * np.cos(x), -size * w**2 * np.sin(x)
    return t, *(part.sum(axis=1).T for part in parts)


def torques(model: mujoco.MjModel, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Return what a motion needs, by MuJoCo, with friction."""
    data, found = mujoco.MjData(model), np.empty_like(q)
    for k in range(len(q)):
        data.qpos, data.qvel, data.qacc = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        found[k] = data.qfrc_inverse
    return found + FV * dq + FC * np.sign(dq)


def read(tau: np.ndarray, step: np.ndarray, dead: float) -> np.ndarray:
    """Return torques as a drive reports them: whole steps, and 0 below `dead` steps."""
    return np.where(np.abs(tau) < dead * step, 0.0, np.round(tau / step) * step)


def expected(
    tau: np.ndarray, step: np.ndarray, dead: float, mean: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return expectation and variance of torques within their steps, of normal ones (N, n)."""
    half = np.where(tau == 0.0, max(dead, 0.5), 0.5) * step
    sign = np.where(tau >= mean, -1.0, 1.0)  # to the side where the tail is exact
    low, high = np.sort([sign * (tau + s * half - mean) / sigma for s in (-1, 1)], axis=0)
    a, b = np.clip(low, -8.0, 8.0), np.clip(high, -8.0, 8.0)
    at, bt = (np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi) for x in (a, b))
    mass = np.maximum(ndtr(b) - ndtr(a), 1e-15)
    shift = (at - bt) / mass
    variance = np.clip(1.0 + (a * at - b * bt) / mass - shift**2, 0.0, 1.0)
    variance[mass < 1e-12] = 0.0  # at the edge
    inside = np.clip(mean + sign * sigma * shift, tau - half, tau + half)
    return inside, variance * sigma**2


def by_intervals(
    samples: Samples, robot: Robot, base: BaseParameters, step: np.ndarray, dead: float
) -> Estimate:
    """Fit the likelihood of intervals."""
    tau, found = (
        samples.tau,
        fit(count_model_error(samples, observe(samples, robot, base), robot, base)),
    )
    sigma, value = np.maximum(found.sigma_torque, 0.05 * step), found.value
    for _ in range(PASSES):
        mean = inverse_dynamics(
            robot, basic_solution(base, value), samples.q, samples.dq, samples.ddq
        )
        inside, variance = expected(tau, step, dead, mean, sigma)
        used = samples.valid
        second = np.where(used, (inside - mean) ** 2 + variance, 0.0).sum(axis=0) / used.sum(
            axis=0
        )
        left = 1.0 - np.where(used, variance, 0.0).sum(axis=0) / used.sum(axis=0) / sigma**2
        sigma = np.maximum(np.sqrt(second), 0.02 * step)
        better = replace(samples, tau=mean + (inside - mean) / np.maximum(left, 0.05))
        system = observe(better, robot, base)
        found = fit(count_model_error(better, system, robot, base))
        moved, value = np.abs(found.value - value) / np.maximum(found.sigma, 1e-12), found.value
        if moved.max() < CONVERGED:
            break
    return found


def main() -> int:
    """Print a line for each step and noise."""
    parser = command_line(__doc__)
    parser.add_argument('--runs', type=int, default=10)
    arguments = parser.parse_args()
    chain = ROBOTS['arm'][1:]
    model, joints = plant(tuple(chain)), tuple(row[0] for row in chain)
    model.dof_armature[:] = [row[-1][2] for row in chain]
    friction = {'default': ('viscous', 'coulomb', 'offset')}
    robot = build_robot(urdf(tuple(chain)), RobotSettings(friction=friction))
    base, chi = base_parameters(robot), robot.prior.copy()
    for j, row in enumerate(chain, start=1):
        for name, x in (('Ia', row[-1][2]), ('Fv', FV), ('Fc', FC), ('off', 0.0)):
            chi[robot.column(f'{name}{j}')] = x
    truth = base.of(chi)
    other = motion(len(joints), 999)[1:]
    clean = torques(model, *other)
    print(f'{"step":>5s}{"noise":>6s}{"zero":>5s}', *(f'{m:>22s}' for m in METHODS))
    missed = []
    for dead in DEAD:
        for step_share in STEPS if dead < 1.0 else STEPS[:-1]:
            for noise in NOISES:
                errors, inside = np.zeros((2, len(METHODS), arguments.runs))
                for run in range(arguments.runs):
                    t, q, dq, ddq = motion(len(joints), run)
                    rng = np.random.default_rng(run)
                    tau = torques(model, q, dq, ddq)
                    size = np.sqrt(np.mean(tau**2, axis=0))
                    step = step_share * size
                    coarse = read(tau + noise * size * rng.standard_normal(tau.shape), step, dead)
                    settings = SignalSettings(time_offset=False)
                    steps = np.round(q / ENCODER) * ENCODER
                    samples = prepare(Recording(joints, t, steps, coarse), robot, settings)
                    wide = step * rng.uniform(-0.5, 0.5, tau.shape)
                    far = samples.decimation // 2 + 1
                    silent = maximum_filter1d(coarse == 0.0, 2 * far + 1, axis=0)
                    others = (
                        replace(samples, valid=samples.valid & ~silent),
                        replace(samples, tau=samples.tau + wide),
                    )
                    found = [
                        fit(count_model_error(s, observe(s, robot, base), robot, base))
                        for s in (samples, *others)
                    ]
                    found.append(by_intervals(samples, robot, base, step, dead))
                    for k, each in enumerate(found):
                        predicted = inverse_dynamics(
                            robot, basic_solution(base, each.value), *other
                        )
                        errors[k, run] = np.sqrt(
                            np.mean((predicted - clean) ** 2 / np.mean(clean**2, axis=0))
                        )
                        inside[k, run] = np.mean(np.abs(each.value - truth) <= 3.0 * each.sigma)
                error = 100.0 * np.sqrt(np.mean(errors**2, axis=1))
                shares = 100.0 * inside.mean(axis=1)
                cells = (f'{e:10.2f} %{s:7.0f} %  ' for e, s in zip(error, shares, strict=True))
                print(f'{step_share:5.2f}{noise:6.2f}{dead:5.1f}', *cells, flush=True)
                case = f'steps of {step_share}, noise of {noise}'
                if dead < 1.0 and step_share <= FINE and error[0] > WORSE * error[-1]:
                    missed.append(f'{case}: least squares {error[0] / error[-1]:.2f} times worse')
                if dead < 1.0 and shares[0] < 100.0 * WITHIN:
                    missed.append(f'{case}: {shares[0]:.0f} % within 3 σ')
                if dead > 1.0 and step_share > FINE and error[1] > FALLS * error[0]:
                    missed.append(f'{case}: zeros left out leave {error[1] / error[0]:.2f}')
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
