"""
Robots with elastic joints (Zollo et al. 2015): the paper's figures beside ours.

    python benchmarks/studies/elastic.py [--check] [--draws N] [--robot 2r|6r|all]

The robots are simulated by MuJoCo with motors and links as bodies, 8900 samples at 1 kHz of the
trajectories in config/trajectories, PD control of the motors, encoders of 1 250 000 counts.
The normalised mean error is the mean of |χ̂ − χ|/|χ| over base parameters that are not zero; the
paper does not define it. SN is taken in dB: with the paper's own estimator (least squares on
unweighted rows, Butterworth of order five at 20 Hz, then noise on position, velocity and
acceleration) the error then leaps between 80 and 70, as it does in the paper; with SN as a ratio,
noise would exceed the deflections tenfold. Ours gets noise of that SN on all encoders instead, and
signals as configured whatever the noise: cut-offs come from the recording, periods are averaged.
Friction (Coulomb, viscous, and Stribeck's above Coulomb's) is not in the paper's text: it is ours.
"""

import sys

import _benchmarks  # noqa: F401
from common import command_line, verdict
from elastic_case import Case, COULOMB, COUNT, MAKKAR, normalised_error, STICTION, STRIBECK
import numpy as np

from robotid_ros.simulation_settings import PayloadSettings, StribeckSettings

ROBOTS = {'2r': 'planar_2r_elastic', '6r': 'puma560_elastic'}
LEVELS = (20, 40, 60, 70, 80, 100, 200, None)
PERIODS = (1, 20, 100)
PAPER = {'with': 0.103, 'without': 0.00862, '6r': 0.123}
PLAIN, SIMULATED = 'Coulomb + viscous', 'the shape simulated'
TERMS = {PLAIN: COULOMB, 'stiction terms': STICTION, 'Makkar terms': MAKKAR, SIMULATED: STRIBECK}
WHY = (
    'why stiction is worse than Coulomb: its atan(20 dq) still lacks 3 % of its end at 1 rad/s, '
    'where the simulated effect,\n  exp(−(dq/0.1)²), has long ended; its level and Fv make up for '
    'that, links and springs do not; rows that move hold none\n  of the effect, on all rows it '
    'explains more; the shape that is simulated has the least error'
)
# Largest errors over those with Coulomb friction, of what terms of friction leave alone.
ALIKE = 1.5
# Error of an estimate that is zero: beyond it nothing was found, and more is no worse.
NOTHING = 1.0
# The bare PUMA 560 loads its last joint with less than a tenth of an encoder count: at SN 100 no
# unbiased estimate of this spring has a σ below 70 % (Cramér and Rao).
UNWOUND = ('K6',)
# Error of all other springs that is asked for at SN 100.
ASKED = {'2r': 0.01, '6r': 0.02}
# Noise from which so many periods are worth their while [dB].
MANY, NOISY = PERIODS[-1], 60


def error(case, **arguments):
    """Identify and compare."""
    return normalised_error(*case.compare(case.identify(**arguments)), case.truth)


def stiffness(case, level, periods, draws):
    """Return the largest relative error of each spring over some draws, and its least stated σ."""
    found = [case.identify(level, periods, seed=seed) for seed in range(draws)]
    rows = {}
    for name in sorted(name for name in case.truth if name.startswith('K')):
        estimates = [(f.estimate, f.estimate.names.index(name)) for f in found]
        values = [e.value[k] / case.truth[name] - 1.0 for e, k in estimates]
        rows[name] = (
            max(map(abs, values)),
            min(e.sigma[k] for e, k in estimates) / case.truth[name],
        )
    return rows


def planar(draws, checks):
    """Print the planar robot's tables."""
    name = ROBOTS['2r']
    static = StribeckSettings(extra=(3.0, 1.2), velocity=(0.1, 0.1))
    stribeck = Case(name, stribeck=static)
    without = Case(name, coulomb=(0.0, 0.0))
    n = len(stribeck.q[0]) // 2
    deflection = np.degrees(np.abs(stribeck.q[:, :n] - stribeck.q[:, n:]).max(axis=0))
    print(f'2R: largest deflection {deflection.round(3)}° (paper 0.39°, 0.10°)\n')
    frictions(stribeck, checks)
    ours = error(without, friction=COULOMB[:1])
    print(f'without static friction, viscous: {ours:.5f} (paper {PAPER["without"]})')
    checks.append(('without static friction', ours, PAPER['without']))
    case = Case(name)
    gains(case, draws)
    noise_table(case, draws, checks)


def frictions(case, checks):
    """Print what terms of friction make of static friction, on rows that move and on all."""
    head = ('error', 'links and springs', 'friction in motion', 'residual of motors')
    print(f'with static friction; normalised mean error, paper {PAPER["with"]}; relative [%]:')
    print(f'{"":34}{head[0]:>9}' + ''.join(f'{text:>20}' for text in head[1:]))
    least = case.configuration.identification.signals.standstill
    for rows in ('moving', 'smooth'):
        found = {}
        for text, terms in TERMS.items():
            result = case.identify(friction=terms, rows=rows)
            values = *case.compare(result), case.truth
            found[text] = (
                normalised_error(*values),
                normalised_error(*values, skipped=('F',)),
                case.friction_error(result, least),
                float(result.estimate.residual[result.robot.rigid.n :].max()),
            )
            whole, *parts = found[text]
            cells = ''.join(f'{100.0 * x:20.3f}' for x in parts)
            print(f'{f"rows {rows}, {text}":34}{whole:9.5f}{cells}')
        if rows == 'moving':
            bounds(found, checks)
        else:
            checks += [(f'all rows, {text}: residual', found[text][3], found[PLAIN][3])
                       for text in TERMS if text != PLAIN]  # fmt: skip
    print(WHY)


def bounds(found, checks):
    """Bound each row: by the paper, links and springs and friction in motion by Coulomb's."""
    for text, (whole, links, friction, _) in found.items():
        checks.append((f'static friction, {text}', whole, PAPER['with']))
        checks.append((f'{text}: links and springs', links, ALIKE * found[PLAIN][1]))
        checks.append((f'{text}: friction in motion', friction, ALIKE * found[PLAIN][2]))
    checks.append(('the simulated shape', found[SIMULATED][0], found[PLAIN][0]))


def noise_table(case, draws, checks):
    """Print the error over the noise, for the paper's estimator on our data and for ours."""
    print('\nerror over noise, 2R with Coulomb friction as modelled; means of draws')
    heads = ''.join(f'{"ours, periods: " + str(count):>20}' for count in PERIODS)
    print(f'{"SN [dB]":>9}{"as the paper":>14}{heads}')
    for level in LEVELS:
        theirs = np.mean(
            [normalised_error(*case.paper(level, seed), case.truth) for seed in range(draws)]
        )
        cells = []
        for count in PERIODS[:2] if level is None or level > NOISY else PERIODS:
            errors = [error(case, level=level, periods=count, seed=s) for s in range(draws)]
            cells.append(float(np.mean(errors)))
        numbers = ''.join(f'{x:20.5f}' for x in cells)
        print(f'{level or "none":>9}{theirs:14.5f}{numbers}', flush=True)
        if theirs < NOTHING or cells[0] < NOTHING:
            checks.append((f'SN {level}: no worse than as the paper', cells[0], theirs))
    springs(case, 1, draws, '2r', checks)


def springs(case, periods, draws, robot, checks, unwound=()):
    """Print the error of each spring at SN 100; the σ of one that is `unwound` must say so."""
    asked = ASKED[robot]
    for joint, (value, sigma) in stiffness(case, 100, periods, draws).items():
        text = f'{joint} at SN 100, {periods} periods'
        print(f'{text}: {100 * value:.3f} %, stated σ {100 * sigma:.3f} %')
        if joint in unwound:
            checks.append((f'{robot} {text}: its σ must say so', asked, sigma))
        else:
            checks.append((f'{robot} {text}', value, asked))


def gains(case, draws, level=20, periods=MANY):
    """Print what each measure against noise gains, one after the other."""
    print(f'\nwhat each measure gains at SN {level}, 2R, means of draws')

    def row(text, errors):
        print(f'{text:62}{np.mean(list(errors)):9.5f}', flush=True)

    seeds = range(draws)
    paper = (normalised_error(*case.paper(level, seed), case.truth) for seed in seeds)
    row('as the paper: least squares, unweighted, 20 Hz', paper)
    steps = (
        ('zero-phase filter, rows weighted, instruments, 20 Hz', 1, {'cutoff': 20.0}),
        ('the same, cut-off from the motion', 1, {}),
        (f'{periods} periods', periods, {'averaging': False}),
        (f'{periods} periods, averaged first', periods, {}),
    )
    for text, count, more in steps:
        row(text, (error(case, level=level, periods=count, seed=seed, **more) for seed in seeds))


def puma(draws, checks):
    """Print the PUMA 560's tables."""
    coulomb = np.array([25.98, 10.62, 6.364, 1.068, 0.854, 0.554])
    static = StribeckSettings(extra=tuple((0.2 * coulomb).tolist()), velocity=(0.05,) * 6)
    for text, changes, unwound in (
        ('bare arm', {'payload': PayloadSettings()}, UNWOUND),
        ('with its rated load of 2.5 kg', {}, ()),
    ):
        case = Case(ROBOTS['6r'], stribeck=static, **changes)
        deflection = np.abs(case.q[:, :6] - case.q[:, 6:]).max(axis=0) / COUNT
        print(f'\n6R, {text}: largest deflections {deflection.round(1)} counts')
        ours = error(case)
        print(f'normalised mean error: paper {PAPER["6r"]}, ours {ours:.5f}')
        checks.append((f'6R, {text}', ours, PAPER['6r']))
        springs(case, 20, draws, '6r', checks, unwound)


def main():
    """Run the tables that are asked for."""
    parser = command_line(__doc__)
    parser.add_argument('--draws', type=int, default=3, help='noise draws')
    parser.add_argument('--robot', choices=(*ROBOTS, 'all'), default='all')
    arguments = parser.parse_args()
    checks = []
    if arguments.robot != '6r':
        planar(arguments.draws, checks)
    if arguments.robot != '2r':
        puma(arguments.draws, checks)
    missed = [f'{text}: {value:.4g} > {bound:.4g}' for text, value, bound in checks
              if not value <= bound]  # fmt: skip
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
