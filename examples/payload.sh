#!/bin/sh
# Weigh a payload: payload.sh EMPTY LOADED URDF. Both logs hold the same kind of motion.
set -e
robotid identify "$1" --urdf "$3" -o arm
robotid payload arm "$2" -o payload.yaml
