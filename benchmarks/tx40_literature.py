"""The TX-40's parameters in the literature, and how ours are printed beside them."""

from common import published
import numpy as np

from robotid_ros.core.model import Robot
from robotid_ros.core.parameters.standard import positive_definite_links
from robotid_ros.core.pipeline.results import Identification

# Essential parameters, the residual that they may cost, and the largest deviation of a drive.
ESSENTIAL, GROWTH, NEAR = 31, 1.1, 0.10
# Share of the base parameters of table II that must lie within so many σ of ours.
AGREE, SIGMAS = 0.9, 2.0
# Figures in the literature, joints 1 to 6; 5 and 6 hold the share of the motor that turns both.
KNOWN = {
    'Fv': (8.05, 5.53, 1.97, 1.11, 1.86, 0.65),
    'Fc': (7.14, 8.26, 6.34, 2.48, 3.03, 0.28),
    'Ia': (0.36, 0.36, 0.099, 0.031, 0.047, 0.0105),
}
# Definite links of table III: tolerance, with base parameters, with essential ones.
DEFINITE = ((0.0, 2, 6), (-0.01, 3, 6), (-0.02, 5, 6), (-0.04, 6, 6))


def drive_parameters(found: Identification) -> list[str]:
    """Print friction and rotor inertia beside the literature; return what deviates."""
    short = []
    other = {row['name']: float(row['base']) for row in published('tx40')}
    print('  friction and rotor inertia from the whole motion, ours and literature')
    for symbol, values in KNOWN.items():
        for joint, known in enumerate(values, start=1):
            name = f'{symbol}{joint}'
            if name not in found.estimate.names:
                base = found.base.names[holder(found, name)]
                value, sigma = summed(found, base)
                print(
                    f'    {name}  not identifiable alone, {known} in the literature: {base} is ',
                    end='',
                )
                print(f'{value:.4f} ± {sigma:.4f}, in table II {other[base.rstrip("R")]}')
                continue
            # The literature's Coulomb friction of the motor that turns both is a figure apart.
            shared = joint > 4 and symbol != 'Fc'
            value, sigma = summed(found, name, *[f'{symbol}56'] * shared)
            off = value / known - 1.0
            print(f'    {name} {value:8.4f} ± {sigma:6.4f}  {known:8.4f}  {100 * off:+6.1f} %')
            if abs(off) > NEAR:
                short.append(f'tx40: {name} is {100 * off:+.0f} % off')
    return short


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


def tables(found: Identification) -> list[str]:
    """
    Print tables II and III of Gautier and Venture beside ours; return what disagrees.

    Their column "base" holds base parameters under the name of the first standard one: those that
    are regrouped stay at their prior. Fv6 and Ia6 hold what the motor of both wrist joints takes.
    """
    robot, standard, base = found.robot, found.standard, found.base
    assert standard.cad_essential is not None
    ours = [standard.cad, standard.cad_essential, standard.value]
    print(
        '  table II: published prior, essential | ours: prior, closest, essential, consistent | '
        'base parameters: published, ours ± σ, deviation/σ'
    )
    apart = []
    for row in published('tx40'):
        name = row['name']
        mine = [x[robot.column(name)] for x in (robot.prior, *ours)]
        theirs = [float(row[key]) for key in ('prior', 'essential')]
        cells = [' '.join(f'{value:8.4f}' for value in side) for side in (theirs, mine)]
        print(f'    {name:5s} {cells[0]} | {cells[1]}', end='')
        held = next((n for n in base.names if n.rstrip('R') == name), '')
        if held:
            both = [f'{name[:2]}56'] * (name in ('Fv6', 'Ia6'))
            value, sigma = summed(found, held, *both)
            apart.append((value - float(row['base'])) / sigma)
            print(
                f' | {float(row["base"]):8.4f} {value:8.4f} ± {sigma:.4f} {apart[-1]:+.1f}', end=''
            )
        print()
    within, rms = float(np.mean(np.abs(apart) < SIGMAS)), float(np.sqrt(np.mean(np.square(apart))))
    print(f'  {len(apart)} base parameters of table II: {100 * within:.0f} % within ', end='')
    print(f'{SIGMAS:g} σ (at least {100 * AGREE:.0f}), deviation/σ {rms:.2f} (RMS)')
    table_three(robot, ours)
    return [] if within >= AGREE else [f'tx40: {100 * within:.0f} % of table II within {SIGMAS} σ']


def table_three(robot: Robot, ours: list[np.ndarray]) -> None:
    """Print how far each choice is from the prior, and its links with a definite inertia."""
    size = np.linalg.norm(robot.prior)
    changes = ' '.join(f'{np.linalg.norm(x - robot.prior) / size:.4f}' for x in ours)
    print(f'  change of the prior: published 0.1591, 0.0416 | ours {changes}')
    print('  table III, links with a definite inertia: tolerance, published | ours')
    for tolerance, *theirs in DEFINITE:
        counts = [
            int(positive_definite_links(x, robot.first_columns, tolerance).sum()) for x in ours
        ]
        print(f'    {tolerance:5.2f} ', *theirs, '|', *counts)
