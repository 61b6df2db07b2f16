"""Essential parameters: the base parameters that the data determine well."""

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from ..regression.covariance import inflation
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import System

Step = tuple[str, float, float, float]
SIGNIFICANT = 0.05  # level of the F-test that keeps a parameter


@dataclasses.dataclass(frozen=True)
class Essential:
    """The parameters that the data determine well, and how the others were dropped."""

    estimate: Estimate  # of the essential parameters alone
    indices: npt.NDArray[np.intp]  # (e,) their places among the base parameters
    # Per step, (dropped parameter, its %σ, weighted residual after over that of all base
    # parameters, p-value of the F-test).
    path: tuple[Step, ...]


def find_essential(
    system: System, start: Estimate, bound: float = 10.0, method: str = 'wls'
) -> Essential:
    """
    Drop the parameter with the largest %σ, again and again (Pham and Gautier 1991; STD III).

    It ends when every %σ is below the bound. A parameter stays when without it, and all dropped
    before, the residual grows significantly: an F-test against `start`, the estimate of all base
    parameters. Residuals are correlated in time, so that rows count only as far as they are
    independent, see `effective_sample_size`.
    """
    kept, path = backward_elimination(start, bound)
    estimate = start
    if len(kept) < len(start.value):
        fewer = system.select(kept)
        estimate = restrict(start, kept, fewer) if method == 'ml' else fit(fewer, method)
    return Essential(estimate, np.array(kept, dtype=np.intp), tuple(path))


def restrict(start: Estimate, kept: list[int], system: System) -> Estimate:
    """Return the estimate with other parameters zero, from its covariance, of output errors."""
    dropped = np.setdiff1d(np.arange(len(start.value)), kept)
    C = start.covariance
    gain = np.linalg.solve(C[np.ix_(dropped, dropped)], C[dropped]).T
    value = (start.value - gain @ start.value[dropped])[kept]
    covariance = (C - gain @ C[dropped])[np.ix_(kept, kept)]
    return dataclasses.replace(
        start, names=system.names, units=system.units, value=value, covariance=covariance,
        classical=covariance, residual=system.relative_residual(value),
    )  # fmt: skip


def backward_elimination(
    start: Estimate, bound: float, significance: float = SIGNIFICANT
) -> tuple[list[int], list[Step]]:
    """
    Choose essential parameters from an estimate alone.

    To drop parameter i is to move χ by −C_i χ_i/C_ii, C being the classical covariance: what a
    least squares fit without column i gives, weights left as they are. The residual's square grows
    by σ² χ_i²/C_ii. Returns their places, and per step what `Essential.path` holds.
    """
    independent, total = effective_sample_size(start), float(start.rows.sum())
    freedom, rows = (max(count - len(start.value), 1.0) for count in (independent, total))
    kept, held, path = list(range(len(start.value))), set[int](), list[Step]()
    value, classical, covariance, growth = start.value, start.classical, start.covariance, 0.0
    while len(kept) > 1:
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        percent = 100.0 * sigma / np.maximum(np.abs(value), 1e-300)
        free = [k for k, name in enumerate(kept) if name not in held and percent[k] > bound]
        if not free:
            break
        place = max(free, key=percent.__getitem__)
        own = classical[place, place]
        if own <= 0.0:  # rounding has taken it: what goes with it is unknown
            held.add(kept[place])
            continue
        more, steps = growth + value[place] ** 2 / own, len(path) + 1
        p_value = float(fdtrc(steps, freedom, more * independent / (total * steps)))
        if p_value < significance:
            held.add(kept[place])
            continue
        ended = float(np.sqrt(1.0 + more / rows))
        path.append((start.names[kept[place]], float(percent[place]), ended, p_value))
        projection = np.eye(len(value))
        projection[:, place] -= classical[:, place] / own
        P = np.delete(projection, place, axis=0)
        value, classical, covariance = P @ value, P @ classical @ P.T, P @ covariance @ P.T
        growth = more
        del kept[place]
    return kept, path


def effective_sample_size(estimate: Estimate) -> float:
    """
    Return the number of independent rows that hold as much information as the correlated ones.

    What the model leaves out is no noise: it does not make rows fewer.
    """
    ratio = inflation(estimate.classical, estimate.noise_covariance)
    return float(estimate.rows.sum() / max(ratio, 1.0))
