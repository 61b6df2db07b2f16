"""
How far masses that are shared out are from those that a description gives.

    python benchmarks/assumed_masses.py [URDF …] [--check]

Of each arm (default: UR10, TX-40 and Puma 560 of `urdf/`) the inertials are taken away and the
mass of all its links is shared out again, as `robot.mass` does. Printed: largest weight and
largest inertia over random poses, over those of the description, joint by joint. With --check,
those of the first three joints, the first one's weight apart, have to be within a factor of 2
(rms).
"""

from pathlib import Path
from xml.etree import ElementTree

from common import command_line, ROOT, verdict
import numpy as np

from robotid_ros.core.model import build_robot, inverse_dynamics, mass_matrix, Robot, RobotSettings
from robotid_ros.core.setup.joint_choice import choose_arm, JointTree

ARMS = ('ur10', 'tx40', 'puma560')
POSES, FACTOR = 100, 2.0


def without_inertials(urdf: str) -> tuple[str, float]:
    """Return the text without inertials, and the mass that they had [kg]."""
    root = ElementTree.fromstring(urdf)
    total = 0.0
    for link in root.findall('link'):
        for inertial in link.findall('inertial'):
            total += float(inertial.find('mass').get('value'))
            link.remove(inertial)
    return ElementTree.tostring(root, encoding='unicode'), total


def burden(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest weight and inertia at each joint, (n,)."""
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (POSES, robot.n))
    still = np.zeros_like(q)
    weight = np.abs(inverse_dynamics(robot, robot.prior, q, still, still)).max(axis=0)
    inertia = np.diagonal(mass_matrix(robot, robot.prior, q), axis1=1, axis2=2).max(axis=0)
    return weight, inertia


def main() -> int:
    """Print the ratios of every arm, and their size over all."""
    parser = command_line(__doc__)
    parser.add_argument('urdf', nargs='*', type=Path)
    args = parser.parse_args()
    logarithms = []
    for path in args.urdf or [ROOT / 'urdf' / f'{name}.urdf' for name in ARMS]:
        text = path.read_text()
        joints = choose_arm(JointTree(text), (), '').joints
        bare, mass = without_inertials(text)
        known = burden(build_robot(text, RobotSettings(joints=joints, rotor_inertia=False)))
        shared = RobotSettings(joints=joints, rotor_inertia=False, mass=mass)
        with np.errstate(invalid='ignore'):  # of joints that bear no weight
            weight, inertia = np.array(burden(build_robot(bare, shared))) / known
        print(f'{path.stem}, {mass:.3g} kg')
        print(f'  weight   {np.array2string(weight[1:], precision=2)}, from the second joint on')
        print(f'  inertia  {np.array2string(inertia, precision=2)}')
        logarithms += [*np.log(weight[1:3]), *np.log(inertia[:3])]
    size = float(np.exp(np.sqrt(np.mean(np.square(logarithms)))))
    print(f'weight and inertia at the first three joints: a factor of {size:.2f} (rms)')
    return verdict([f'a factor of {size:.2f}'] if size > FACTOR else [], args.check)


if __name__ == '__main__':
    raise SystemExit(main())
