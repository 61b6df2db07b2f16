"""Elastic robots, simulated for benchmarks: their motion, recordings with noise, estimates."""

import dataclasses

from common import configured, ROOT
import numpy as np

from robotid_ros.core.model import build_robot, regressor
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.filters import lowpass
from robotid_ros.core.signals.recording import Phase, Recording
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.plant.physics import Physics

RATE, COUNT = 1000.0, 2.0 * np.pi / 1_250_000
COULOMB, STICTION, MAKKAR, STRIBECK = (
    ('viscous', 'coulomb'),
    ('viscous', 'stiction'),
    ('viscous', 'makkar'),
    ('viscous', 'coulomb', 'stribeck'),
)
SHAPES = {
    'stiction_steepness': 1000.0,
    'stribeck_slope': 20.0,
    'stribeck_velocity': 0.1,
    'makkar_gamma2': 1000.0,
    'makkar_gamma3': 10.0,
    'makkar_gamma5': 1000.0,
}


class Case:
    """
    One simulated robot in periodic motion.

    Parameters
    ----------
    name : of the configuration
    motion : 'trajectory' or 'validation', of the design
    changes : of the simulation's settings

    """

    def __init__(self, name, motion='trajectory', **changes):
        self.configuration, robot = configured(name)
        self.urdf = robot.urdf
        design = read_design(ROOT / 'config/trajectories' / f'{name}.yaml')
        self.trajectory = getattr(design, motion)
        settings = dataclasses.replace(
            self.configuration.simulation, inertial_error=0.0, **changes
        )
        physics = Physics(self.urdf, settings, self.configuration.robot.joints)
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
                q, _, effort = physics.joint_state(tau)
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

    def sigma(self, level):
        """Return the noise of each encoder for SN in dB; without any, that of its counts."""
        if level is None:
            return np.full(self.q.shape[1], COUNT / np.sqrt(12.0))
        return 10.0 ** (-level / 20.0) * np.sqrt(np.mean(self.q**2, axis=0))

    def noisy(self, level, periods, seed):
        """Record some periods with noise on every encoder, which then counts."""
        rng = np.random.default_rng(seed)
        q = np.tile(self.q, (periods, 1))
        if level is not None:
            q = q + self.sigma(level) * rng.normal(size=q.shape)
        robot, time = self.robot(), np.arange(len(q)) / RATE
        return Recording(
            robot.recorded_joints,
            time,
            np.round(q / COUNT) * COUNT,
            np.tile(self.tau, (periods, 1)),
            phases=(Phase('exciting', 0.0, time[-1] + 1.0 / RATE),),
            trajectories={'exciting': self.trajectory},
        )

    def identify(self, level=None, periods=1, friction=COULOMB, seed=0, **signals):
        """
        Identify with the configuration's signals, whose cut-off is chosen from the recording.

        Periods are averaged first; `signals`: other settings of these.
        """
        wanted = self.configuration.identification
        settings = dataclasses.replace(
            wanted,
            signals=dataclasses.replace(wanted.signals, **({'averaging': periods > 1} | signals)),
            essential=False,
        )
        recording = self.noisy(level, periods, seed)
        return identify(recording, self.robot(friction), settings)

    def compare(self, found):
        """Return the base parameters' values and the true ones, Coulomb's level among them."""
        values = dict(zip(found.base.names, found.estimate.value.tolist(), strict=True))
        names = [p.name for p in found.robot.parameters]
        true = found.base.of(np.array([self.truth.get(name, 0.0) for name in names]))
        return values, dict(zip(found.base.names, true.tolist(), strict=True))

    def friction_error(self, found, least):
        """Return the relative error of the friction of motors faster than `least` [rad/s]."""
        n = found.robot.rigid.n
        dq = np.gradient(self.q, 1.0 / RATE, axis=0)
        W = regressor(found.robot, self.q, dq, np.zeros_like(dq))[n:, :, found.base.columns]
        terms = [k for k, name in enumerate(found.base.names) if name.startswith('F')]
        given = (W[:, :, terms] @ found.estimate.value[terms]).T
        speed, names = dq[:, n:], ('Fv', 'Fc', 'Fst')
        Fv, Fc, Fst = (
            np.array([self.truth.get(f'{name}{j + 1}', 0.0) for j in range(n)]) for name in names
        )
        bump = Fst * np.exp(-((speed / SHAPES['stribeck_velocity']) ** 2))
        true = Fv * speed + (Fc + bump) * np.sign(speed)
        moving = np.abs(speed) > least
        return float(np.linalg.norm((given - true)[moving]) / np.linalg.norm(true[moving]))

    def paper(self, level, seed=0):
        """Estimate as the paper does: its filter, its noise, least squares of unweighted rows."""
        rng, robot = np.random.default_rng(seed), self.robot().elastic
        q = lowpass(np.round(self.q / COUNT) * COUNT, 20.0, RATE, 5)
        dq = np.gradient(q, 1.0 / RATE, axis=0)
        motion = [q, dq, np.gradient(dq, 1.0 / RATE, axis=0)]
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
        true = self.true_base(robot, base)
        return tuple(dict(zip(base.names, x.tolist(), strict=True)) for x in (value, true))

    def true_base(self, robot, base):
        """Return the true base parameters (b,)."""
        return base.of(np.array([self.truth.get(p.name, 0.0) for p in robot.parameters]))


def joined(values):
    """Put the Coulomb level, Fs + Fsc in stiction terms, in the place of the terms' parameters."""
    result = {k: v for k, v in values.items() if not k.startswith(('Fs', 'Fstr'))}
    for name in values:
        if name.startswith('Fsc'):
            result['Fc' + name[3:]] = values['Fs' + name[3:]] + values[name]
    return result


def normalised_error(values, true, truth, skipped=()):
    """Return mean |χ̂ − χ|/|χ| over the base parameters that are not zero."""
    values, true = joined(values), joined(true)
    true |= {name: truth[name] for name in values if name.startswith('Fc')}
    known = [k for k in values if abs(true[k]) > 1e-9 and not k.startswith(skipped)]
    return float(np.mean([abs(values[k] / true[k] - 1.0) for k in known]))
