"""
Other people's arms with no line written: `robotid init`, then `robotid demo`.

    python benchmarks/arms.py FOLDER [--robots NAME …] [--output DIR] [--time-limit S] [--check]

FOLDER holds checkouts of public repositories as OWNER/REPOSITORY, of each arm that is tried:
`git clone https://github.com/OWNER/REPOSITORY FOLDER/OWNER/REPOSITORY`, names as in ARMS. Xacros
need `pip install xacro`; a workspace need not be built. An arm without its checkout is a miss.
Each arm is set up from its description and identified in a whole session on the
simulated robot, over ROS 2 as `robotid demo` runs it, one after another: minutes each. Asked of
each: exit code 0, 90 % of the true base parameters within 3 sigma, at most 3 % of the efforts of
any moving joint left on the validation motion. No line of a configuration is edited. With
--check one of eight may miss that, if `robotid init` ends with what has to be given. With
--time-limit each is only designed for, beside two busy loops: the command has to end in 1.1 times
that time.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory
import time

from common import command_line, verdict
from measure import busy

from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.results import count_within_sigma, read_results
from robotid_ros.files.trajectory_file import read_design

TIAGO = 'Gepetto/example-robot-data/robots/tiago_description/robots/tiago_no_hand.urdf'
XARM = 'xArm-Developer/xarm_ros2/xarm_description/urdf/xarm_device.urdf.xacro'
LIFTED = ','.join(['torso_lift_joint', *(f'arm_{k}_joint' for k in range(1, 8))])
# Descriptions by owner/repository and path, and options of `robotid init` where another arm than
# the first is meant, or the description asks for a value.
ARMS: dict[str, tuple[str, ...]] = {
    'so101': ('TheRobotStudio/SO-ARM100/Simulation/SO101/so101_new_calib.urdf',),
    'openarm': ('enactic/openarm_description/urdf/robot/v10.urdf.xacro',),
    'piper': ('agilexrobotics/Piper_ros/src/piper_description/urdf/piper_description.urdf',),
    'xarm6': (XARM, 'dof:=6', '--repair', 'inertias'),
    'lite6': (XARM, 'robot_type:=lite', 'dof:=6'),
    'fr3': ('frankarobotics/franka_description/robots/fr3/fr3.urdf.xacro', 'hand:=false'),
    'iiwa7': ('lbr-stack/lbr_fri_ros2_stack/lbr_description/urdf/iiwa7/iiwa7.xacro',),
    'gen3': ('Kinovarobotics/ros2_kortex/kortex_description/robots/gen3.xacro', 'dof:=7'),
    'leg': (
        'unitreerobotics/unitree_ros/robots/go2_description/urdf/go2_description.urdf',
        *('--tip', 'FL_foot'),
    ),
    'humanoid': (
        'unitreerobotics/unitree_ros/robots/g1_description/g1_29dof_rev_1_0.urdf',
        *('--tip', 'left_rubber_hand'),
    ),
    'scara': ('ICube-Robotics/scara_tutorial_ros2/scara_description/urdf/scara.urdf',),
    'scara_bare': (
        'Mitsubishi-Electric-Asia/melfa_ros2_driver/melfa_description/urdf/rh6frh5520/'
        'rh6frh5520.urdf',
        *('--mass', '37'),
    ),
    'rail': (
        'PickNikRobotics/moveit_pro_example_ws/src/lab_sim/description/picknik_ur.xacro',
        'mujoco_viewer:=false',
    ),
    'rizon4': (
        'flexivrobotics/flexiv_ros2/flexiv_description/urdf/rizon.urdf.xacro',
        'name:=rizon',
    ),
    'doosan': ('DoosanRobotics/doosan-robot2/dsr_description2/urdf/m1013.urdf',),
    'panda': ('Gepetto/example-robot-data/robots/panda_description/urdf/panda.urdf',),
    'ur10': ('Gepetto/example-robot-data/robots/ur_description/urdf/ur10_robot.urdf',),
    'tiago_lift': (TIAGO, '--joints', LIFTED),
    'talos': ('Gepetto/example-robot-data/robots/talos_data/robots/talos_left_arm.urdf',),
}
MIN_SHARE, MAX_RESIDUAL = 0.9, 0.03
# Of so many arms one may be missed, where `robotid init` says what has to be given.
ARMS_PER_MISS = 8
# Longest command [s]: above the limit of the demo itself, which says what takes so long.
PATIENCE = 1200.0
# Lines of each configuration that a user has to write: none is touched between the two commands.
LINES = 0
# What a command may take over its limit: start and end of the process with a quarter of a core.
LATE, BUSY_LOOPS = 1.1, 2
# Exit codes of a design that was written, a poor one too.
DESIGNED = (0, 3)
HEADER = f'{"arm":11s}  lines  exit    time  condition  within 3 sigma  residual'


@dataclass(frozen=True)
class Row:
    """What one arm came to; `exit` is of the command that ended it, `asked` if that was init."""

    arm: str
    exit: int
    seconds: float
    condition: float = float('nan')
    inside: int = 0
    known: int = 0
    residual: float = float('nan')
    said: str = ''
    asked: bool = False

    @property
    def good(self) -> bool:
        """Whether all that is asked for was reached."""
        enough = bool(self.known) and self.inside >= MIN_SHARE * self.known
        return not self.exit and enough and self.residual <= MAX_RESIDUAL

    def __str__(self) -> str:
        within = f'{self.inside} of {self.known}'
        return (
            f'{self.arm:11s}  {LINES:5d}  {self.exit:4d}  {self.seconds:4.0f} s  '
            f'{self.condition:9.1f}  {within:>14s}  {100.0 * self.residual:6.2f} %  {self.said}'
        )


def run_arm(arm: str, folder: Path, output: Path) -> Row:
    """Set one arm up and identify it."""
    begin, (urdf, *options) = time.monotonic(), ARMS[arm]
    configuration = output / f'{arm}.yaml'
    commands = (
        ['init', str(folder / urdf), *options, '-o', str(configuration), '--force'],
        ['demo', str(configuration), '-o', str(output / arm)],
    )
    for command in commands:
        code, said = robotid(command, output / f'{arm}.log')
        if code:
            break
    seconds = time.monotonic() - begin
    results_files = output.glob(f'{arm}/**/parameters.yaml')
    found = max(results_files, key=lambda path: path.stat().st_mtime, default=None)
    if found is None or command is commands[0]:
        return Row(arm, code, seconds, said=said, asked=command is commands[0])
    try:
        results = read_results(found.parent)
    except RobotIdError as error:
        return Row(arm, code or 1, seconds, said=str(error))
    worst = max((row.moving for row in results.validation), default=float('nan'))
    inside, known = count_within_sigma(results.base)
    return Row(arm, code, seconds, results.condition_number, inside, known, worst, said)


def design_arm(arm: str, folder: Path, output: Path, limit: float) -> Row:
    """Set one arm up and design its motion within a time limit."""
    urdf, *options = ARMS[arm]
    configuration, log = output / f'{arm}.yaml', output / f'{arm}.log'
    setting_up = ['init', str(folder / urdf), *options, '-o', str(configuration), '--force']
    code, said = robotid(setting_up, log)
    if code:
        return Row(arm, code, 0.0, said=said)
    trajectory = output / f'{arm}_trajectory.yaml'
    trajectory.unlink(missing_ok=True)
    command = ['design', str(configuration), '-o', str(trajectory), '--force']
    begin = time.monotonic()
    code, said = robotid([*command, '--time-limit', str(limit)], log)
    seconds = time.monotonic() - begin
    if not trajectory.exists():
        return Row(arm, code or 1, seconds, said=said)
    return Row(arm, code, seconds, read_design(trajectory).condition_numbers['raw'], said=said)


def within_time(arms: Sequence[str], folder: Path, output: Path, limit: float) -> list[str]:
    """Print how long each design takes beside busy loops; return what took too long."""
    print(f'{"arm":11s}  exit     time  condition, beside {BUSY_LOOPS} busy loops')
    missed = []
    with busy(BUSY_LOOPS):
        for arm in arms:
            row = design_arm(arm, folder, output, limit)
            figures = f'{row.exit:4d}  {row.seconds:5.1f} s  {row.condition:9.1f}'
            print(f'{arm:11s}  {figures}  {row.said}', flush=True)
            if row.exit not in DESIGNED:
                missed.append(f'{arm}: {row.said}')
            elif row.seconds > LATE * limit:
                missed.append(f'{arm}: {row.seconds:.1f} s of {LATE * limit:.1f}')
    return missed


def robotid(command: Sequence[str], log: Path) -> tuple[int, str]:
    """Run a command; returns its exit code and, where that is not 0, the last line it wrote."""
    try:
        done = subprocess.run(
            [sys.executable, '-m', 'robotid_ros.cli', *command, '--quiet'],
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f'no end within {PATIENCE:.0f} s'
    with log.open('a') as stream:
        stream.write(f'robotid {" ".join(command)}\n{done.stdout}{done.stderr}\n')
    lines = (done.stderr or done.stdout).strip().splitlines()
    return done.returncode, lines[-1] if done.returncode and lines else ''


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument('folder', type=Path, help='of the checkouts')
    parser.add_argument('--robots', nargs='+', choices=tuple(ARMS), default=tuple(ARMS))
    parser.add_argument('--output', type=Path, help='keep configurations, recordings, logs here')
    parser.add_argument('--time-limit', type=float, help='design only, in so many seconds')
    return parser.parse_args()


def main() -> int:
    """Print the table of all arms."""
    arguments = options()
    folder = arguments.folder
    with TemporaryDirectory() as temporary:
        output = arguments.output or Path(temporary)
        output.mkdir(parents=True, exist_ok=True)
        if arguments.time_limit is not None:
            given = arguments.robots, folder, output.absolute(), arguments.time_limit
            return verdict(within_time(*given), arguments.check)
        print(HEADER)
        missed = list[Row]()
        for arm in arguments.robots:
            row = run_arm(arm, folder, output.absolute())
            print(row, flush=True)
            missed += [] if row.good else [row]
    few = len(missed) <= len(arguments.robots) // ARMS_PER_MISS and all(
        row.asked for row in missed
    )
    complaints = [f'{row.arm}: {row.said or "see its row"}' for row in missed]
    return verdict([] if few else complaints, arguments.check)


if __name__ == '__main__':
    sys.exit(main())
