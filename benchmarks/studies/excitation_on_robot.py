"""
What a design is worth on the simulated TX-40 (MuJoCo, trajectory controller, noisy sensors).

    python benchmarks/studies/excitation_on_robot.py [--runs 8] [--spread]

Two tables: tracking error of plain and modified Fourier series, and the standard deviation of
identified base parameters over runs with fresh noise, along a random feasible trajectory and the
optimised one.
"""

from dataclasses import replace

import _benchmarks  # noqa: F401
from common import command_line, configured
import numpy as np
from plant_session import follow, REST
from scipy.signal import butter, sosfiltfilt
from scipy.stats import f

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.observation_matrix import ObservationModel
from robotid_ros.core.excitation.problem import Problem
from robotid_ros.core.excitation.settings import ExcitationSettings, ValidationSettings, Workspace
from robotid_ros.core.excitation.trajectory import Motion, sample_waypoints, Trajectory
from robotid_ros.core.model import Robot
from robotid_ros.simulation_settings import SimulationSettings

# Cut-off of the filters [Hz]; one sample in so many is used.
CUTOFF, DECIMATION = 20.0, 20
# Rows slower than this do not count [rad/s].
STANDSTILL = 0.1


def run(
    robot: Robot, settings: SimulationSettings, trajectory: Trajectory, periods: int
) -> tuple[np.ndarray, ...]:
    """Run it on the simulated robot; returns measured q, effort and desired q, (N, n) at 1 kHz."""
    start = tuple(trajectory.sample(0.0).q[0].tolist())
    settings = replace(settings, initial_positions=start)
    points = sample_waypoints(trajectory, 50.0, periods)
    samples = zip(points.time, points.q, points.dq, points.ddq, strict=True)
    q, _, tau, desired, *_ = follow(robot, settings, samples, periods * trajectory.period)
    hold = round(REST * settings.update_rate)
    return q[hold:], tau[hold:], desired[hold:]


def tracking(robot: Robot, excitation: ExcitationSettings, simulation: SimulationSettings) -> None:
    """Print tracking errors of FFS and MFS, designed alike, in their first and second period."""
    print('tracking error |q − q_r| [mrad], mean over joints of RMS, and largest of all')
    for seed in (0, 1, 2):
        for family in ('ffs', 'mfs'):
            result = design(robot, replace(excitation, family=family, seed=seed))
            q, _, wanted = run(robot, simulation, result.trajectory, 2)
            parts = np.array_split(1e3 * np.abs(q - wanted), 2)
            row = [f'{np.sqrt((p**2).mean(axis=0)).mean():6.2f} {p.max():7.2f}' for p in parts]
            raw = result.condition_numbers['raw']
            print(f'  {family} seed {seed} cond {raw:6.1f}: period 1 {row[0]}, period 2 {row[1]}')


def weighted(
    robot: Robot, columns: np.ndarray, motion: Motion, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows count, (N, n), and W of these over the noise of their joints, (R, b)."""
    # A row whose friction may have either sign is off by far more than noise.
    moving = np.abs(motion.dq) > STANDSTILL
    w = ObservationModel(robot).matrix(motion)[:, :, columns] / noise[:, None]
    return moving, w[moving]


def estimate(
    robot: Robot,
    columns: np.ndarray,
    rate: float,
    q: np.ndarray,
    tau: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """Identify base parameters by weighted least squares on filtered samples, (b,)."""
    sections = butter(4, CUTOFF / (rate / 2.0), output='sos')
    q, tau = (sosfiltfilt(sections, x, axis=0) for x in (q, tau))
    dq = np.gradient(q, 1.0 / rate, axis=0)
    ddq = np.gradient(dq, 1.0 / rate, axis=0)
    rows = slice(200, -200, DECIMATION)
    moving, w = weighted(robot, columns, Motion(q[rows], dq[rows], ddq[rows]), noise)
    result: np.ndarray = np.linalg.lstsq(w, (tau[rows] / noise)[moving])[0]
    return result


def candidates(robot: Robot, excitation: ExcitationSettings) -> tuple[np.ndarray, dict]:
    """Return the base columns, and a random feasible trajectory beside the optimised one."""
    problem = Problem(robot, excitation, CollisionScene(robot, excitation.workspace))
    guess = problem.feasible(problem.random_point(np.random.default_rng(0)))
    return problem.columns, {
        'random': problem.trajectory(*problem.unpack(guess)),
        'optimised': design(robot, excitation).trajectory,
    }


def promised(
    robot: Robot, columns: np.ndarray, trajectory: Trajectory, noise: np.ndarray
) -> np.ndarray:
    """Return σ of the base parameters by the weighted columns, up to a common factor, (b,)."""
    times = np.linspace(0.2, trajectory.period - 0.2, 1000)
    _, flat = weighted(robot, columns, trajectory.sample(times), noise)
    result: np.ndarray = np.sqrt(np.diag(np.linalg.inv(flat.T @ flat)))
    return result


def observed(
    robot: Robot,
    columns: np.ndarray,
    trajectory: Trajectory,
    simulation: SimulationSettings,
    noise: np.ndarray,
    runs: int,
) -> np.ndarray:
    """Return σ of identified base parameters over runs with fresh noise, (b,)."""
    estimates = []
    for seed in range(runs):
        q, tau, _ = run(robot, replace(simulation, seed=seed), trajectory, 1)
        estimates.append(estimate(robot, columns, simulation.update_rate, q, tau, noise))
    result: np.ndarray = np.std(estimates, axis=0, ddof=1)
    return result


def compare_sigma(
    robot: Robot, excitation: ExcitationSettings, simulation: SimulationSettings, runs: int
) -> None:
    """
    Print σ of a random feasible trajectory over σ of the optimised one.

    The criterion counts the noise of efforts alone. Once more without noise of position and
    velocity, the runs say what these add: noise in W, which weighs more where W is small.
    """
    columns, trajectories = candidates(robot, excitation)
    noise = np.array(simulation.noise.effort)
    still = replace(simulation.noise, position=(0.0,), velocity=(0.0,))
    sigma = {k: promised(robot, columns, t, noise) for k, t in trajectories.items()}
    ratios('promised', sigma)
    low, high = np.sqrt(f.ppf([0.25, 0.75], runs - 1, runs - 1))
    print(f'  with {runs} runs, chance puts quartiles of equal σ at {low:.2f} and {high:.2f}')
    kinds = {'noise of efforts': replace(simulation, noise=still), 'all noise': simulation}
    found = {}
    for label, settings in kinds.items():
        found[label] = {
            k: observed(robot, columns, t, settings, noise, runs) for k, t in trajectories.items()
        }
        ratios(f'observed, {label}', found[label])
    for name in trajectories:
        grown = found['all noise'][name] / found['noise of efforts'][name]
        print(f'  {name}: noise of position and velocity makes σ {np.median(grown):.2f} times')


def ratios(label: str, sigma: dict[str, np.ndarray]) -> None:
    """Print the distribution of σ ratios."""
    ratio = sigma['random'] / sigma['optimised']
    share = 100.0 * np.mean(ratio > 1.0)
    quarter, median, three = np.percentile(ratio, [25, 50, 75])
    print(
        f'  σ random / σ optimised, {label:26s}: quartiles {quarter:.2f} {median:.2f} '
        f'{three:.2f}, least {ratio.min():.2f}, largest {ratio.max():.2f}; '
        f'{share:.0f} % of {len(ratio)} fell'
    )


def main() -> None:
    """Print both tables."""
    parser = command_line(__doc__, check=False)
    parser.add_argument('--runs', type=int, default=8, help='runs with fresh noise')
    parser.add_argument('--spread', action='store_true', help='the second table only')
    options = parser.parse_args()
    configuration, robot = configured('tx40')
    excitation = replace(
        configuration.excitation,
        starts=1,
        iterations=150,
        time_limit=1e6,
        validation=ValidationSettings(kind='none'),
        workspace=Workspace(self_collision=False),
    )
    if not options.spread:
        tracking(robot, excitation, configuration.simulation)
    print(f'spread of base parameters over {options.runs} runs')
    # Links and friction come from the seed too: they must stay, only the noise may change.
    simulation = replace(configuration.simulation, inertial_error=0.0)
    compare_sigma(robot, excitation, simulation, options.runs)


if __name__ == '__main__':
    main()
