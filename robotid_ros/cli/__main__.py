"""`python -m robotid_ros.cli`: the command line without an installed script."""

import sys

from ..entry import robotid

sys.exit(robotid())
