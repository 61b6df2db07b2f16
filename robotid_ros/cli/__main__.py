"""`python -m robotid_ros.cli`: the command line without an installed script."""

import sys

from .main import main

sys.exit(main())
