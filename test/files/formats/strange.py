"""A motion as robots make it, for tables whose form or values have to tell what they hold."""

import numpy as np

JOINTS = ('a', 'b', 'c')
RATE = 200.0
TIME = np.arange(1200) / RATE
_RNG = np.random.default_rng(0)
_W = 2.0 * np.pi * np.array([0.4, 0.9, 1.3])[:, None]
_SIZE, _PHASE = 0.5 * _RNG.normal(size=(3, 3)), _RNG.uniform(0.0, 6.0, (3, 3))
_TURN = TIME[:, None, None] * _W + _PHASE
Q = (_SIZE * np.sin(_TURN)).sum(axis=1) + 2e-5 * _RNG.normal(size=(1200, 3))
_DQ = (_SIZE * _W * np.cos(_TURN)).sum(axis=1)
DDQ = -(_SIZE * _W**2 * np.sin(_TURN)).sum(axis=1)
DQ = _DQ + 2e-3 * _RNG.normal(size=_DQ.shape)
# Inertia, weight, viscous and dry friction, forces between the joints, noise.
TAU = (
    np.array([1.0, 0.6, 0.3]) * DDQ
    + np.array([8.0, 5.0, 2.0]) * np.cos(Q)
    + 0.6 * _DQ
    + 1.2 * np.sign(_DQ)
    + 2.0 * _DQ[:, [1, 0, 0]] * _DQ[:, [2, 2, 1]]
    + 0.05 * _RNG.normal(size=_DQ.shape)
)
MODE = (TIME > 2.0) * 1.0 + (TIME > 4.0)
