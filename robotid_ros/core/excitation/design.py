"""Design: from a robot and its limits to the trajectory that it will run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
import time
from typing import Any

import numpy as np

from ...exceptions import CollisionError, LimitError, TrajectoryError
from ..arrays import Array
from ..findings import Finding, finding, select
from ..model.robot import Robot
from .collision_scene import CollisionScene
from .limits import check_trajectory, motion_limits, QUANTITIES, Usage
from .observation_matrix import ObservationModel
from .problem import CRITERIA, Known, NextProblem, PayloadProblem, Problem
from .settings import ExcitationSettings, payload_settings
from .trajectory import Trajectory, Waypoints

# Sharpness of the criterion and weight of what exceeds a limit, stage after stage. A condition
# number has a kink where singular values meet, as at its optimum: smoothed at first, it takes few
# steps. Small weights let a start in collision find its way out, large ones leave no contact.
STAGES = ((6.0, 100.0), (16.0, 500.0), (64.0, 2000.0))
MEMORY = 40  # pairs of steps and gradients for the Hessian of about 100 variables
DRAWN_POINTS = 10  # random points of which the best begins a start: each costs an evaluation


@dataclass(frozen=True)
class Progress:
    """State of a running design; `criterion` is the best feasible one so far, or None."""

    elapsed: float
    evaluations: int
    criterion: float | None
    phase: str
    fraction: float = 0.0


# Called as the design goes on; what is true stops it, and the best so far is kept.
ProgressCallback = Callable[[Progress], bool | None]


class SearchStopped(Exception):  # noqa: N818  (the best so far is a result, not an error)
    """The time limit is over, or the callback asked to stop."""


class Search:
    """The search for a motion until `end` on the clock of `time.monotonic`: the best, and how."""

    def __init__(
        self,
        problem: Problem,
        progress: ProgressCallback | None,
        end: float,
        given: Sequence[Array] = (),
    ) -> None:
        self.problem, self.progress, self._given = problem, progress, given
        self.best: Array | None = None
        self.objective, self.stopped, self.evaluations = np.inf, False, 0
        self._latest: Array | None = None
        self._begin, self._end = time.monotonic(), end
        self._phase, self._iterations = 'starting', 0

    def run(self) -> tuple[Trajectory, Usage]:
        """Search as the settings say; return the best motion, and how it uses the limits."""
        settings = self.problem.settings
        seeds = np.random.SeedSequence(settings.seed).spawn(settings.starts)
        try:
            self.problem.sharpness, self.problem.weight = STAGES[0]
            for number, seed in enumerate(seeds):
                self._phase = f'start {number + 1} of {settings.starts}'
                now = time.monotonic()
                # A start takes as long as each of the other stages, for which time must be left.
                if number and now + len(STAGES) * (now - self._begin) / number > self._end:
                    self.stopped = True
                    break
                rng = np.random.default_rng(seed)
                drawn = (self.problem.random_point(rng) for _ in range(DRAWN_POINTS))
                points = [*self._given, *drawn]
                self.keep_if_best(points[0])
                x = self._descend(min(points, key=lambda point: self._evaluate(point)[0]))
                if self.keep_if_best(x) or not number:
                    leader = x
            # Who leads after the first stage nearly always wins: no other start is refined.
            self._phase = 'refining the best'
            for self.problem.sharpness, self.problem.weight in STAGES[1:]:
                leader = self._descend(leader)
                self.keep_if_best(leader)
        except (SearchStopped, KeyboardInterrupt):
            self.stopped = True
            if self._latest is not None:
                self.keep_if_best(self._latest)
            if self.best is None:
                self.keep_if_best(self.problem.random_point(np.random.default_rng(seeds[0])))
        return self._best_trajectory()

    def _descend(self, x: Array) -> Array:
        """Minimise by L-BFGS for a stage; return where it ends."""
        from scipy.optimize import minimize

        steps = max(1, self.problem.settings.iterations // len(STAGES))
        options = {'maxiter': steps, 'maxfun': 2 * steps, 'maxcor': MEMORY, 'ftol': 1e-9}
        how = {'method': 'L-BFGS-B', 'callback': self._on_iteration, 'options': options}
        return minimize(self._evaluate, x, jac=True, **how).x

    def keep_if_best(self, x: Array) -> bool:
        """Make a point feasible and keep it if it is the best so far; return whether it is."""
        self._latest = None
        # Shrinking a motion worsens it: what is no better unshrunk is not worth the repair.
        if self.best is not None and self.problem.objective(x) >= self.objective:
            return False
        repaired = self.problem.feasible(x)
        objective = self.problem.objective(repaired)
        if not objective < self.objective:  # nor is it NaN
            return False
        self.best, self.objective = repaired, objective
        return True

    def _on_iteration(self, x: Array) -> None:
        """Keep the solver's point, report progress, and stop when asked to."""
        self._latest = np.array(x)
        self._iterations += 1
        if self.progress:
            best = self.problem.criterion.report(self.objective) if self.best is not None else None
            elapsed, longest = time.monotonic() - self._begin, self._end - self._begin
            settings = self.problem.settings
            budget = (settings.starts + len(STAGES) - 1) * settings.iterations / len(STAGES)
            share = elapsed / longest if longest > 0.0 else 1.0
            done = min(1.0, max(self._iterations / budget, share))
            if self.progress(Progress(elapsed, self.evaluations, best, self._phase, done)):
                raise SearchStopped

    def _evaluate(self, x: Array) -> tuple[float, Array]:
        if time.monotonic() > self._end:
            raise SearchStopped
        self.evaluations += 1
        return self.problem.evaluate(x)

    def _best_trajectory(self) -> tuple[Trajectory, Usage]:
        problem, scene, margins = self.problem, self.problem.scene, self.problem.settings.margins
        if self.best is None or not np.isfinite(self.objective):
            raise TrajectoryError(
                'no feasible trajectory was found: raise excitation.time_limit or loosen the '
                'limits'
            )
        start, coefficients = problem.unpack(self.best)
        if float(np.abs(coefficients / problem.scale).max()) < MIN_COEFFICIENT:
            raise TrajectoryError(NO_ROOM)
        # Shrunk until it passes the last check, which sees all times, with half of the margins.
        for power in SHRINKINGS:
            found = problem.trajectory(start, SHRINK_FACTOR**power * coefficients)
            try:
                usage = check_trajectory(problem.robot, found, problem.settings, scene=scene)
            except (LimitError, CollisionError):
                continue
            shares = {name: max(getattr(usage, name)) for name in QUANTITIES}
            if all(x <= 1.0 - 0.5 * getattr(margins, name) for name, x in shares.items()):
                return found, usage
        raise TrajectoryError(NO_ROOM)


MIN_SINGULAR_RATIO = 1e-8  # below, rounding hides the smallest from the search through WᵀW
FIGURE_SAMPLES = 1000  # of a period, for figures that compare whatever the order
MIN_COEFFICIENT = 1e-3  # of what each alone may reach: a smaller motion is none
# Shrinking by it costs a thousandth of the motion; so many times at once, a seventh is left.
SHRINK_FACTOR, SHRINKINGS = 0.999, (0, *(2**k for k in range(11)), 1945)
# Shares of the time limit at which the search ends, by what validates: designing another motion
# takes about half as long. The last check of the motions needs the rest.
SEARCH_SHARE, VALIDATION_SHARE = {'seed': 0.6, 'none': 0.9}, 0.85
NO_ROOM = (
    'the limits leave no room for any motion from the start: move excitation.start away from its '
    'limits, or loosen effort, workspace or margins'
)


@dataclass(frozen=True)
class Design:
    """A designed trajectory with the evidence for it."""

    trajectory: Trajectory  # what identifies
    validation: Trajectory | None  # what validates
    criterion: str  # name of what was minimised
    value: float
    columns: tuple[str, ...]  # that the figures are about
    condition_numbers: dict[str, float]  # 'raw', 'normalised' and 'frobenius'
    usage: Usage  # shares of the limits that the trajectory uses
    limits: dict[str, tuple[float, ...]]  # by quantity
    seed: int
    evaluations: int
    notes: tuple[Finding, ...] = ()  # what a user should know
    unchecked: tuple[Finding, ...] = ()  # what is not checked in the workspace
    shortcomings: tuple[Finding, ...] = ()  # why the design is poor; such a motion is not run
    # [s]; not kept in files, which the seed alone decides.
    elapsed: float = field(default=0.0, compare=False)

    def __repr__(self) -> str:
        t = self.trajectory
        return (
            f'<{t.family} of {t.period:g} s for {", ".join(t.joints)}: {self.criterion} '
            f'{self.value:.4g}, {self.verdict}>'
        )

    @property
    def verdict(self) -> str:
        """'good', or 'poor' where there are shortcomings."""
        return 'poor' if self.shortcomings else 'good'

    def to_dict(self) -> dict[str, Any]:
        """Describe the design by plain values; `from_dict` gives exactly the same one back."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        return values | {
            'trajectory': self.trajectory.to_dict(),
            'validation': self.validation and self.validation.to_dict(),
            'usage': asdict(self.usage),
            'verdict': self.verdict,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> 'Design':
        """Build a design from what `to_dict` gave; a TrajectoryError where that cannot be read."""
        try:
            known = {f.name: _frozen(values[f.name]) for f in fields(cls) if f.name in values}
            known['trajectory'] = Trajectory.from_dict(values['trajectory'])
            if known['validation'] is not None:
                known['validation'] = Trajectory.from_dict(values['validation'])
            return cls(**{**known, 'usage': Usage(**known['usage'])})
        except (KeyError, TypeError, AttributeError) as error:
            raise TrajectoryError(
                f'a trajectory file cannot be read ({type(error).__name__}: {error}): design again'
            ) from error


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def design(
    robot: Robot,
    settings: ExcitationSettings,
    progress: ProgressCallback | None = None,
    known: Known | None = None,
) -> Design:
    """
    Design an excitation trajectory, and the one that validates.

    With what is `known` of the robot, it excites what is not. The best feasible trajectory is kept
    at all times: the time limit, a callback that returns something true, and Ctrl-C end the search
    with it. The time limit is that of everything here; only building the first feasible motion and
    checking the last one may take longer. Raises ConfigurationError for settings that do not fit
    the robot or limits that contradict each other, LimitError and CollisionError for a start
    outside a limit or that touches something, TrajectoryError where nothing feasible was found.
    """
    begin, settings = time.monotonic(), payload_settings(settings)
    kind = settings.validation.kind
    motion_limits(robot, settings)  # refused before bodies are placed by them
    scene = CollisionScene(robot, settings.workspace)
    if known is not None:
        problem: Problem = NextProblem(robot, settings, scene, known)
    else:
        problem = (PayloadProblem if settings.payload.mass else Problem)(robot, settings, scene)
    if (start := problem.start) is not None:
        still = np.zeros((2, robot.n))
        ends = np.array([0.0, 1.0 / settings.rate])
        rest = Waypoints(robot.joints, ends, still + start, still, still)
        within = replace(problem.robot, limits=problem.design_limits)
        check_trajectory(within, rest, settings, scene=scene)
    search = Search(problem, progress, begin + SEARCH_SHARE[kind] * settings.time_limit)
    result = _result(search, *search.run())
    if kind != 'none':
        end = begin + VALIDATION_SHARE * settings.time_limit
        result = _validated(result, problem, progress, end)
    return replace(result, elapsed=time.monotonic() - begin)


# Another motion is worth its risk where it is expected to leave so much less of the error that the
# same one again would leave; it is sought from the present one and from a slow one on its path.
WORTH, SLOW = 0.9, 0.2


def next_motion(
    robot: Robot, settings: ExcitationSettings, known: Known, present: Trajectory, end: float
) -> Trajectory | None:
    """
    Return a motion for what is unknown, as long as the present one and from where that ends.

    None where the present one tells nearly as much again: noise alone is what limits. The search
    ends at `end` on the clock of `time.monotonic`. Raises errors as `design` does.
    """
    same = {name: getattr(present, name) for name in ('family', 'period', 'order')}
    settings = replace(settings, **same, periods=1, start=tuple(present.start), starts=1)
    problem = NextProblem(robot, settings, CollisionScene(robot, settings.workspace), known)
    given = [problem.pack(present.start, k * present.coefficients) for k in (1.0, SLOW)]
    found, _ = Search(problem, None, end, given).run()
    again, after = map(
        problem.objective, (given[0], problem.pack(found.start, found.coefficients))
    )
    return found if after - again < np.log(WORTH) else None


def _result(search: Search, trajectory: Trajectory, usage: Usage) -> Design:
    """Return a design with its figures, without the trajectory that validates."""
    problem = search.problem
    # Condition numbers are those with the robot's own friction.
    times = (np.arange(FIGURE_SAMPLES) + 0.5) / FIGURE_SAMPLES * trajectory.period
    flat = problem.rows(ObservationModel(problem.robot).matrix(trajectory.sample(times)))
    s = flat.T @ flat
    names = {'raw': 'condition', 'normalised': 'normalised_condition', 'frobenius': 'frobenius'}
    numbers = {k: float(CRITERIA[v].report(CRITERIA[v].objective(s)[0])) for k, v in names.items()}
    singular = np.linalg.svd(np.linalg.qr(flat, mode='r'), compute_uv=False)
    # Of a motion so small, rounding hides what it excites.
    if singular[-1] < MIN_SINGULAR_RATIO * singular[0]:
        raise TrajectoryError(
            f'within the limits, no motion of {problem.settings.period:g} s distinguishes the '
            f'{len(singular)} columns: lengthen excitation.period or loosen the limits'
        )
    notes, shortcomings = list[Finding](), list[Finding]()
    if isinstance(problem, NextProblem):
        after = problem.criterion.report(problem.criterion.objective(s)[0])
        notes.append(finding('known_before', before=problem.before, after=after))
    most = problem.settings.largest_condition
    if (normalised := numbers['normalised']) > most:
        shortcomings.append(finding('badly_conditioned', condition=normalised, most=most))
    if search.stopped:
        notes.append(finding('search_stopped'))
        # A quasi-Newton method with fewer points than variables has not looked everywhere.
        if search.evaluations < problem.scale.size:
            counts = {'evaluations': search.evaluations, 'variables': problem.scale.size}
            shortcomings.append(finding('search_too_short', **counts))
    limits = {k: getattr(problem.limits, k) for k in ('lower', 'upper', *QUANTITIES[1:])}
    return Design(
        trajectory=trajectory,
        validation=None,
        criterion=problem.criterion.name,
        value=problem.criterion.report(search.objective),
        columns=tuple(problem.robot.parameters[k].name for k in problem.columns),
        condition_numbers=numbers,
        usage=usage,
        limits={name: tuple(values.tolist()) for name, values in limits.items()},
        seed=problem.settings.seed,
        evaluations=search.evaluations,
        notes=(*notes, *select(problem.robot.warnings, 'limits_in_degrees'), *problem.scene.notes),
        unchecked=tuple(problem.scene.unchecked.values()),
        shortcomings=tuple(shortcomings),
    )


def _validated(
    result: Design, problem: Problem, progress: ProgressCallback | None, end: float
) -> Design:
    """Add the trajectory that validates: another seed from the same start."""
    settings = problem.settings
    other = replace(
        settings,
        seed=settings.seed + 1,
        starts=1,
        iterations=max(1, settings.iterations // 3),
        period=settings.validation.period or settings.period,
        start=tuple(result.trajectory.start.tolist()),
    )
    try:
        search = Search(Problem(problem.robot, other, problem.scene), progress, end)
        trajectory, _ = search.run()
    except (TrajectoryError, LimitError, CollisionError) as error:
        found = finding('nothing_validates', reason=str(error))
        return replace(result, shortcomings=(*result.shortcomings, found))
    notes = (*result.notes, *((finding('search_stopped'),) if search.stopped else ()))
    return replace(result, validation=trajectory, notes=tuple(dict.fromkeys(notes)))
