"""
How far standard parameters of the TX-40 are from their prior, beside Gautier and Venture.

Their change falls from 0.159 with base parameters to 0.042 with essential ones. The rows here
take the way from their count to ours, one difference a row.
"""

from dataclasses import replace

import _benchmarks  # noqa: F401
from closest_to_cad import closest, positive_definite_links, TOLERANCES
from common import published
import numpy as np

from robotid_ros.core.model import Robot
from robotid_ros.core.pipeline.identification import Identification

# Largest difference from the table's digits of what links and rotors change, counted as there.
LIKE_TABLE = 0.2

Row = tuple[str, np.ndarray, np.ndarray, np.ndarray, str]


def print_changes(shipped: Identification, plain: Identification) -> list[str]:
    """
    Print changes of the prior and table III, ours by what differs; return what disagrees.

    Parameters
    ----------
    shipped : as configured
    plain : as published, with every row beside standstill

    """
    print(
        '  change of the prior with base and with essential parameters, in brackets that of links '
        'and rotors alone; table III,\n  links with a definite inertia at tolerances '
        + ' '.join(f'{t:g}' for t in TOLERANCES)
    )
    print('    published: 0.1591, 0.0416; 2 3 5 6, 6 6 6 6')
    robot, ways = shipped.robot, rows(shipped, plain)
    for way in ways:
        print(f'    {way[0]}: {"; ".join(_cells(robot, way))}\n      {way[-1]}')
    return [
        f'tx40: links and rotors change by {ours:.4f}, {kind}, in table II by {theirs:.4f}'
        for kind, theirs, ours in zip(
            ('base', 'essential'), *(link_changes(robot, way) for way in ways[:2]), strict=True
        )
        if abs(ours / theirs - 1.0) > LIKE_TABLE
    ]


def link_changes(robot: Robot, row: Row) -> list[float]:
    """Return what links and rotors change by base and by essential parameters, relative."""
    _, prior, *choices, _ = row
    links = np.array([not p.name.startswith(('F', 'off')) for p in robot.parameters])
    size = np.linalg.norm(prior)
    return [float(np.linalg.norm((chi - prior)[links]) / size) for chi in choices]


def rows(shipped: Identification, plain: Identification) -> tuple[Row, ...]:
    """Return name, prior, parameters by base and by essential ones, and what differs."""
    robot = shipped.robot
    theirs = with_table(robot, 'prior')
    cad, essential = closest(plain, replace(plain.robot, prior=theirs))
    own, own_essential = closest(shipped, robot)
    return (
        (
            "table II's digits",
            theirs,
            with_table(robot, 'base'),
            with_table(robot, 'essential'),
            "three digits are printed, and nothing of link 1 but ZZ1: the rest is the URDF's",
        ),
        (
            "ours, the table's prior and count",
            theirs,
            regrouped(plain, theirs),
            essential,
            'its column "base" holds whole sums beside the parameters that they consist of, which '
            'counts these twice; friction is that of another day',
        ),
        (
            "ours, the table's prior, eq. 30",
            theirs,
            cad,
            essential,
            'the least change that explains the torques spreads each sum over its parameters: '
            'half as much',
        ),
        (
            "as shipped: the URDF's prior, eq. 30",
            robot.prior,
            own,
            own_essential,
            'no CAD knows rotor inertias, nor the URDF the friction of the motor of both wrist '
            'joints: what drives change is the same in both, and most of it',
        ),
        (
            'as shipped, closest and physically consistent',
            robot.prior,
            own,
            shipped.standard.value,
            'bodies that can exist are further from the prior than sums that none can have',
        ),
    )


def with_table(robot: Robot, column: str) -> np.ndarray:
    """Return the prior (p,) with a column of table II; where that is silent, the URDF's."""
    values = {row['name']: float(row[column]) for row in published('tx40')}
    chi = robot.prior.copy()
    for name, value in values.items():
        chi[robot.column(name)] = value
    # The table's Ia6 and Fv6 hold what the motor of both joints takes.
    chi[robot.column('Ia56')], chi[robot.column('Ia6')] = values['Ia6'], 0.0
    chi[robot.column('Fv6')] -= values['Fv56']
    return chi


def regrouped(found: Identification, prior: np.ndarray) -> np.ndarray:
    """Put base parameters (b,) in the place of their first ones, as the table's column "base"."""
    chi = prior.copy()
    chi[found.base.columns] = found.estimate.value
    return chi


def _cells(robot: Robot, row: Row) -> tuple[str, str]:
    """Return relative changes and numbers of definite links, by base and essential parameters."""
    _, prior, *choices, _ = row
    size = np.linalg.norm(prior)
    return (
        ', '.join(
            f'{np.linalg.norm(chi - prior) / size:.4f} ({of_links:.4f})'
            for chi, of_links in zip(choices, link_changes(robot, row), strict=True)
        ),
        ', '.join(
            ' '.join(
                str(positive_definite_links(chi, robot.first_columns, t).sum()) for t in TOLERANCES
            )
            for chi in choices
        ),
    )
