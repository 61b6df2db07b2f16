"""
Verification on a circle of 100 mm: do modified Fourier series identify better than plain ones.

    python benchmarks/studies/idim_circle.py [--designs 20] [--draws 20] [--bandwidth 1] [--check]

The simulated TX-40 (MuJoCo, trajectory controller) runs designs of both families from rest, two
periods of each, without noise; a draw is fresh noise of the sensors in the log, the same for both
families. What differs between them is how well the robot follows, at the start above all, so that
the controller can be made slower (--bandwidth). Each draw is processed in two ways: as configured
(what the configuration leaves open is chosen on the first draw of a design), and as Wu et al. do
(sections 4.1 and 4.2): the mean of the periods, positions fitted by the trajectory's own basis,
maximum likelihood. Printed: error of the torque on the circle (section 5, table 3), where a joint
moves, and what both families come to by pairs of designs from the same seed. Five minutes of CPU
time a bandwidth.
"""

from collections.abc import Iterator
from dataclasses import replace
import sys

import _benchmarks  # noqa: F401
from common import command_line, configured, verdict
from excitation_on_robot import run
from idim_circle_motion import circle_trajectory, DIAMETER
from idim_circle_table import FAMILIES, OURS, PAPER, Table
from mfs_derivatives import prepare_by_basis
import numpy as np

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.settings import ExcitationSettings, ValidationSettings
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import BaseParameters
from robotid_ros.core.pipeline.choices import choose_model
from robotid_ros.core.regression.delays import Delays, prepare_without_delay, remove_delay
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe, Rows
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.simulation_settings import SimulationSettings

PERIODS = 2
# Rate of the logs [Hz]: a quarter of the controller's, and of the time that a draw takes.
LOGGED = 250.0
# Largest error on the circle, of the torque [%].
WORST = 10.0

Way = tuple[SignalSettings, str, Delays]


def recorded(
    robot: Robot, simulation: SimulationSettings, trajectory: Trajectory, periods: int
) -> tuple[Recording, np.ndarray]:
    """Run a trajectory without noise; return what happened, and was desired (N, n)."""
    quiet = replace(simulation.noise, position=(0.0,), velocity=(0.0,), effort=(0.0,))
    q, tau, wanted = run(robot, replace(simulation, noise=quiet), trajectory, periods)
    kept = slice(None, None, round(simulation.update_rate / LOGGED))
    time = np.arange(len(q[kept])) / LOGGED
    log = Recording(robot.joints, time, q[kept], tau[kept], trajectories={'exciting': trajectory})
    return log, wanted[kept]


def draws(clean: Recording, simulation: SimulationSettings, count: int) -> Iterator[Recording]:
    """Yield the recording with fresh noise of the sensors."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        yield replace(
            clean,
            position=clean.position
            + np.array(simulation.noise.position) * rng.normal(size=clean.position.shape),
            effort=clean.effort
            + np.array(simulation.noise.effort) * rng.normal(size=clean.effort.shape),
        )


def ways(
    recording: Recording, robot: Robot, base: BaseParameters, method: IdentificationSettings
) -> dict[str, Way]:
    """Return signals, estimator and delays of each way, with what is open chosen on a draw."""
    ours = choose_model(recording, robot, method).settings
    own = replace(method.signals, averaging=True)
    return {
        name: (signals, how, prepare_without_delay(recording, robot, base, signals).delays)
        for name, signals, how in ((OURS, ours.signals, ours.method), (PAPER, own, 'mle'))
    }


def errors(
    recording: Recording, robot: Robot, base: BaseParameters, way: Way, circle: Rows
) -> np.ndarray:
    """Identify; return the errors on the circle, RMS per joint and of the torque [%], (n + 1,)."""
    signals, method, delays = way
    how = prepare_by_basis if signals.averaging else prepare
    samples = how(remove_delay(recording, delays), robot, signals)
    value = fit(observe(samples, robot, base), method).value
    left = np.where(circle.valid, circle.Y - circle.predict(value), np.nan)
    return np.append(np.sqrt(np.nanmean(left**2, axis=1)), 100.0 * circle.total_residual(value))


def compare(
    robot: Robot,
    designs: dict[str, list[Trajectory]],
    simulation: SimulationSettings,
    method: IdentificationSettings,
    circle: Rows,
    count: int,
) -> Table:
    """Run every design, identify every draw of it, predict the circle."""
    table, base = Table(), base_parameters(robot)
    for family, trajectories in designs.items():
        for trajectory in trajectories:
            clean, wanted = recorded(robot, simulation, trajectory, PERIODS)
            parts = np.array_split(clean.position - wanted, PERIODS)
            table.tracking[family].append(
                np.array([1e3 * np.sqrt(np.mean(part**2)) for part in parts])
            )
            noisy = list(draws(clean, simulation, count))
            for name, way in ways(noisy[0], robot, base, method).items():
                found = np.array([errors(each, robot, base, way, circle) for each in noisy])
                table.rows.setdefault((name, family), []).append(found)
        ends = ', '.join(f'{name} {np.mean(table.rows[name, family], axis=(0, 1))[-1]:.3f} %'
                         for name in (OURS, PAPER))  # fmt: skip
        print(f'  {family}: {len(trajectories)} designs run and identified, {ends}', flush=True)
    return table


def slower(simulation: SimulationSettings, bandwidth: float) -> SimulationSettings:
    """Return a controller with this share of the bandwidth, of the same damping."""
    gains = {
        joint: replace(gain, p=bandwidth**2 * gain.p, d=bandwidth * gain.d)
        for joint, gain in simulation.gains.items()
    }
    return replace(simulation, gains=gains)


def designed(
    robot: Robot, excitation: ExcitationSettings, count: int
) -> dict[str, list[Trajectory]]:
    """Design so many motions of each family, from the same seeds."""
    found: dict[str, list[Trajectory]] = {}
    for family in FAMILIES:
        results = [
            design(robot, replace(excitation, family=family, seed=seed)) for seed in range(count)
        ]
        conditions = [result.condition_numbers['raw'] for result in results]
        found[family] = [result.trajectory for result in results]
        low, middle, high = np.percentile(conditions, (0, 50, 100))
        print(
            f'{family}: {count} designs, condition {low:.0f}, {middle:.0f}, {high:.0f}', flush=True
        )
    return found


def main() -> int:
    """Design, run, identify, verify."""
    parser = command_line(__doc__)
    parser.add_argument('--designs', type=int, default=20)
    parser.add_argument('--draws', type=int, default=20)
    parser.add_argument('--iterations', type=int, default=60, help='of the search of a design')
    parser.add_argument('--bandwidth', type=float, nargs='+', default=[1.0])
    arguments = parser.parse_args()
    configuration, robot = configured('tx40')
    excitation = replace(
        configuration.excitation,
        starts=1,
        iterations=arguments.iterations,
        time_limit=1e6,
        validation=ValidationSettings(kind='none'),
    )
    # The links come from the seed too: they must stay, only the noise may change.
    simulation = replace(configuration.simulation, inertial_error=0.0)
    # Rows beside standstill, which a log of seconds cannot spare, are left out as by default.
    signals = replace(configuration.identification.signals, guard=SignalSettings().guard)
    method = replace(configuration.identification, signals=signals)
    scene = CollisionScene(robot, excitation.workspace)
    verification = circle_trajectory(robot, excitation, np.array(excitation.start), scene)
    turned, _ = recorded(robot, simulation, verification, 1)
    circle = observe(prepare(turned, robot, signals), robot, base_parameters(robot))
    print(f'circle of {DIAMETER} m, {verification.period:.1f} s; RMS by joint [N·m]')
    for text, values in (
        ('torque', np.sqrt(np.mean(turned.effort**2, axis=0))),
        ('noise of a sample', simulation.noise.effort),
    ):
        print(f'    {text:20s}', ' '.join(f'{x:7.3f}' for x in values))
    designs, short = designed(robot, excitation, arguments.designs), []
    for bandwidth in arguments.bandwidth:
        print(f'controller with {bandwidth:g} of the bandwidth configured')
        slow = slower(simulation, bandwidth)
        table = compare(robot, designs, slow, method, circle, arguments.draws)
        table.show()
        short += [
            f'{family}, {way}: {error:.1f} % on the circle exceeds {WORST} %'
            for (way, family), found in table.rows.items()
            if not (error := float(np.mean(found, axis=(0, 1))[-1])) <= WORST
        ]
        if table.ratio(PAPER)[2] < 1.0:
            short.append(f'{PAPER}, bandwidth {bandwidth:g}: ffs is better than mfs')
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
