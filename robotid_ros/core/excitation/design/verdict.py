"""The verdict on a design: whether its motion is worth running."""

from ..settings import ExcitationSettings


def shortcomings(
    settings: ExcitationSettings,
    normalised: float,
    *,
    stopped: bool,
    evaluations: int,
    variables: int,
) -> tuple[str, ...]:
    """
    Say why a design is poor, a sentence each; nothing of a good one.

    Parameters
    ----------
    settings : `largest_condition` of a good design
    normalised : condition number of the observation matrix, its columns of unit norm
    stopped : whether the search was stopped before its end
    evaluations, variables : of the search; a quasi-Newton method that has seen fewer points than
        there are variables has not even looked in every direction

    """
    found = []
    if normalised > settings.largest_condition:
        found.append(
            f'the normalised condition number is {normalised:.3g}, above '
            f'{settings.largest_condition:g}: lengthen excitation.period, raise '
            'excitation.time_limit or loosen the limits'
        )
    if stopped and evaluations < variables:
        found.append(
            f'the search was stopped after {evaluations} evaluations for {variables} variables: '
            'raise excitation.time_limit'
        )
    return tuple(found)
