#!/bin/bash
# Build the interfaces in .ci/control_msgs and .ci/controller_manager_msgs into a virtual environment whose ROS 2 comes
# from PyPI, with requirements-overlay.txt. Usage: build_control_msgs.sh VENV. Leaves what is installed already alone.
set -euo pipefail

venv=$(realpath "${1:?usage: build_control_msgs.sh VENV}")
here=$(dirname "$(realpath "$0")")
packages=(control_msgs controller_manager_msgs)
stamp=$venv/share/control_msgs/overlay.sha256
log=$venv/control_msgs.log
wanted=$(cd "$here" && cat build_control_msgs.sh requirements-overlay.txt \
  $(find "${packages[@]}" -type f | LC_ALL=C sort) | sha256sum | cut -d' ' -f1)

die() { echo "error: $*" >&2; exit 1; }

# A real control_msgs has no stamp of ours and is left alone.
if (cd / && "$venv/bin/python" -c 'import control_msgs.action, controller_manager_msgs.srv') 2>/dev/null; then
  if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi
fi

for tool in cmake make cc c++; do
  command -v "$tool" >/dev/null || die "$tool is missing, it builds the control_msgs interfaces: apt install cmake make gcc g++"
done
"$venv/bin/python" -c 'import pathlib, sys, sysconfig
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' ||
  die 'the headers of Python are missing, they build the control_msgs interfaces: apt install python3-dev'

: >"$log"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# The wheels' python would start itself again with other paths while it generates code.
export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
export AMENT_PREFIX_PATH=$venv CMAKE_PREFIX_PATH=$venv LD_LIBRARY_PATH=$venv/lib PATH=$venv/bin:$PATH
unset PYTHONPATH COLCON_PREFIX_PATH
for package in "${packages[@]}"; do
  {
    cmake -S "$here/$package" -B "$build/$package" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
      -DCMAKE_INSTALL_PREFIX="$venv" -DCMAKE_INSTALL_LIBDIR=lib -DPython3_EXECUTABLE="$venv/bin/python" &&
    cmake --build "$build/$package" --parallel "$(nproc)" &&
    cmake --install "$build/$package"
  } >>"$log" 2>&1 &
done
for package in "${packages[@]}"; do
  wait -n || die "the interfaces could not be built, details in $log"
done
(cd / && "$venv/bin/python" -c 'import control_msgs.action, controller_manager_msgs.srv') >>"$log" 2>&1 ||
  die "the interfaces were built but cannot be imported, details in $log"
echo "$wanted" >"$stamp"
