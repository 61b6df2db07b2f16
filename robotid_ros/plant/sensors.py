"""Sensors of the drives: noise, quantisation and faults."""

from collections.abc import Sequence

import numpy as np

from ..exceptions import UnknownNameError
from ..simulation_settings import FaultSettings, per_joint, SimulationSettings

Values = list[float]
# Faults that spoil position, velocity and effort.
NAN_FAULTS = ('nan_joint_state', 'nan_velocity', 'nan_effort')


class Fault:
    """A fault of one of the joints that begins at its configured time, or when `begin` says."""

    def __init__(self, settings: FaultSettings, joints: Sequence[str]):
        if settings.joint and settings.joint not in joints:
            raise UnknownNameError('joint', settings.joint, tuple(joints))
        self.kind, self.joint = settings.kind, list(joints).index(settings.joint or joints[0])
        self._duration = settings.duration or float('inf')
        self.begin(settings.time)

    def begin(self, time: float) -> None:
        """Break at this time since the start [s] instead."""
        self._start = time

    def active(self, time: float, *kinds: str) -> bool:
        """Whether one of these is broken at a time since the start [s]."""
        return self.kind in kinds and self._start <= time < self._start + self._duration


class Sensors:
    """Positions, velocities and efforts of joints (n,) as the hardware reports them."""

    def __init__(self, settings: SimulationSettings, joints: Sequence[str]):
        noise, count = settings.noise, len(joints)
        self._sigma = np.array(
            [
                per_joint(getattr(noise, name), count, f'noise.{name}')
                for name in ('position', 'velocity', 'effort')
            ]
        )
        if not settings.report_effort:
            self._sigma[2] = np.nan
        self._resolution = per_joint(noise.resolution, count, 'noise.resolution')
        self._quantised = any(self._resolution)
        self._random = np.random.default_rng([settings.seed, 0x22])
        self._frozen: tuple[Values, Values] | None = None
        self.fault = Fault(settings.fault, joints)

    def read(
        self, time: float, position: Sequence[float], velocity: Sequence[float],
        effort: Sequence[float],
    ) -> tuple[Values, Values, Values]:  # fmt: skip
        """Report true values (n,) at a time since the start [s]."""
        normal = self._random.standard_normal(self._sigma.shape)
        for_q, for_dq, for_tau = (normal * self._sigma).tolist()
        q = [x + e for x, e in zip(position, for_q, strict=True)]
        if self._quantised:
            q = [round(x / r) * r if r else x for x, r in zip(q, self._resolution, strict=True)]
        dq = [x + e for x, e in zip(velocity, for_dq, strict=True)]
        tau = [x + e for x, e in zip(effort, for_tau, strict=True)]
        if self.fault.kind:
            self._inject_fault(time, q, dq, tau)
        return q, dq, tau

    def _inject_fault(self, time: float, q: Values, dq: Values, tau: Values) -> None:
        fault, joint = self.fault, self.fault.joint
        for kind, values in zip(NAN_FAULTS, (q, dq, tau), strict=True):
            if fault.active(time, kind):
                values[joint] = float('nan')
        if fault.active(time, 'dead_effort'):
            tau[joint] = 0.0
        if not fault.active(time, 'frozen_joint', 'frozen_states'):
            self._frozen = None
            return
        self._frozen = self._frozen or (q.copy(), tau.copy())
        if fault.kind == 'frozen_states':
            q[:], dq[:], tau[:] = self._frozen[0], [0.0] * len(dq), self._frozen[1]
        else:
            q[joint], dq[joint] = self._frozen[0][joint], 0.0
