#!/bin/bash
# Build the package with colcon in a scratch workspace, as on a robot, and check what it installs.
# Usage: colcon.sh VENV (an environment made by environment.sh, whose ROS 2 runs what was built).
set -euo pipefail

venv=$(realpath "${1:?usage: colcon.sh VENV}")
here=$(dirname "$(realpath "$0")")
root=$(dirname "$here")
tools=$root/.venv-colcon
die() { echo "error: $*" >&2; exit 1; }

workspace=$(mktemp -d)
trap 'rm -rf "$workspace"' EXIT
if [ "$(cat "$tools/lock" 2>/dev/null)" != "$(cat "$here/requirements-colcon.txt")" ]; then
  "$venv/bin/python" -m venv --clear "$tools"
  "$tools/bin/pip" install --disable-pip-version-check --no-input --no-deps --require-hashes \
    -r "$here/requirements-colcon.txt" \
    >"$tools/colcon.log" 2>&1 || die "colcon could not be installed from PyPI: check the network, details in $tools/colcon.log"
  cp "$here/requirements-colcon.txt" "$tools/lock"
fi

mkdir "$workspace/src"
# Only what is committed or would be: a build must not depend on leftovers.
(cd "$root" && git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$workspace/src")
cd "$workspace"
PATH=$tools/bin:$PATH colcon build || die 'colcon build failed'

prefix=$workspace/install/robotid_ros
for name in simulated_robot excitation recorder identification robotid; do
  [ -x "$prefix/lib/robotid_ros/$name" ] || die "ros2 run would not find $name in lib/robotid_ros"
done
[ -f "$prefix/share/ament_index/resource_index/packages/robotid_ros" ] || die 'the ament index does not list the package'
for folder in launch config urdf; do
  installed=$(cd "$prefix/share/robotid_ros" && find "$folder" -type f 2>/dev/null | LC_ALL=C sort)
  expected=$(cd "$workspace/src" && find "$folder" -type f | LC_ALL=C sort)
  [ "$installed" = "$expected" ] || die "share/robotid_ros/$folder does not hold every file of $folder/"
done

# The installed package, not this repository, must answer.
site=$(dirname "$(find "$prefix/lib" -type d -path '*site-packages/robotid_ros')")
export AMENT_PREFIX_PATH=$prefix PYTHONPATH=$site
"$venv/bin/python" "$prefix/lib/robotid_ros/robotid" --help >/dev/null || die 'the installed robotid does not start'
"$venv/bin/python" - "$site" <<'PYTHON' || die 'an installed entry point cannot be imported'
import importlib
from importlib.metadata import distribution
import sys

(entries,) = [d.entry_points for d in [distribution('robotid_ros')]]
for entry in entries:
    module = importlib.import_module(entry.module)
    assert module.__file__.startswith(sys.argv[1]), module.__file__
    assert callable(getattr(module, entry.attr))
PYTHON
echo 'colcon: built, installed and importable'
