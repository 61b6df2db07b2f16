"""`python -m robotid_ros.nodes NODE`: a node without an installed executable."""

import sys

from ..entry import run_node

NODES = (
    *('simulated_robot', 'excitation', 'recorder', 'identification'),
    *('feedforward', 'gravity_compensation', 'force_torque', 'live'),
)


def main() -> int:
    """Run the node that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ''
    if name not in NODES:
        print(f"unknown node '{name}': use one of {', '.join(NODES)}", file=sys.stderr)
        return 2
    return run_node(name, sys.argv[2:])


if __name__ == '__main__':
    sys.exit(main())
