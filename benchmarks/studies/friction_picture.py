"""
Draw `docs/pictures/friction.png`: the friction of a simulated joint by the mixed model.

    python benchmarks/studies/friction_picture.py [FILE]
"""

import sys

import _benchmarks  # noqa: F401
from common import ROOT
import matplotlib

matplotlib.use('Agg')
from matplotlib import pyplot
import numpy as np

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.parameters.plain_friction import plain_equivalent
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording

JOINT, NOISE = 1, 0.3


def friction(dq: np.ndarray) -> np.ndarray:
    """Return the true friction of each joint [N·m]."""
    return 0.8 * dq + np.sign(dq) * (3.0 + 2.0 * np.exp(-np.abs(dq) / 0.1))


def main() -> None:
    """Simulate, identify, draw."""
    urdf = (ROOT / 'urdf' / 'arm3.urdf').read_text()
    bare = build_robot(urdf, RobotSettings(friction={'default': ()}))
    time, rng = np.arange(0.0, 40.0, 0.005), np.random.default_rng(0)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = 0.3 * rng.normal(size=(2, 5, bare.n))
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, dq, ddq = s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
    tau = inverse_dynamics(bare, bare.prior, q, dq, ddq) + friction(dq)
    tau += NOISE * rng.normal(size=tau.shape)
    recording = Recording(bare.joints, time, q, tau)
    found = identify(recording, build_robot(urdf, RobotSettings()), IdentificationSettings())
    speed = np.linspace(-1.3, 1.3, 801) * np.abs(dq[:, JOINT]).max()
    columns, names = [], []
    for term in found.robot.friction[JOINT]:
        columns += term.columns(np.full_like(speed, q[:, JOINT].mean()), speed, None)
        names += [f'{symbol}{JOINT + 1}' for symbol in term.kind.symbols]
    A = np.column_stack(columns)
    place = [found.estimate.names.index(name) for name in names]
    curve = A @ found.estimate.value[place]
    sigma = np.sqrt(np.sum((A @ found.estimate.covariance[np.ix_(place, place)]) * A, axis=1))
    seen = np.interp(dq[:, JOINT], speed, curve)
    plain = plain_equivalent(dq[:, JOINT], seen)
    figure, axes = pyplot.subplots(figsize=(7.0, 3.6), layout='constrained')
    low, high = dq[:, JOINT].min(), dq[:, JOINT].max()
    axes.axvspan(low, high, color='0.94', label='speeds of the recording')
    axes.fill_between(speed, curve - 3 * sigma, curve + 3 * sigma, alpha=0.3, label='± 3 σ')
    axes.plot(speed, curve, label='mixed model')
    axes.plot(speed, friction(speed), 'k:', label='true')
    line = plain.viscous * speed + plain.coulomb * np.sign(speed) + plain.offset
    axes.plot(speed, line, '--', label='plain equivalent')
    axes.set(xlabel='speed [rad/s]', ylabel='friction [N·m]')
    axes.legend(fontsize=8)
    figure.savefig(
        sys.argv[1] if len(sys.argv) > 1 else ROOT / 'docs/pictures/friction.png', dpi=110
    )


if __name__ == '__main__':
    main()
