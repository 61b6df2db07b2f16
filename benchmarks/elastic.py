"""
Robots with elastic joints (Zollo et al. 2015): the paper's figures beside ours.

    python benchmarks/elastic.py [--check] [--draws N] [--robot 2r|6r|all]

The robots are simulated by MuJoCo with motors and links as bodies, 8900 samples at 1 kHz of the
trajectories in config/trajectories, PD control of the motors, encoders of 1 250 000 counts.
The normalised mean error is the mean of |χ̂ − χ|/|χ| over base parameters that are not zero; the
paper does not define it. SN is taken in dB: with the paper's own estimator (least squares on
unweighted rows, Butterworth of order five at 20 Hz, then noise on position, velocity and
acceleration) the error then leaps between 80 and 70, as it does in the paper; with SN as a ratio,
noise would exceed the deflections tenfold. Ours gets noise of that SN on all encoders instead.
Friction (Coulomb, viscous, and Stribeck's above Coulomb's) is not in the paper's text: it is ours.
"""

import argparse
import dataclasses
from pathlib import Path
import sys

import numpy as np

from robotid_ros.core.estimation import base_parameters, identify
from robotid_ros.core.model import build_robot, regressor
from robotid_ros.core.signals.filters import differences, lowpass
from robotid_ros.core.signals.recording import Phase, Recording
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory import read_design
from robotid_ros.plant.elastic import ElasticPhysics
from robotid_ros.plant.settings import PayloadSettings, StribeckSettings

CONFIG = Path(__file__).resolve().parent.parent / 'config'
ROBOTS = {'2r': 'planar_2r_elastic', '6r': 'puma560_elastic'}
RATE, COUNT = 1000.0, 2.0 * np.pi / 1_250_000
LEVELS = (20, 70, 80, 100, 200, None)
# Cut-off of the positions' filter for a noise level [Hz]: the noisier, the lower.
CUTOFF = {20: 2.5, 70: 5.0, 80: 5.0}
PAPER = {'with': 0.103, 'without': 0.00862, '6r': 0.123}
COULOMB, STICTION, MAKKAR = (
    ('viscous', 'coulomb'),
    ('viscous', 'stiction'),
    ('viscous', 'makkar'),
)
SHAPES = {
    'stiction_steepness': 1000.0,
    'stribeck_slope': 20.0,
    'makkar_gamma2': 1000.0,
    'makkar_gamma3': 10.0,
    'makkar_gamma5': 1000.0,
}
# The rated load of a PUMA 560, 2.5 kg, off the axis of its last joint.
LOAD = PayloadSettings(
    'link_6', 2.5, (0.04, 0.03, 0.1), (0.006, 0.006, 0.004, 0.0005, 0.0003, 0.0002)
)


class Case:
    """
    One simulated robot in steady, periodic motion.

    Parameters
    ----------
    name : of the configuration
    changes : of the simulation's settings

    """

    def __init__(self, name, **changes):
        self.configuration = load(CONFIG / f'{name}.yaml')
        self.urdf = read_urdf(self.configuration)
        self.trajectory = read_design(CONFIG / 'trajectories' / f'{name}.yaml').trajectory
        settings = dataclasses.replace(
            self.configuration.simulation, inertial_error=0.0, **changes
        )
        physics = ElasticPhysics(self.urdf, settings, self.configuration.robot.joints)
        self.truth = {
            f'{symbol}{number}': value
            for number, joint in enumerate(physics.true_parameters(), start=1)
            for symbol, value in joint.values.items()
        }
        self.q, self.tau = self._run(physics)

    def _run(self, physics):
        """Track the trajectory by PD on the motors; return the second period."""
        count = round(self.trajectory.period * RATE)
        desired = self.trajectory.sample(np.arange(count) / RATE)
        gains = [self.configuration.simulation.gains[joint] for joint in physics.joints]
        p, d = np.array([g.p for g in gains]), np.array([g.d for g in gains])
        physics.set_state(desired.q[0], desired.dq[0])
        rows = []
        for k in range(2 * count):
            error = desired.q[k % count] - physics.position
            tau = p * error + d * (desired.dq[k % count] - physics.velocity)
            if k >= count:
                q, _, effort = physics.readings(tau)
                rows.append((q, effort))
            physics.step(tau)
        q, effort = np.array(rows).transpose(1, 0, 2)
        return q, effort

    def robot(self, friction=COULOMB):
        """Build the model that identifies."""
        settings = dataclasses.replace(
            self.configuration.robot,
            friction={'default': friction},
            friction_constants={'default': SHAPES},
        )
        return build_robot(self.urdf, settings)

    def noisy(self, level, periods, seed):
        """Record some periods with noise on every encoder, which then counts."""
        rng = np.random.default_rng(seed)
        q = np.tile(self.q, (periods, 1))
        if level is not None:
            power = np.sqrt(np.mean(self.q**2, axis=0))
            q = q + power * 10.0 ** (-level / 20.0) * rng.normal(size=q.shape)
        robot, time = self.robot(), np.arange(len(q)) / RATE
        return Recording(
            robot.channels,
            time,
            np.round(q / COUNT) * COUNT,
            np.tile(self.tau, (periods, 1)),
            phases=(Phase('exciting', 0.0, time[-1] + 1.0 / RATE),),
            trajectories={'exciting': self.trajectory},
        )

    def identify(self, level=None, periods=1, friction=COULOMB, seed=0):
        """Return base parameters, their values and the true ones, Coulomb's level among them."""
        signals = dataclasses.replace(
            self.configuration.identification.signals,
            cutoff=CUTOFF.get(level, 20.0),
            standstill=0.1 if level == 20 else 0.02,
        )
        settings = dataclasses.replace(
            self.configuration.identification, signals=signals, essential=False
        )
        recording = self.noisy(level, periods, seed)
        found = identify(recording, self.robot(friction), settings)
        values = dict(zip(found.base.names, found.estimate.value.tolist(), strict=True))
        names = [p.name for p in found.robot.parameters]
        true = found.base.of(np.array([self.truth.get(name, 0.0) for name in names]))
        return values, dict(zip(found.base.names, true.tolist(), strict=True))

    def paper(self, level, seed=0):
        """Estimate as the paper does: its filter, its noise, least squares of unweighted rows."""
        rng, robot = np.random.default_rng(seed), self.robot().elastic
        q = lowpass(np.round(self.q / COUNT) * COUNT, 20.0, RATE, 5)
        dq = differences(q, RATE)
        motion = [q, dq, differences(dq, RATE)]
        if level is not None:
            share = 10.0 ** (-level / 20.0)
            motion = [
                x + share * np.sqrt(np.mean(x**2, axis=0)) * rng.normal(size=x.shape)
                for x in motion
            ]
        base = base_parameters(robot)
        W = regressor(robot, *motion)[:, :, base.columns]
        n = robot.rigid.n
        W[n:] -= W[:n]  # the motor's own row
        Y = np.vstack([np.zeros_like(self.tau[:, :n].T), self.tau[:, n:].T])
        value = np.linalg.lstsq(W.reshape(-1, base.rank), Y.reshape(-1), rcond=None)[0]
        true = base.of(np.array([self.truth.get(p.name, 0.0) for p in robot.parameters]))
        return tuple(dict(zip(base.names, x.tolist(), strict=True)) for x in (value, true))


def joined(values):
    """Put the Coulomb level, Fs + Fsc in stiction terms, in the place of the terms' parameters."""
    result = {k: v for k, v in values.items() if not k.startswith(('Fs', 'Fstr'))}
    for name in values:
        if name.startswith('Fsc'):
            result['Fc' + name[3:]] = values['Fs' + name[3:]] + values[name]
    return result


def normalised_error(values, true, truth):
    """Return mean |χ̂ − χ|/|χ| over the base parameters that are not zero."""
    values, true = joined(values), joined(true)
    true |= {name: truth[name] for name in values if name.startswith('Fc')}
    known = [k for k in values if abs(true[k]) > 1e-9]
    return float(np.mean([abs(values[k] / true[k] - 1.0) for k in known]))


def error(case, **arguments):
    """Identify and compare."""
    return normalised_error(*case.identify(**arguments), case.truth)


def stiffness(case, level, periods, draws):
    """Return the largest relative error of each spring over some draws."""
    found = [case.identify(level, periods, seed=seed)[0] for seed in range(draws)]
    names = sorted(name for name in case.truth if name.startswith('K'))
    return {k: max(abs(values[k] / case.truth[k] - 1.0) for values in found) for k in names}


def planar(draws, checks):
    """Print the planar robot's tables."""
    name = ROBOTS['2r']
    static = StribeckSettings(extra=(3.0, 1.2), velocity=(0.1, 0.1))
    stribeck = Case(name, stribeck=static)
    without = Case(name, coulomb=(0.0, 0.0))
    n = len(stribeck.q[0]) // 2
    deflection = np.degrees(np.abs(stribeck.q[:, :n] - stribeck.q[:, n:]).max(axis=0))
    print(f'2R: largest deflection {deflection.round(3)}° (paper 0.39°, 0.10°)\n')
    print(f'{"normalised mean error":46}{"paper":>9}{"ours":>9}')
    rows = [
        ('with static friction, Coulomb + viscous', PAPER['with'], stribeck, COULOMB, None),
        ('with static friction, stiction terms', None, stribeck, STICTION, None),
        ('with static friction, Makkar terms', None, stribeck, MAKKAR, 0.02),
        ('without static friction, viscous', PAPER['without'], without, COULOMB[:1], None),
    ]
    for text, paper, case, friction, bound in rows:
        ours = error(case, friction=friction)
        print(f'{text:46}{paper or "":>9}{ours:9.5f}')
        if paper or bound:
            checks.append((text, ours, paper or bound))
    noise_table(Case(name), draws, checks)


def noise_table(case, draws, checks):
    """Print the error over the noise, for the paper's estimator on our data and for ours."""
    print('\nerror over noise, 2R with Coulomb friction as modelled; means of draws')
    counts = (1, 20, 100)
    heads = ''.join(f'{"ours, periods: " + str(count):>20}' for count in counts)
    print(f'{"SN [dB]":>9}{"as the paper":>14}{heads}')
    best = {}
    for level in LEVELS:
        theirs = np.mean(
            [normalised_error(*case.paper(level, seed), case.truth) for seed in range(draws)]
        )
        ours = [
            np.mean([error(case, level=level, periods=count, seed=s) for s in range(draws)])
            for count in counts
        ]
        best[level] = (theirs, ours)
        numbers = ''.join(f'{value:20.5f}' for value in ours)
        print(f'{level or "none":>9}{theirs:14.5f}{numbers}')
        checks.append((f'SN {level}: no worse than as the paper', ours[0], theirs))
    reached = min(best[20][1]) <= best[80][0]
    print(f"SN 20 no worse than the paper's SN 80: {'yes' if reached else 'not reached'}")
    for joint, value in stiffness(case, 100, 1, draws).items():
        print(f'{joint} at SN 100: {100 * value:.3f} % (asked: 1 %)')
        checks.append((f'2R {joint} at SN 100', value, 0.01))


def puma(draws, checks):
    """Print the PUMA 560's tables."""
    coulomb = np.array([25.98, 10.62, 6.364, 1.068, 0.854, 0.554])
    static = StribeckSettings(extra=tuple((0.2 * coulomb).tolist()), velocity=(0.05,) * 6)
    for text, changes in (
        ('bare arm', {}),
        ('with its rated load of 2.5 kg', {'payload': LOAD}),
    ):
        case = Case(ROBOTS['6r'], stribeck=static, **changes)
        deflection = np.abs(case.q[:, :6] - case.q[:, 6:]).max(axis=0) / COUNT
        print(f'\n6R, {text}: largest deflections {deflection.round(1)} counts')
        ours = error(case)
        print(f'normalised mean error: paper {PAPER["6r"]}, ours {ours:.5f}')
        checks.append((f'6R, {text}', ours, PAPER['6r']))
        for joint, value in stiffness(case, 100, 20, draws).items():
            print(f'{joint} at SN 100, 20 periods: {100 * value:.2f} % (asked: 2 %)')
            if changes:
                checks.append((f'6R {joint} at SN 100', value, 0.02))


def main():
    """Run the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--check', action='store_true', help='fail where a bound is not kept')
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
    print('\n' + ('every bound is kept' if not missed else 'missed: ' + '; '.join(missed)))
    return 1 if arguments.check and missed else 0


if __name__ == '__main__':
    sys.exit(main())
