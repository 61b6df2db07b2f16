#!/bin/sh
# Give a simulation the identified arm: sim_to_real.sh LOG URDF writes robot.xml for MuJoCo.
set -e
robotid identify "$1" --urdf "$2" -o identified
robotid export identified --format mjcf -o robot.xml
python3 -c "import mujoco; print(mujoco.MjModel.from_xml_path('robot.xml').nv, 'joints in MuJoCo')"
