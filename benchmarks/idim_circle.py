"""
Verification on a circle of 100 mm: what is identified with plain and modified Fourier series.

    python benchmarks/idim_circle.py [--designs 6] [--draws 2] [--bandwidth 1 0.2] [--check]

The simulated TX-40 (MuJoCo, trajectory controller) runs both excitations, designed alike, from
rest, twice, and then the circle. Draws of the sensors' noise are the same for both. What differs
between them is how well the robot follows, at the start above all, so that the controller is tried
as configured and slower, and each recording is used in three ways: positions as measured,
filtered; the mean of both periods, fitted by the trajectory's own basis (Wu et al., section 4.1);
and the desired motion in place of the measured one. Printed: RMS of the torque's error on the
circle where a joint moves (section 5, table 3).
"""

from dataclasses import replace
import sys

from common import command_line, configured, verdict
from excitation_on_robot import run
import numpy as np

from robotid_ros.core.excitation import design, ExcitationSettings, Trajectory
from robotid_ros.core.excitation.constraints.collision_scene import CollisionScene
from robotid_ros.core.excitation.design.validation_circle import circle_trajectory
from robotid_ros.core.excitation.settings import ValidationSettings
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import Robot
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.core.signals.samples import SignalSettings
from robotid_ros.simulation_settings import SimulationSettings

DIAMETER, SPEED, PERIODS = 0.1, 0.5, 2
FAMILIES = ('ffs', 'mfs')
# Largest error on the circle, of the torque, of positions as measured [%].
WORST = 10.0
# Standard errors from which a difference between the families counts.
CLEAR = 2.0


def recorded(
    robot: Robot, simulation: SimulationSettings, trajectory: Trajectory, periods: int
) -> tuple[Recording, np.ndarray]:
    """Run a trajectory on the simulated robot; return what was measured, and desired (N, n)."""
    q, tau, wanted = run(robot, simulation, trajectory, periods)
    time = np.arange(len(q)) / simulation.update_rate
    return Recording(robot.joints, time, q, tau, trajectories={'exciting': trajectory}), wanted


def ways(
    excited: Recording, wanted: np.ndarray, method: IdentificationSettings
) -> dict[str, tuple[Recording, IdentificationSettings]]:
    """Return the ways to use a recording, by name."""
    own = replace(method.signals, averaging=True, analytic=True)
    # How far the robot lags behind is no delay of its efforts.
    undelayed = replace(method.signals, time_offset=False)
    return {
        'positions as measured': (excited, method),
        "trajectory's own basis": (excited, replace(method, signals=own)),
        'desired motion': (
            replace(excited, position=wanted),
            replace(method, signals=undelayed),
        ),
    }


def errors(
    robot: Robot, excited: Recording, method: IdentificationSettings, turned: Recording
) -> np.ndarray:
    """Identify; return the errors on the circle, RMS per joint and of the torque [%], (n + 1,)."""
    shown = identify(excited, robot, method, turned).validation
    assert shown is not None
    left = np.where(shown.valid, shown.measured - shown.predicted, np.nan)
    total = 100.0 * shown.total_residual(moving=True)
    return np.append(np.sqrt(np.nanmean(left**2, axis=0)), total)


class Table:
    """Errors of each way and family, (designs · draws, n + 1), and how the robot followed."""

    def __init__(self, designs: int) -> None:
        self.designs = designs
        self.rows: dict[tuple[str, str], list[np.ndarray]] = {}
        self.tracking: dict[str, list[np.ndarray]] = {family: [] for family in FAMILIES}

    def show(self) -> None:
        """Print it, with the standard deviation over designs and draws."""
        print('  RMS of q − q_r in each period, all joints [mrad]')
        for family, values in self.tracking.items():
            print(f'    {family} ', *(f'{x:7.3f}' for x in np.mean(values, axis=0)))
        print('  RMS of the torque by joint [N·m], of all joints [%]')
        for way in dict.fromkeys(way for way, _ in self.rows):
            for family in FAMILIES:
                found = np.array(self.rows[way, family])
                mean, sigma = found.mean(axis=0), found[:, -1].std(ddof=1)
                listed = ' '.join(f'{x:7.3f}' for x in mean[:-1])
                print(f'    {way:24s} {family} {listed}  {mean[-1]:6.2f} ± {sigma:.2f} %')
            print(f'    {"":24s} {self.difference(way)}')

    def difference(self, way: str) -> str:
        """Compare the families by the means of their designs, whose draws are no new ones."""
        means = (
            np.array(self.rows[way, family])[:, -1].reshape(self.designs, -1).mean(axis=1)
            for family in FAMILIES
        )
        ffs, mfs = (np.log(mean) for mean in means)
        mean = ffs.mean() - mfs.mean()
        sigma = np.sqrt((ffs.var(ddof=1) + mfs.var(ddof=1)) / self.designs)
        verdict = 'better with mfs' if mean > 0.0 else 'better with ffs'
        verdict = verdict if abs(mean) > CLEAR * sigma else 'no clear difference'
        low, high = np.exp(mean - CLEAR * sigma), np.exp(mean + CLEAR * sigma)
        return f'ffs / mfs {np.exp(mean):.3f} ({low:.3f} to {high:.3f}): {verdict}'


def compare(
    robot: Robot,
    excitation: ExcitationSettings,
    simulation: SimulationSettings,
    method: IdentificationSettings,
    turned: Recording,
    counts: tuple[int, int],
) -> Table:
    """Run so many designs and draws of each family, identify each, predict the circle."""
    table = Table(counts[0])
    for family in FAMILIES:
        for seed in range(counts[0]):
            designed = design(robot, replace(excitation, family=family, seed=seed)).trajectory
            for draw in range(counts[1]):
                noisy = replace(simulation, seed=2 + draw)
                excited, wanted = recorded(robot, noisy, designed, PERIODS)
                parts = np.array_split(excited.position - wanted, PERIODS)
                off = [1e3 * np.sqrt(np.mean(part**2)) for part in parts]
                table.tracking[family].append(np.array(off))
                for way, (used, how) in ways(excited, wanted, method).items():
                    found = errors(robot, used, how, turned)
                    table.rows.setdefault((way, family), []).append(found)
    return table


def slower(simulation: SimulationSettings, bandwidth: float) -> SimulationSettings:
    """Return a controller with this share of the bandwidth, of the same damping."""
    gains = {
        joint: replace(gain, p=bandwidth**2 * gain.p, d=bandwidth * gain.d)
        for joint, gain in simulation.gains.items()
    }
    return replace(simulation, gains=gains)


def main() -> int:
    """Design, run, identify, verify."""
    parser = command_line(__doc__)
    parser.add_argument('--designs', type=int, default=6)
    parser.add_argument('--draws', type=int, default=2)
    parser.add_argument('--bandwidth', type=float, nargs='+', default=[1.0, 0.2])
    arguments = parser.parse_args()
    configuration, robot = configured('tx40')
    wanted = ValidationSettings(kind='circle', diameter=DIAMETER, speed=SPEED, turns=3)
    excitation = replace(
        configuration.excitation, starts=1, iterations=150, time_limit=1e6, validation=wanted
    )
    # The links come from the seed too: they must stay, only the noise may change.
    simulation = replace(configuration.simulation, inertial_error=0.0)
    # Rows beside standstill, which a log of seconds cannot spare, are left out as by default.
    signals = replace(configuration.identification.signals, guard=SignalSettings().guard)
    method = replace(configuration.identification, essential=False, signals=signals)
    scene = CollisionScene(robot, excitation.workspace)
    verification = circle_trajectory(robot, excitation, np.array(excitation.start), scene)
    turned, _ = recorded(robot, simulation, verification, 1)
    torque = ' '.join(f'{x:7.3f}' for x in np.sqrt(np.mean(turned.effort**2, axis=0)))
    noise = ' '.join(f'{x:7.3f}' for x in simulation.noise.effort)
    print(f'circle of {DIAMETER} m, {verification.period:.1f} s; RMS by joint [N·m]')
    print(f'    {"torque":28s} {torque}\n    {"noise of a sample":28s} {noise}')
    counts, short = (arguments.designs, arguments.draws), []
    for bandwidth in arguments.bandwidth:
        print(f'controller with {bandwidth:g} of the bandwidth configured')
        table = compare(robot, excitation, slower(simulation, bandwidth), method, turned, counts)
        table.show()
        for family in FAMILIES:
            mean = float(np.mean(table.rows['positions as measured', family], axis=0)[-1])
            if mean > WORST:
                short.append(f'{family}: {mean:.1f} % on the circle exceeds {WORST} %')
    return verdict(short, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
