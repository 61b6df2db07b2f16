"""
Identify an arm from a log: python own_log.py LOG URDF.

The first 70 % of the log are fitted, the rest validates. Files are written to `identified/`.
"""

import sys

import robotid_ros as rid

source, urdf = sys.argv[1:]
log = rid.load(source, urdf=urdf)
robot = rid.load_robot(urdf, log)
start, end = log.time[0], log.time[-1]
middle = start + 0.7 * (end - start)
result = rid.identify(log.between(start, middle), robot, log.between(middle, end))
verdict = rid.judge(result)
print(f'{verdict.level}: {"can" if verdict.usable else "cannot"} be used')
for joint in verdict.joints:
    print(f'{joint.joint}: {100 * joint.measured:.2g} % of the effort is not predicted')
rid.save(result, log, 'identified')
