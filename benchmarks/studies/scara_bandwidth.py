"""Tables 8 and 9 of the SCARA study: loops that are replayed with a wrong bandwidth."""

import numpy as np
from scara_plant import Data, experiment, Motion, NOMINAL, RATE, ZETA
from scara_problem import along, GAIN, LAG, problem, wrong_loop
from scara_tables import Claims, deviation, iterations, MATTER, PER_PAPER, percent, table

from robotid_ros.core.findings import render
from robotid_ros.core.regression.estimate import Estimate
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.replay.didim import didim, History
from robotid_ros.core.replay.replay_problem import bandwidth, ReplayProblem
from robotid_ros.exceptions import DivergenceError

# How near DIDIM has to come to what the true robot leaves in the same loop: σ, or this share.
NEAR, SIGMAS = 0.02, 3.0


def half_bandwidth(data: Data, claims: Claims) -> dict[str, tuple[ReplayProblem, History]]:
    """
    Print tables 8 and 9, each in both readings; return problems and histories.

    Beside each row stands what the loop itself does to it: the robot of true parameters, by the
    independent integrator, in the loop that is replayed, and one least squares along its motion.
    """
    seed, histories = 0, {}
    for off in (LAG, GAIN):
        case = problem(data, 20, share=0.5, off=off)
        found, _, history = didim(case, case.initial_parameters('regular'))
        duration = len(data.tau) / RATE
        system = along(case, experiment(duration, seed, data.motion, wrong_loop(0.5, off)))
        true = fit(system, 'wls')
        table(
            f'Table 8, half of {off}',
            {'DIDIM': found, 'true robot': true},
            ('8 DIDIM',),
            why=[
                f'{100 * a:+6.1f} % of nominal, {100 * b:+6.1f} % by the loop alone'
                for a, b in zip(deviation(found), deviation(true), strict=True)
            ],
        )
        left = ' '.join(f'{x:.3f}' for x in system.relative_residual(NOMINAL / PER_PAPER))
        floor = f'the true parameters leave {left}'
        iterations(
            'Table 9, figures 14 and 15',
            case,
            history,
            '9',
            ('the start: more of it is friction', floor),
        )
        print(f'  {lags(data, off)}')
        judge(off, found, true, history, claims)
        histories[off] = case, history
    return histories


def lags(data: Data, off: str) -> str:
    """Say why the torque error of half a bandwidth cannot be that of the paper."""
    actual, replayed = (
        1e3 * 2.0 * ZETA * b / (a * data.motion.omega)
        for a, b in ((1.0, 1.0), wrong_loop(0.5, off))
    )
    pairs = ' and '.join(f'{b:.0f} ms for {a:.0f}' for a, b in zip(actual, replayed, strict=True))
    text = f'why: the replayed loops lag their references by 2ζ/ω_n = {pairs}'
    if off == LAG:
        return text + '; sign(dq), and W, are late by the difference in every iteration'
    return text + ', but yield four times as far to each torque; the slower, the more of it'


def judge(off: str, found: Estimate, true: Estimate, history: History, claims: Claims) -> None:
    """Claim the paper's steps, and that nothing but the loop is in the way."""
    claims(f'half of {off}: at most 6 steps ({history.steps})', history.steps <= 6)
    apart = np.abs(found.value - true.value)
    near = (apart <= SIGMAS * np.hypot(found.sigma, true.sigma)) | (
        apart <= NEAR * np.abs(true.value)
    )
    claims(
        f'half of {off}: DIDIM ends where the true robot in that loop does '
        f'(apart by {percent((apart / np.abs(true.value))[MATTER])})',
        bool(np.all(near[MATTER])),
    )


def shares(slow: Data, quick: Data, claims: Claims) -> None:
    """Print what becomes of DIDIM with less and less of the bandwidth."""
    for name, data, keep in (('the slow motion', slow, 20), ("the paper's torques", quick, 10)):
        largest = ' and '.join(f'{x:.1f}' for x in np.abs(data.tau).max(axis=0))
        for off in (LAG, GAIN):
            print(
                f'\n{name}, up to {largest} N·m; share of {off}: steps, torque error, deviation '
                'of the parameters that matter'
            )
            for share in (1.0, 0.8, 2.0 / 3.0, 0.5, 1.0 / 3.0, 0.25):
                text, said, off_by = attempt(problem(data, keep, share=share, off=off))
                print(f'  {share:4.2f}: {text}  {"; ".join(said)[:200]}', flush=True)
                if share <= 1.0 / 3.0:
                    claims(f'{share:.2f} of {off}: failure is said', bool(said))
                if share == 0.5 and data is quick and off == GAIN:
                    claims("half, the paper's torques: within 5 %", bool(off_by.max() <= 0.05))


def bandwidths(data: Data) -> None:
    """Print steps and bias against ω_n over the bandwidth of the motion."""
    print(
        '\nω_n1 / bandwidth of the motion of joint 1: steps, torque error, deviation; with the '
        'right loop | with one of 0.8 of its ω_n'
    )
    omega = data.motion.omega
    for ratio in (40.0, 20.0, 10.0, 5.0, 2.5):
        speed = float(omega[0] / (bandwidth(data.reference[1], RATE)[0] * ratio))
        fast = experiment(min(120.0, 120.0 / speed), 5, Motion(omega, speed))
        keep = 20 if speed < 3.0 else 5
        tries = [attempt(problem(fast, keep, share=share)) for share in (1.0, 0.8)]
        texts = [text + (' warned' if said else '') for text, said, _ in tries]
        print(f'  {ratio:5.2f}: ' + ' | '.join(texts), flush=True)


def attempt(case: ReplayProblem) -> tuple[str, list[str], np.ndarray]:
    """Return DIDIM from the regular start in one line, what it warns of, |deviations| (5,)."""
    try:
        estimate, _, history = didim(case, case.initial_parameters('regular'))
    except DivergenceError as error:
        return 'diverges', [str(error)], np.full(len(MATTER), np.inf)
    shares = deviation(estimate)[MATTER]
    text = f'{history.steps}  {estimate.total_residual:.3f}  {percent(shares)}'
    return text, list(map(render, history.findings)), np.abs(shares)
