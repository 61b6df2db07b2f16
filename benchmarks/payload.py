"""
Payloads from a short motion on the simulated robot: with and without, or against the known arm.

    python benchmarks/payload.py [FOLDER] [--arms ur10 tx40 panda] [--seeds 2] [--check]

FOLDER holds the robots of example-robot-data, for the Panda; default: those of that pip package,
where it is installed. A motion of 15 s is designed for each arm and runs on the simulated robot
(MuJoCo, trajectory controller, noise as configured) without and with bodies of 1, 3 and 5 kg.
`two` compares both recordings; `one` the loaded one with the arm as a recording of its own
excitation gives it. Asked of each: mass within 1 %, centre of mass within 2 mm (TX-40: 5 mm, its
wrist's friction is coupled), and a body that can exist. Printed besides: the errors over their σ.
"""

from collections.abc import Iterator
import dataclasses
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
import time

from common import command_line, configured, ROOT, verdict
from installed_robots import ARMS, robots_folder
import numpy as np
from plant_session import follow, REST

from robotid_ros.cli.main import main as robotid
from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.settings import PAYLOAD_PERIODS, PayloadMotion
from robotid_ros.core.excitation.trajectory import sample_waypoints, Trajectory
from robotid_ros.core.model import Robot
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.parameters.physical_consistency import pseudo_inertia
from robotid_ros.core.payload.payload import KnownArm, Payload, payload_from_recordings
from robotid_ros.core.pipeline.choices import without_choice
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.configuration import Configuration
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.simulation_settings import PayloadSettings

MASSES, STATE_STEP = (1.0, 3.0, 5.0), 2
# Where the motion is designed for a body: no torque is short with any that is drawn [m]. A Panda,
# made for 3 kg, does not move with 5 that far out.
MOUNTED, FARTHEST = (0.0, 0.0, 0.11), {'panda': (0.0, 0.0, 0.06)}
# Periods of the excitation that the arm is known by.
PERIODS = 3
PANDA_FLANGE = 'panda_link8'
# Of the search: enough for a motion within a few percent of the best.
SEARCH = {'starts': 1, 'iterations': 60, 'time_limit': 120.0}
MAX_MASS, MAX_CENTRE = 0.01, {'tx40': 5.0e-3}
DEFAULT_CENTRE = 2.0e-3
HEADER = (
    f'{"arm":6s} {"method":6s} {"seed":>4s} {"kg":>4s}  {"mass":>8s}  {"centre":>8s}  '
    f'{"inertia":>8s}  {"mass/σ":>6s}  {"centre/σ":>8s}  possible'
)


@dataclasses.dataclass(frozen=True)
class Arm:
    """An arm, the frame of its payload, and the motion that tells it."""

    name: str
    configuration: Configuration
    robot: Robot
    frame: str
    motion: Trajectory


def arm(name: str, configuration: Configuration, robot: Robot, frame: str) -> Arm:
    """Design the motion for a payload."""
    begin = time.process_time()
    wanted = dataclasses.replace(
        configuration.excitation,
        # From its own start a Panda, made for 3 kg, cannot hold 5.
        start=configuration.excitation.start if name != 'panda' else (),
        payload=PayloadMotion(mass=max(MASSES), com=FARTHEST.get(name, MOUNTED)),
        workspace=dataclasses.replace(configuration.excitation.workspace, frame=frame),
        **SEARCH,
    )
    found = design(robot, wanted)
    numbers = found.condition_numbers['normalised']
    print(
        f'{name}: {PAYLOAD_PERIODS} x {found.trajectory.period:g} s, criterion {found.value:.2f}, '
        f'condition {numbers:.1f}, {found.verdict}, {time.process_time() - begin:.0f} s to design'
    )
    return Arm(name, configuration, robot, frame, found.trajectory)


def body(arm_: Arm, mass: float, seed: int) -> PayloadSettings:
    """Draw a box of this mass, turned, beside the axis of the flange."""
    rng = np.random.default_rng([seed, int(10 * mass)])
    com = rng.uniform([-0.03, -0.03, 0.03], [0.03, 0.03, 0.1])
    sides = rng.uniform(0.06, 0.2, 3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moments = mass / 12.0 * (np.sum(sides**2) - sides**2)
    inertia = (turn * moments) @ turn.T
    return PayloadSettings(arm_.frame, mass, tuple(com), tuple(inertia[np.triu_indices(3)]))


def record(
    arm_: Arm,
    seed: int,
    noise_seed: int,
    payload: PayloadSettings | None = None,
    motion: Trajectory | None = None,
    periods: int = PAYLOAD_PERIODS,
) -> Recording:
    """Run a motion on the simulated robot; `seed` draws its true links."""
    motion = motion or arm_.motion
    settings = dataclasses.replace(
        arm_.configuration.simulation,
        seed=seed,
        initial_positions=tuple(motion.sample(0.0).q[0].tolist()),
        payload=payload or PayloadSettings(),
    )
    points = sample_waypoints(motion, arm_.configuration.excitation.rate, periods)
    samples = zip(points.time, points.q, points.dq, points.ddq, strict=True)
    duration = periods * motion.period
    q, dq, tau, *_ = follow(arm_.robot, settings, samples, duration, noise_seed)
    kept = slice(round(REST * settings.update_rate), None, STATE_STEP)
    stamps = np.arange(len(q))[kept] / settings.update_rate
    return Recording(arm_.robot.joints, stamps, q[kept], tau[kept], dq[kept])


def excitation(arm_: Arm) -> Trajectory:
    """Return the stored excitation of the arm, or design one."""
    file = ROOT / f'config/trajectories/{arm_.name}.yaml'
    if file.exists():
        return read_design(file).trajectory
    settings = dataclasses.replace(arm_.configuration.excitation, **SEARCH)
    return design(arm_.robot, settings).trajectory


def identified(arm_: Arm, seed: int) -> KnownArm:
    """Identify the arm by its excitation, as `parameters.yaml` keeps it."""
    recording = record(arm_, seed, 99, motion=excitation(arm_), periods=PERIODS)
    settings = dataclasses.replace(arm_.configuration.identification, model='plain')
    settings, base = without_choice(settings), base_parameters(arm_.robot)
    found = estimate_base_parameters(recording, arm_.robot, base, settings, lambda _: None)
    spread = np.diag(found.estimate.sigma**2)
    return KnownArm(base.names, found.estimate.value, spread, spread)


def row(arm_: Arm, method: str, seed: int, true: PayloadSettings, found: Payload) -> list[str]:
    """Print one payload's errors; return what misses its bound."""
    sigma = found.central_sigma
    mass = abs(found.mass - true.mass)
    centre = found.centre_of_mass - true.com
    size = float(np.linalg.norm(centre))
    moments = found.inertia[np.triu_indices(3)] - true.inertia
    scale = np.linalg.norm(true.inertia)
    possible = bool(np.linalg.eigvalsh(pseudo_inertia(found.value))[0] > 0.0)
    print(
        f'{arm_.name:6s} {method:6s} {seed:4d} {true.mass:4.1f}  {100 * mass / true.mass:6.2f} %  '
        f'{1e3 * size:5.2f} mm  {100 * np.linalg.norm(moments) / scale:6.1f} %  '
        f'{mass / sigma[0]:6.1f}  {np.abs(centre / sigma[1:4]).max():8.1f}  {possible}',
        flush=True,
    )
    label = f'{arm_.name}, {method}, {true.mass:g} kg, seed {seed}'
    return [
        f'{label}: {text}'
        for text, failed in (
            (f'mass off by {100 * mass / true.mass:.2f} %', mass > MAX_MASS * true.mass),
            (f'centre {1e3 * size:.2f} mm', size > MAX_CENTRE.get(arm_.name, DEFAULT_CENTRE)),
            ('a body that cannot exist', not possible),
        )
        if failed
    ]


def payloads(arm_: Arm, seed: int) -> Iterator[str]:
    """Identify each payload by each method; yield what misses its bound."""
    settings = arm_.configuration.identification
    references = {'two': record(arm_, seed, 1000 * seed), 'one': identified(arm_, seed)}
    for number, mass in enumerate(MASSES, start=1):
        true = body(arm_, mass, seed)
        loaded = record(arm_, seed, 1000 * seed + number, true)
        for method, reference in references.items():
            found = payload_from_recordings(
                reference, loaded, arm_.robot, settings, lambda _: None, arm_.frame
            )
            yield from row(arm_, method, seed, true, found[0])


def chosen_arms(names: list[str], folder: Path | None) -> Iterator[Arm]:
    """Set the arms up, those that are there."""
    for name in names:
        if name != 'panda':
            yield arm(name, *configured(name), 'tool0')
        elif folder is None:
            print('panda: left out, its description is not installed: name the FOLDER')
        else:
            with TemporaryDirectory() as place:
                file = Path(place) / 'panda.yaml'
                robotid(['init', str(folder / ARMS['panda']), '-o', str(file)])
                yield arm(name, *configured(file), PANDA_FLANGE)


def main() -> int:
    """Run all arms, payloads and seeds."""
    parser = command_line(__doc__)
    parser.add_argument('folder', nargs='?', type=Path, help='of the robots')
    parser.add_argument('--arms', nargs='+', default=['ur10', 'tx40', 'panda'])
    parser.add_argument('--seeds', type=int, default=2)
    arguments = parser.parse_args()
    missed = []
    for each in chosen_arms(arguments.arms, robots_folder(arguments.folder)):
        print(HEADER)
        for seed in range(1, arguments.seeds + 1):
            missed += payloads(each, seed)
    return verdict(missed, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
