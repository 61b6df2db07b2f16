"""How often a controller updated, which its parameter `update_rate` does not always say."""

import numpy as np

from ..arrays import Array

# Rates within this share of one another are the same: that of a parameter has no noise.
SAME_RATE = 0.05
# Ratio from which a rate is more than rounded, as ros2_control rounds to three quarters at least,
# and from which the rates of two publishers are more than their losses apart.
CLEARLY_FEWER = 1.5
# Distances that are one nominal period, up to this share, and how many of all show that period.
# Without loss, hardly any update of a slower controller is that early.
ONE_PERIOD, SHARE_OF_SINGLE_PERIODS = 0.25, 0.1
# Fewer states tell no rate, nor do such of which this share have the stamp of the one before.
LEAST_STATES, MAX_SHARE_REPEATED = 100, 0.1


def observed_update_rate(nominal: float, stamp: Array, joint_state_rate: float) -> float:
    """
    Return the update rate of a controller, from the stamps of its states where these tell [Hz].

    ros2_control rounds a controller's rate to that of controller_manager divided by an integer,
    and leaves the parameter as it was; changed at run time, it acts when the controller is
    configured again. As one state is published at every update, their median distance is its
    period. The parameter stands where states are known to be missing. Fewer of them than the
    parameter says were lost or thinned out when

    - some still are one period of the parameter apart, or
    - joint states are more frequent, hence also the updates of the controller_manager of both.

    States and joint states that are thinned out alike are taken for those of a slower controller.
    Of the parameter [Hz], 0 where it is not known, stamps (K,) [s], and the joint states' rate.
    """
    steps = np.diff(stamp)
    if len(stamp) < LEAST_STATES or np.mean(steps <= 0.0) > MAX_SHARE_REPEATED:
        return nominal
    rate = 1.0 / float(np.median(steps))
    if abs(rate - nominal) <= SAME_RATE * nominal:
        return nominal
    if not nominal or rate * CLEARLY_FEWER < nominal:
        single = np.mean(np.abs(steps * nominal - 1.0) < ONE_PERIOD)
        if single > SHARE_OF_SINGLE_PERIODS or joint_state_rate > CLEARLY_FEWER * rate:
            return nominal
    return rate
