"""The search among candidates: the simplest that predicts unseen blocks as well as the best."""

import dataclasses
from itertools import combinations

import numpy as np

from ..arrays import Array
from ..identification_settings import IdentificationSettings
from ..model.robot import Robot
from ..signals.uniform_recording import UniformRecording
from .candidate_grams import judging_band, observe_candidates
from .candidates import (
    Candidate,
    COMMON,
    describe_terms,
    ESTIMATORS,
    FRICTION,
    LOAD,
    OFFSET,
    PLAIN,
    SPRING,
    Terms,
)
from .cross_validation import cross_validate, Score, simplest
from .selection import Comparison, Selection
from .warm_up import Change, jumps, MOST, possible_change, saved_by_change, SUSPICIOUS

# Share of a joint's squared error that a spring has to save, as in `residual_reasons`, with a gain
# for all joints together: over a short way its column is much like those of gravity, and on other
# motion a wrong one is far off. On 23 real logs, those that save less change other motion by 2 %.
SPRING_GAIN = 0.35
# Share of a joint's torque that a spring has to take away: a joint turns round at the ends of its
# way, and what rows there have wrong looks like springs of 0.4 % in logs of five and ten seconds.
SPRING_TORQUE = 0.01


class CandidateSearch:
    """The comparisons, one after the other; each starts from the choice of the one before."""

    def __init__(self, even: UniformRecording, robot: Robot, settings: IdentificationSettings):
        self._band, self._robot, self._settings = judging_band(even), robot, settings
        self._comparisons: dict[str, Comparison] = {}
        self._candidate: Candidate
        self._chosen: Score
        self._grams = observe_candidates(even, robot, settings)

    @property
    def is_telling(self) -> bool:
        """Whether there are rows enough to tell candidates apart."""
        return bool(self._grams.training)

    def run(self, springs: bool = True, warm_up: bool = False) -> Selection:
        """Make all choices; the flags tell whether joints may have springs, and warm up."""
        n = self._robot.n
        plain = Candidate(self._band, self._band, 'all', 'ols', (PLAIN,) * n)
        grams = self._grams
        plain_score = cross_validate(plain, grams.columns, grams.plain, grams.judging)
        self._choose_signals()
        self._choose_friction()
        while springs and self._add_spring():
            self._choose_friction()  # which had stood in for the spring
        self._choose_others(warm_up)
        if (
            plain_score.is_clearly_less(self._chosen)
            and self._is_possible(plain)
            and plain_score.lost_joints <= self._chosen.lost_joints
        ):
            self._candidate, self._chosen = plain, plain_score
        return Selection(
            self._candidate,
            self._chosen.residual,
            plain_score.residual,
            self._chosen.joint_residuals,
            plain_score.joint_residuals,
            tuple(self._comparisons.values()),
        )

    @property
    def _free_joints(self) -> list[int]:
        return [j for j, free in enumerate(self._robot.open_friction) if free]

    def _score(self, candidate: Candidate) -> Score:
        grams = self._grams
        training = grams.training[candidate.signals]
        return cross_validate(candidate, grams.columns, training, grams.judging)

    def _is_possible(self, candidate: Candidate) -> bool:
        """Tell whether a candidate leaves all that is configured as it is."""
        return (
            candidate.signals in self._grams.training
            and candidate.estimator in self._estimators
            and candidate.friction == self._with_fixed(candidate.friction[0])
        )

    @property
    def _estimators(self) -> tuple[str, ...]:
        method = self._settings.method
        return ESTIMATORS if method == 'auto' else (method,)

    def _choose_signals(self) -> None:
        """Choose cut-off, rows and estimator, with friction of one kind for all open joints."""
        friction = [self._with_fixed(terms) for terms in COMMON]
        candidates = [
            Candidate(*signals, estimator, terms)
            for signals in self._grams.training
            for estimator in self._estimators
            for terms in dict.fromkeys(friction)
        ]
        self._take('signals and estimator', {c: self._score(c) for c in candidates})

    def _with_fixed(self, terms: Terms) -> tuple[Terms, ...]:
        each = zip(self._robot.open_friction, self._robot.friction, strict=True)
        return tuple(terms if free else fixed for free, fixed in each)

    def _choose_friction(self) -> None:
        """Choose the friction of each joint, and again: one joint's changes what others show."""
        for _ in range(2):
            if not any([self._choose_terms(joint) for joint in self._free_joints]):
                break

    def _choose_terms(self, joint: int) -> bool:
        """Choose the friction terms of one joint; tell whether they changed."""
        before = self._candidate
        spring = (SPRING,) if SPRING in before.friction[joint] else ()
        options = [before.with_terms(joint, (*terms, *spring)) for terms in FRICTION]
        self._take(self._robot.joints[joint], {c: self._score(c) for c in options}, joint)
        return self._candidate != before

    def _choose_others(self, warm_up: bool) -> None:
        """Add ripple, friction that changes, and that grows with the load, where it predicts."""
        if not self._free_joints:
            return
        columns, values = self._grams.columns, self._grams.fit(self._candidate)
        ripples = self._grams.ripples(self._candidate, values)
        changes = self._changes(values) if warm_up else {}
        shapes = [terms for change in changes.values() for terms in change.terms]
        found = [*(ripples[j] for j in self._free_joints), *shapes]
        terms = dict.fromkeys(term for own in found for term in own)
        columns = dataclasses.replace(
            columns, terms=(*columns.terms, *terms), load=values[0, : columns.base.rank]
        )
        self._grams = self._grams.with_columns(columns, self._candidate)
        self._chosen = self._score(self._candidate)
        for joint in self._free_joints:
            for term in ripples[joint]:
                saved, other, score = self._with_terms(joint, (term,))
                if not saved:
                    break
                self._add(joint, term.name, other, score)
        for joint, change in changes.items():
            self._add_change(joint, change)
        for joint in self._free_joints:
            saved, other, score = self._with_terms(joint, (LOAD,))
            if saved:
                self._add(joint, 'load', other, score)

    def _changes(self, values: Array) -> dict[int, Change]:
        """
        Return how friction may change, of joints whose blocks show that it does.

        What falls at once is none that warms up: the stationarity of what is chosen tells of it.
        """
        candidate, columns, found = self._candidate, self._grams.columns, {}
        for j in self._free_joints:
            change = possible_change(self._grams.even.recording, self._grams.edges, j)
            terms = candidate.friction[j]
            if change is None or set(terms) <= {OFFSET}:
                continue
            products, _ = self._grams.training[candidate.signals].of(j, terms)
            places = columns.places(terms)
            own = [columns.places((term,))[-1] for term in terms if term != OFFSET]
            saved, along, at_once = (
                max(saved_by_change(products, places, k, values[j], by, change.falls) for k in own)
                for by in (change.of_blocks[:1], change.of_blocks, jumps(len(products)))
            )
            if saved > SUSPICIOUS and not (change.falls and at_once > max(MOST, along)):
                found[j] = change
        return found

    def _add_change(self, joint: int, change: Change) -> None:
        """Add what changes of a joint's friction, one term or both, by the best of the shapes."""
        before = self._candidate.friction[joint]
        for count in (1, 2):
            options = [
                self._with_terms(joint, terms, before)
                for shape in change.terms
                for terms in combinations(shape, count)
            ]
            saved, other, score = max(options, key=lambda option: option[0])
            if not saved:
                break
            self._add(joint, change.what, other, score)

    def _add_spring(self) -> bool:
        """
        Add a spring where that predicts clearly better; tell whether one was added.

        The one that saves most goes first: without it, others seem to explain a part of it. Joints
        that turn endlessly have none.
        """
        limits = self._robot.limits
        limited = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        joints = [j for j in self._free_joints if SPRING not in self._candidate.friction[j]]
        options = {j: self._with_terms(j, (SPRING,)) for j in joints if limited[j]}
        residuals = self._chosen.joint_residuals
        clear = [
            j
            for j, (saved, _, score) in options.items()
            if saved > SPRING_GAIN
            and saved * residuals[j] ** 2 > SPRING_TORQUE**2
            and score.gain_over(self._chosen)[0] > 0.0
        ]
        if clear:
            best = max(clear, key=lambda joint: options[joint][0])
            self._add(best, 'spring', *options[best][1:])
        return bool(clear)

    def _with_terms(
        self, joint: int, terms: Terms, before: Terms | None = None
    ) -> tuple[float, Candidate, Score]:
        """Try terms more than it has or had; return first which share of its error that saves."""
        own = self._candidate.friction[joint] if before is None else before
        other = self._candidate.with_terms(joint, (*own, *terms))
        score = self._score(other)
        if not (score.is_physical and score.is_clearly_less(self._chosen, joint)):
            return 0.0, other, score
        saved = score.gain_over(self._chosen, joint)[0] / self._chosen.mean_error(joint)
        return saved, other, score

    def _add(self, joint: int, what: str, other: Candidate, score: Score) -> None:
        scores = {self._candidate: self._chosen, other: score}
        self._record(f'{self._robot.joints[joint]}, {what}', other, joint, scores)
        self._candidate, self._chosen = other, score

    def _take(
        self, subject: str, scores: dict[Candidate, Score], joint: int | None = None
    ) -> None:
        """Take the simplest candidate within one standard error of the best."""
        chosen = simplest(scores, joint)
        self._candidate, self._chosen = chosen, scores[chosen]
        self._record(subject, chosen, joint, scores)

    def _record(
        self, subject: str, chosen: Candidate, joint: int | None, scores: dict[Candidate, Score]
    ) -> None:
        def name(candidate: Candidate) -> str:
            if joint is not None:
                return describe_terms(candidate.friction[joint])
            return f'{candidate.describe()}, {describe_terms(candidate.friction[0])}'

        residuals = {
            name(candidate): score.residual
            if joint is None
            else float(score.joint_residuals[joint])
            for candidate, score in scores.items()
        }
        # The last comparison of a joint is the one beside the others' final choice.
        self._comparisons.pop(subject, None)
        self._comparisons[subject] = Comparison(subject, name(chosen), residuals)
