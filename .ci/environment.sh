#!/bin/bash
# Make a virtual environment with everything the package needs: ROS 2 from PyPI, control_msgs, and the package itself.
# Usage: environment.sh VENV [newest|oldest]. Takes a moment when nothing has changed since the last time.
set -euo pipefail

numerical=${2:-newest}
here=$(dirname "$(realpath "$0")")
root=$(dirname "$here")
venv=$(realpath -m "${1:?usage: environment.sh VENV [newest|oldest]}")
python=${PYTHON:-python3}
log=$venv/environment.log
stamp=$venv/environment.sha256
locks=("$here"/requirements{,-"$numerical",-overlay}.txt)

die() { echo "error: $*" >&2; exit 1; }

command -v "$python" >/dev/null || die "$python is missing: apt install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "$("$python" --version) is too old: install Python 3.11 or newer, or name one with PYTHON=python3.11"
[ "$(uname -sm)" = 'Linux x86_64' ] ||
  die "PyPI has ROS 2 for Linux on x86-64 alone, this is $(uname -sm): build with colcon on an installed ROS 2"
command -v sha256sum >/dev/null || die 'sha256sum is missing: apt install coreutils'

wanted=$({ echo "$venv $root"; "$python" --version; cat "${locks[@]}" "$here"/*.sh "$root"/setup.{py,cfg} \
  "$here/requirements-uv.txt" $(find "$here"/control_msgs "$here"/controller_manager_msgs -type f | LC_ALL=C sort); } | sha256sum)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

for tool in cmake make gcc g++; do
  command -v "$tool" >/dev/null || die "$tool is missing: apt install cmake make gcc g++"
done

if [ -e "$venv" ] && [ ! -f "$venv/pyvenv.cfg" ]; then
  die "$venv is not a virtual environment: move it away"
fi
echo "preparing $venv: a few minutes the first time (progress in $log)"
unset PYTHONPATH PYTHONHOME AMENT_PREFIX_PATH LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE
rm -f "$stamp"
# An environment that was moved, or made by another Python, is of no use.
if [ "$("$venv/bin/python" --version 2>&1)" != "$("$python" --version)" ] ||
  ! "$venv/bin/pip" --version >/dev/null 2>&1; then
  "$python" -m venv --clear "$venv" >/dev/null 2>&1 ||
    die "$python cannot make a virtual environment in $venv: apt install python3-venv, and check for free space"
fi

# Compiled when they are imported: a fifth of 10,000 modules is, which saves 20 s.
install() { "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps --no-compile "$@" >>"$log" 2>&1; }

: >"$log"
install --require-hashes -r "$here/requirements-uv.txt" ||
  die "uv could not be installed from PyPI: check network and free space, details in $log"
# uv takes 6 s for what takes pip 30. It reads no pip.conf: pip installs where uv cannot.
"$venv/bin/uv" pip install --python "$venv/bin/python" --no-deps --require-hashes "${locks[@]/#/-r}" >>"$log" 2>&1 ||
  install --require-hashes "${locks[@]/#/-r}" ||
  die "the packages of ${locks[*]#"$root"/} could not be installed from PyPI: check network and free space, details in $log"
"$here/build_control_msgs.sh" "$venv"
install --no-build-isolation --editable "$root" || die "the package itself could not be installed, details in $log"
(cd / && "$venv/bin/python" -c 'import control_msgs.action, mujoco, pinocchio, rclpy, robotid_ros.library, scipy.optimize, scipy.signal') >>"$log" 2>&1 ||
  die "the environment does not work on this machine, details in $log; remove $venv to start again"
echo "$wanted" >"$stamp"
