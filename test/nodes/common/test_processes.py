"""A process ends in time even where nobody gives Python's lock back."""

import subprocess
import sys
import time

from waiting import PATIENCE

from robotid_ros.nodes.common.runtime import child_environment

# A regular expression that takes ages, in C, with the lock held as Fast DDS does.
SCRIPT = """
import re
from robotid_ros.nodes.common.processes import cancel_exit, exit_after
exit_after(0.2)
cancel_exit()
exit_after(0.5)
print('spinning', flush=True)
re.match('(a+)+$', 'a' * 60 + 'b')
"""


def test_a_process_that_spins_with_the_lock_ends():
    begin = time.monotonic()
    ended = subprocess.run(
        [sys.executable, '-c', SCRIPT],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, 'spinning\n', '')
    assert time.monotonic() - begin > 0.5
