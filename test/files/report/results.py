"""Made-up results of an arm with two joints, whose names are awkward."""

import numpy as np

from robotid_ros.core.diagnostics.data_quality import DataQuality, JointQuality
from robotid_ros.core.findings import finding
from robotid_ros.core.regression.validation import PARTS, Validation
from robotid_ros.files.results import Entry, Residual, Results

JOINTS = ('shoulder', 'el<bow')
SYMBOLS = ('XX', 'XY', 'XZ', 'YY', 'YZ', 'ZZ', 'MX', 'MY', 'MZ', 'M')


def torques(rows=3000, rate=500.0, joints=JOINTS, start=0.0):
    """Sample two sines and noise; the parts add up to what is predicted."""
    rng = np.random.default_rng(3)
    time = start + np.arange(rows) / rate
    position = np.sin(np.outer(time, 1.0 + np.arange(len(joints))))
    velocity = np.cos(np.outer(time, 1.0 + np.arange(len(joints))))
    parts = -position, 2.0 * position, 0.5 * np.sign(velocity), np.full_like(position, 0.1)
    predicted = sum(parts)
    measured = predicted + 0.05 * rng.normal(size=predicted.shape)
    names = ('position', 'velocity', *PARTS)
    known = dict(zip(names, (position, velocity, *parts), strict=True))
    return Validation(tuple(joints), time, measured, predicted, **known)


def standard(joints=JOINTS):
    """Return boxes of 2 kg whose centres lie off their joints."""
    values = (0.2, 0.0, 0.0, 0.3, 0.0, 0.3, 0.4, 0.0, 0.2, 2.0)
    return tuple(
        Entry(
            f'{symbol}{k + 1}', value, 0.01, 10.0, 'kg', joint, 'identifiable', prior=0.9 * value
        )
        for k, joint in enumerate(joints)
        for symbol, value in zip(SYMBOLS, values, strict=True)
    )


def base(joints=JOINTS, count=10):
    values = np.random.default_rng(5).normal(size=count) * 10.0 ** np.linspace(-6, 2, count)
    return tuple(
        Entry(
            f'ZZ{k}R', float(v), abs(v) / 30, 100 / 30, 'kg·m²', joints[k % len(joints)],
            ('essential', 'small', 'prior')[k % 3], f'ZZ{k} + Ia{k}', f'ZZ{k}', 1.1 * float(v),
            float(v) * 1.01,
        )
        for k, v in enumerate(values)
    )  # fmt: skip


def quality(joints=JOINTS, count=10):
    line = JointQuality(
        unit='rad', lowest=-1.0, highest=1.0, fastest=1.0, lower=-2.0, upper=2.0,
        velocity=float('inf'), noise=0.05, delay=0.002,
    )  # fmt: skip
    return DataQuality(
        rate=500.0,
        jitter=0.01,
        gaps=1,
        longest_gap=0.1,
        cutoff=40.0,
        decimation=5,
        whole=True,
        joints=dict.fromkeys(joints, line),
        singular_values=[10.0 / (k + 1) for k in range(count)],
        correlation=[[0.9] * k + [1.0] for k in range(count)],
    )


def results(joints=JOINTS, rows=3000, rate=500.0):
    """Return results with every part that the page shows."""
    fitted = torques(rows, rate, joints)
    seen = torques(rows // 2, rate, joints, start=rows / rate + 1.0)
    lines = tuple(
        Residual(joint, 0.02 + 0.3 * (k == 0), 0.1, 0.3, 'N·m', 0.02 + 0.18 * (k == 0), 0.9)
        for k, joint in enumerate(joints)
    )
    history = tuple(
        {'iteration': float(k), 'torque_error': 0.5**k, 'position_error': 0.1 * 0.5**k}
        for k in range(3)
    )
    choice = {
        'summary': 'friction: viscous', 'residual': 0.02, 'plain_residual': 0.03,
        'joints': {j: {'residual': 0.02, 'plain_residual': 0.03} for j in joints},
        'kinds': {'slip': 0.01}, 'pull': 0.001,
    }  # fmt: skip
    return Results(
        'arm & tool', 'didim', '2025-01-31T12:00:00+00:00', tuple(joints), base(joints),
        standard(joints), lines, lines, 33.3,
        {'source': '/tmp/<bag>', 'sha256': 'abc', 'command': "robotid identify '<bag>'",
         'base_residual': 0.02, 'consistent_residual': 0.021, 'prior_spread': 0.5},
        dict.fromkeys(joints, True),
        (finding('effort_sign', [joints[-1]], gains=(-1.0,)),
         finding('efforts_of_topic', topic='<nothing>')),
        history, {'robot': {'gravity': [0, 0, -9.81]}}, {'robotid_ros': '0.1'},
        {'identification': fitted, 'validation': seen},
        selection=choice, quality=quality(joints),
    )  # fmt: skip
