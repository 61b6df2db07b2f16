"""Proposed gains as parameters of a controller, and in a sentence."""

from collections.abc import Mapping
import math

from ...core.verification.gains import GAIN_MARGIN, GainProposal, JointGains, NAMES, PHASE_MARGIN


def gain_parameters(gains: Mapping[str, JointGains]) -> dict[str, float]:
    """Name the gains as the controller's parameters do."""
    return {
        f'gains.{joint}.{name}': getattr(values, name)
        for joint, values in gains.items()
        for name in NAMES
    }


# Why no other gains are proposed than the present ones.
REASONS = {
    'springs': 'gains of joints with springs do not follow from the inertia',
    'margins': 'none within controller_gains.change of them keeps 6 dB and 45° in all postures: '
    'raise it',
    'swings': 'with stiffer ones a joint swings at rest in a simulation',
    'saturates': 'with stiffer ones drives reach their limits in a simulation',
}


def proposal_sentence(proposal: GainProposal) -> str:
    """Say what a simulation makes of a proposal, and of the margins at the worst posture."""
    low, high = (f'{end(proposal.ratio, default=math.nan):.2f}' for end in (min, max))
    error = f'{low} to {high} times the tracking error in a simulation'
    if proposal.why == 'springs' and not proposal.better:
        return f'the gains in place stay: {REASONS[proposal.why]}'
    gain, phase = proposal.new_margins if proposal.better else proposal.margins
    margins = f'margins of {20.0 * math.log10(gain):.1f} dB and {math.degrees(phase):.0f}°'
    if proposal.better:
        return f'{error}, {margins}'
    reason = REASONS.get(proposal.why, f'the stiffest with 6 dB and 45° leave {error}')
    good = gain >= GAIN_MARGIN and phase >= PHASE_MARGIN
    verdict = 'are as good as can be had' if good else 'stay'
    return f'the gains in place ({margins}) {verdict}: {reason}'
