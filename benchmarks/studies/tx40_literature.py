"""The TX-40's parameters in the literature, and how ours are printed beside them."""

import _benchmarks  # noqa: F401
from closest_to_cad import closest
from common import published
import numpy as np
from tx40_changes import print_changes

from robotid_ros.core.pipeline.identification import Identification

# Essential parameters, the residual that they may cost, and the largest deviation of a drive.
ESSENTIAL, GROWTH, NEAR = 31, 1.1, 0.10
# What table II calls a parameter of the motor that turns both wrist joints.
TABLE_NAMES = {'Ia56': 'Ia6'}
# Share of the base parameters of table II that must lie within so many σ of ours.
AGREE, SIGMAS = 0.9, 2.0
# Figures in the literature, joints 1 to 6; 5 and 6 hold the share of the motor that turns both.
KNOWN = {
    'Fv': (8.05, 5.53, 1.97, 1.11, 1.86, 0.65),
    'Fc': (7.14, 8.26, 6.34, 2.48, 3.03, 0.28),
    'Ia': (0.36, 0.36, 0.099, 0.031, 0.047, 0.0105),
}


def drive_parameters(shipped: Identification, plain: Identification) -> list[str]:
    """Print friction and rotor inertia beside the literature; return what deviates."""
    print(
        '  friction and rotor inertia from the whole motion: as configured, σ with what the model '
        'leaves out |\n  as published, with every row beside standstill | literature, table II'
    )
    return [
        text
        for symbol, values in KNOWN.items()
        for joint, known in enumerate(values, start=1)
        for text in drive_parameter(symbol, joint, known, shipped, plain)
    ]


def drive_parameter(
    symbol: str, joint: int, known: float, shipped: Identification, plain: Identification
) -> list[str]:
    """Print one parameter; return in which way it deviates from `known`."""
    short, name = [], f'{symbol}{joint}'
    other = {row['name']: float(row['base']) for row in published('tx40')}
    print(f'    {name}', end='')
    if name not in shipped.estimate.names:
        base = shipped.base.names[holder(shipped, name)]
        print(f' is not identifiable alone, {known} in the literature: {base}', end='')
        for value, sigma in (summed(found, base) for found in (shipped, plain)):
            print(f' {value:.4f} ± {sigma:.4f} |', end='')
        print(f' in table II {other[base.rstrip("R")]}')
        return []
    # The literature's Coulomb friction of the motor that turns both is a figure apart.
    shared = [f'{symbol}56'] * (joint > 4 and symbol != 'Fc')
    # Table II counts that motor into Fv6, and calls its inertia Ia6.
    second = other[name] + (joint == 5) * sum(other[TABLE_NAMES.get(n, n)] for n in shared)
    for way, found in (('as configured', shipped), ('as published', plain)):
        value, sigma = summed(found, name, *shared)
        print(f' {value:8.4f} ± {sigma:6.4f} {100 * (value / known - 1.0):+6.1f} % |', end='')
        off = deviation(value, known, second)
        if abs(off) > NEAR:
            short.append(f'tx40, {way}: {name} is {100 * off:+.0f} % off')
    disagree = ', which disagree: between them is right' * (abs(second / known - 1.0) > NEAR)
    print(f' {known:8.4f} {second:8.4f}{disagree}')
    return short


def deviation(value: float, known: float, second: float) -> float:
    """Return how far a value is from the literature, or from what its figures span, relative."""
    if abs(second / known - 1.0) <= NEAR:
        second = known
    low, high = sorted((known, second))
    return (value - min(max(value, low), high)) / known


def holder(found: Identification, name: str) -> int:
    """Return the row of the base parameter that holds a standard one."""
    return int(np.flatnonzero(found.base.matrix[:, found.robot.column(name)])[0])


def summed(found: Identification, *names: str) -> tuple[float, float]:
    """Return the sum of base parameters and its σ."""
    share = np.isin(found.estimate.names, names)
    return float(share @ found.estimate.value), float(
        np.sqrt(share @ found.estimate.covariance @ share)
    )


def essential_parameters(found: Identification) -> list[str]:
    """Print how many parameters are essential and what they cost."""
    assert found.essential is not None
    count = len(found.essential.indices)
    growth = found.essential.estimate.total_residual / found.estimate.total_residual
    print(f'  essential: {count} (published {ESSENTIAL}), ', end='')
    print(f'residual × {growth:.3f} (at most {GROWTH})')
    good = abs(count - ESSENTIAL) <= 5 and growth <= GROWTH
    return [] if good else [f'{count} essential parameters, residual × {growth:.3f}']


def tables(shipped: Identification, plain: Identification) -> list[str]:
    """
    Print tables II and III of Gautier and Venture beside ours; return what disagrees.

    Their column "base" holds base parameters under the name of the first standard one: those that
    are regrouped stay at their prior. Fv6 and Ia6 hold what the motor of both wrist joints takes.
    """
    robot, standard = shipped.robot, shipped.standard
    ours = [*closest(shipped, robot), standard.value]
    print(
        '  table II: published prior, essential | ours: prior, closest, essential, consistent | '
        'base parameters: published, ours as configured and as published ± σ, deviation/σ'
    )
    apart: list[list[float]] = []
    for row in published('tx40'):
        name = row['name']
        mine = [x[robot.column(name)] for x in (robot.prior, *ours)]
        theirs = [float(row[key]) for key in ('prior', 'essential')]
        cells = [' '.join(f'{value:8.4f}' for value in side) for side in (theirs, mine)]
        print(f'    {name:5s} {cells[0]} | {cells[1]}', end='')
        held = next((n for n in shipped.base.names if n.rstrip('R') == name), '')
        if held:
            known = float(row['base'])
            print(f' | {known:8.4f}', end='')
            each = [summed(f, held, *_of_both_joints(name)) for f in (shipped, plain)]
            apart.append([(value - known) / sigma for value, sigma in each])
            for (value, sigma), off in zip(each, apart[-1], strict=True):
                print(f' {value:8.4f} ± {sigma:.4f} {off:+.1f}', end='')
        print()
    return print_changes(shipped, plain) + agreement(np.array(apart))


def _of_both_joints(name: str) -> list[str]:
    return [f'{name[:2]}56'] if name in ('Fv6', 'Ia6') else []


def agreement(apart: np.ndarray) -> list[str]:
    """Print how many base parameters (N, 2) of table II agree with ours, by deviation over σ."""
    short = []
    for way, off in zip(('as configured', 'as published'), apart.T, strict=True):
        within, rms = float(np.mean(np.abs(off) < SIGMAS)), float(np.sqrt(np.mean(off**2)))
        print(
            f'  {len(off)} base parameters of table II, {way}: {100 * within:.0f} % within ',
            end='',
        )
        print(f'{SIGMAS:g} σ (at least {100 * AGREE:.0f}), deviation/σ {rms:.2f} (RMS)')
        if within < AGREE:
            short.append(f'tx40, {way}: {100 * within:.0f} % of table II within {SIGMAS} σ')
    return short
