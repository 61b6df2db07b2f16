"""The verdict in words: one text for terminal, report and demo."""

from collections.abc import Sequence
import math
import shlex
from typing import Any

from ..core import verdict as verdicts
from ..core.findings import render, seen_and_remedy
from .results import Results, verdict_of

TITLES = {
    verdicts.GOOD: 'Can be used',
    verdicts.FAIR: 'Can be used with care',
    verdicts.POOR: 'Not yet',
    verdicts.UNUSABLE: 'Not usable',
}
USES = {
    verdicts.SIMULATION: 'simulation',
    verdicts.FEED_FORWARD: 'feed-forward',
    verdicts.CONTACT: 'contact detection',
    verdicts.PAYLOAD: 'payloads',
}
FIGURES = ('joint', 'from_parameters', 'from_model', 'expected', 'measured')
# The standard parameters cost so much prediction that the base parameters should be used [times].
COSTLY = 1.5
# What to set where efforts are no torques.
GIVE_GAIN = (
    'Set robot.drive_gain to the torque per unit of effort, or of a table --units '
    "'effort=A*0.12', and identify again."
)


def sentences(results: Results, *, brief: bool = False) -> list[str]:
    """Say what results can be used for, and why; `brief`: without what stands in other lines."""
    verdict, texts = verdict_of(results), list[str]()
    if not verdict.usable and (reason := cause(results)):
        if brief and verdict.cause is not None:
            reason = f'{results.findings[verdict.cause].code}.'
        texts.append(f'Likeliest reason: {reason}')
    texts.append(_use(verdict))
    # The two errors of the worst joint, and, if not `brief`, what was measured.
    known = [each for each in verdict.joints if not math.isnan(each.expected)]
    measured = [each for each in verdict.joints if not math.isnan(each.measured)]
    if known:
        worst = max(known, key=lambda each: each.expected)
        model = _percent(worst.from_model)
        texts.append(
            f'The residual is largest at {worst.joint}: {model} of its effort.'
            if math.isnan(worst.from_parameters)
            else f'The error expected on other motions is largest at {worst.joint}: '
            f'{_percent(worst.from_parameters)} by the parameters, which more motion reduces, '
            f'{model} by the model, which it does not.'
        )
    if measured and (not brief or verdict.reason == verdicts.MEASURED):
        worst = max(measured, key=lambda each: each.measured)
        texts.append(
            f'The error measured on another motion, noise apart, is largest at {worst.joint}: '
            f'{_percent(worst.measured)}.'
        )
    bound = verdicts.THRESHOLDS[verdicts.POOR]
    if verdict.reason == verdicts.RESIDUAL and verdict.residual > bound:
        texts.append(
            f'The residual of a moving joint is {_percent(verdict.residual)}, more than '
            f'{_percent(bound)}.'
        )
    if not verdict.validated and verdict.joints:
        texts.append('No other motion validates it.')
    if verdict.severe and verdict.usable:
        what = 'finding' if verdict.severe == 1 else 'findings'
        texts.append(f'{verdict.severe} {what} may make parameters wrong.')
    if lacking := [name for name in verdict.unlimited if name != 'acceleration']:
        texts.append(
            f'The robot description has no {_listed(lacking, "and")} limits of every joint: those '
            'of the recording stand in.'
        )
    return texts


def cause(results: Results) -> str:
    """Return what explains the verdict likeliest: a finding, or '' where there is none."""
    verdict = verdict_of(results)
    if verdict.reason == verdicts.PARAMETERS and not verdict.severe:
        return 'The recorded motion is too short or too poor to determine the parameters.'
    known = verdict.cause is not None and verdict.cause < len(results.findings)
    return render(results.findings[verdict.cause or 0]) if known else ''


def next_step(results: Results, folder: object = 'FOLDER', *, brief: bool = False) -> str:
    """
    Say the one thing to do: about what decided, or with what a folder holds, to be used.

    `brief`: the findings stand above.
    """
    folder = shlex.quote(str(folder))
    verdict = verdict_of(results)
    worst = verdict.worst
    if verdict.severe and verdict.cause is not None:
        severe = results.findings[verdict.cause]
        if brief:
            return f'Do what {severe.code} says, and identify again.'
        seen, remedy = seen_and_remedy(severe)
        return f'{severe.code}: {remedy or seen}'
    if verdict.reason == verdicts.UNIT:
        return GIVE_GAIN
    if worst is None or verdict.level == verdicts.GOOD:
        # Base parameters, where consistent bodies leave far more of a log.
        names = ('base_residual', 'consistent_residual')
        base, consistent = (float(results.data.get(name, math.nan)) for name in names)
        if not consistent > COSTLY * max(base, verdicts.THRESHOLDS[verdicts.GOOD]):
            return f'Export it, for MuJoCo: robotid export {folder} --format mjcf'
        return (
            'For prediction, use the base parameters (rid.InverseDynamics.load): their residual '
            f'is {_percent(base)}, that of the bodies of identified.urdf {_percent(consistent)}.'
        )
    if verdict.reason == verdicts.PARAMETERS:
        bound = verdicts.THRESHOLDS[verdicts.FAIR]
        weak = [each.joint for each in verdict.joints if each.from_parameters > bound]
        return (
            f'Record more motion of {", ".join(weak or [worst.joint])}, faster and over more of '
            f'the range (robotid design CONFIG --known {folder} designs it), and identify all '
            'logs together: robotid identify LOG ANOTHER_LOG.'
        )
    if verdict.reason == verdicts.NOT_VALIDATED:
        return (
            f'Record another motion and validate: robotid validate LOG --parameters {folder}, or '
            'identify a session, which includes a motion for validation.'
        )
    return f'Look at the residual of {worst.joint} in the report: spectrum and friction curve.'


def verdict_data(results: Results) -> dict[str, Any]:
    """Return the verdict as an object of JSON, with its sentences."""
    verdict = verdict_of(results)
    return {
        'level': verdict.level,
        'usable': verdict.usable,
        'reason': verdict.reason,
        'uses': verdict.purposes,
        'validated': verdict.validated,
        'effort_unit': verdict.effort_unit or None,
        'cause': cause(results) or None,
        'joints': [{name: getattr(each, name) for name in FIGURES} for each in verdict.joints],
        'text': ' '.join(sentences(results)),
        'next': next_step(results),
    }


def unusable_note(results: Results, *, brief: bool = False) -> str:
    """Return what readers of results that are marked unusable have to know, '' for others."""
    verdict = verdict_of(results)
    if verdict.usable:
        return ''
    return f'these parameters are marked unusable. {sentences(results, brief=brief)[0]}'


def _use(verdict: verdicts.Verdict) -> str:
    if verdict.reason == verdicts.NOTHING:
        return 'No joint was identified.'
    able = [USES[purpose] for purpose in verdict.purposes]
    unable = [text for purpose, text in USES.items() if purpose not in verdict.purposes]
    if verdict.reason == verdicts.UNIT:
        unit = 'unknown' if verdict.effort_unit == '?' else verdict.effort_unit
        return (
            f'It cannot be used: the unit of the efforts is {unit}, not N·m; masses, inertias and '
            'friction are wrong by an unknown factor.'
        )
    if not verdict.usable:
        return 'It cannot be used for other motions of this robot.'
    if not able:
        return (
            f'Not to be relied on yet: not for {_listed(unable[1:], "or")}, hardly for simulation.'
        )
    but = f', not for {_listed(unable, "or")}' if unable else ''
    return f'It can be used for {_listed(able, "and")}{but}.'


def _listed(words: Sequence[str], last: str) -> str:
    if len(words) < 2:
        return ''.join(words)
    return f'{", ".join(words[:-1])} {last} {words[-1]}'


def _percent(share: float) -> str:
    if share == 0.0:  # once the noise is taken off
        return 'less than the noise'
    # Three digits, also of thousands, which '.3g' alone shows with an exponent.
    return '—' if math.isnan(share) else f'{float(f"{100.0 * share:.3g}"):g} %'
