"""`python -m robotid_ros.nodes NODE`: a node without an installed executable."""

import sys

from ..entry import run_node

if __name__ == '__main__':  # processes that a node starts import this, too
    sys.exit(run_node(sys.argv[1], sys.argv[2:]))
