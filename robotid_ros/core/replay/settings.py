"""How a closed-loop replay is run and when it has converged."""

import dataclasses

from ...settings import setting


@dataclasses.dataclass(frozen=True)
class ReplaySettings:
    """Settings of DIDIM and of the output-error methods."""

    start: str = setting(
        'auto',
        'first parameters: regular (every Ia is 1, or every ZZ with regular_zz, the rest 0), '
        'prior (URDF and configuration), idim (the solution from measured positions), or auto: '
        'regular for didim, idim for clie, cloe and oe, which need to start near',
        choices=('auto', 'regular', 'regular_zz', 'prior', 'idim'),
    )
    gain_update: str = setting(
        'initial',
        'when the simulated gains are scaled by J/J_ap, so that ω_n and ζ stay those of the '
        'a-priori inertias: initial (at the initial parameters and shortened steps; else the '
        "robot's own gains), every_iteration (as DIDIM's eq. 59), or never",
        choices=('initial', 'every_iteration', 'never'),
    )
    iterations: int = setting(25, 'give up after so many', minimum=1, maximum=200)
    residual_tolerance: float = setting(
        0.02, 'converged when the torque error changes by less than this share', minimum=0.0
    )
    parameter_tolerance: float = setting(
        0.02,
        'converged when no parameter changes by more than this share of it, or by its σ',
        minimum=0.0,
    )
    transient: float = setting(
        5.0, 'left out at the start, in units of 1/ω_n of the slowest joint', minimum=0.0
    )
    decimation: int = setting(
        0, 'keep one row in so many, after low-pass filtering W and Y; 0: from ω_n', minimum=0
    )
    integrator: str = setting(
        'auto',
        'auto: midpoint where it is as good as rk4, else that',
        choices=('auto', 'midpoint', 'rk4'),
    )
    step: float = setting(0.001, 'longest integration step', unit='s', minimum=1e-6)
    effort_delay: float = setting(
        -1.0,
        'updates from a torque to the stamp that reports it; negative: as the recorded commands '
        "show, where there are none 1 with ros2_control's controllers and 0 with others",
        minimum=-1.0,
        maximum=100.0,
    )
    law: str = setting('', "control law; empty: the recorded controller's")
    rate: float = setting(
        0.0, "update rate of the control law; 0: the recorded controller's", unit='Hz', minimum=0.0
    )
    gains: dict[str, dict[str, float]] = setting(
        dict, 'gains of the control law by joint, in place of the recorded ones'
    )
