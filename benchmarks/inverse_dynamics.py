"""
What a call of the identified model costs, one state at a time, beside Pinocchio's own RNEA.

    python benchmarks/inverse_dynamics.py [--check]

A control loop at 1 kHz has 1000 µs for everything; 20 µs are asked for. The bound is a ratio to
RNEA on the same machine, which takes 1 µs where 20 µs were asked for.
"""

from collections.abc import Callable
import sys
import time

from common import command_line, configured, verdict
import numpy as np
import pinocchio

from robotid_ros.core.model.dynamics import RobotDynamics

CALLS = 20000
MOST = 20.0


def microseconds(call: Callable[..., object], *arguments: object) -> float:
    """Return the CPU time of a call [µs]."""
    begin = time.process_time()
    for _ in range(CALLS):
        call(*arguments)
    return (time.process_time() - begin) / CALLS * 1e6


def costs(name: str) -> tuple[int, float, float, float, float]:
    """Return joints, and what RNEA, efforts, gravity and M(q) cost [µs]."""
    robot = configured(name)[1]
    model, state = RobotDynamics(robot, robot.prior), np.random.default_rng(0)
    q, dq, ddq = state.uniform(-1.0, 1.0, (3, robot.n))
    own = robot.model, robot.model.createData()
    return (
        robot.n,
        microseconds(pinocchio.rnea, *own, q, dq, ddq),
        microseconds(model.efforts, q, dq, ddq),
        microseconds(model.gravity, q),
        microseconds(model.mass_matrix, q),
    )


def main() -> int:
    """Print the table."""
    args = command_line(__doc__).parse_args()
    missed = []
    print(f'{"robot":8} {"joints":>6} {"RNEA":>8} {"efforts":>8} {"gravity":>8} {"M(q)":>8}  [µs]')
    for name in ('ur10', 'tx40', 'arm3', 'scara'):
        joints, *times = costs(name)
        print(f'{name:8} {joints:6} ' + ' '.join(f'{time:8.2f}' for time in times))
        if max(times) > MOST * times[0]:
            missed.append(f'{name}: {max(times) / times[0]:.1f} times RNEA, at most {MOST:g}')
    return verdict(missed, args.check)


if __name__ == '__main__':
    sys.exit(main())
