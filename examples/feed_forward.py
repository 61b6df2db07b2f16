"""
Compute feed-forward efforts: python feed_forward.py identified.

An arm is moved from rest to rest. What a controller has to correct is what the feed-forward lacks.
"""

from pathlib import Path
import sys

import numpy as np

import robotid_ros as rid

model = rid.InverseDynamics.load(Path(sys.argv[1]) / 'parameters.yaml')
count, duration, angle = len(model.joints), 2.0, 0.5
for t in np.linspace(0.0, duration, 5):
    phase = np.pi * t / duration
    q = np.full(count, 0.5 * angle * (1.0 - np.cos(phase)))
    dq = np.full(count, 0.5 * angle * np.pi / duration * np.sin(phase))
    ddq = np.full(count, 0.5 * angle * (np.pi / duration) ** 2 * np.cos(phase))
    efforts = model.efforts(q, dq, ddq)
    print(f'{t:.1f} s: ' + ', '.join(f'{effort:.3g}' for effort in efforts))
