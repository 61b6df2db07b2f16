"""The SCARA of the benchmarks, written out by hand and integrated by SciPy: it is found again."""

from pathlib import Path
import sys

import numpy as np
import pytest

from robotid_ros.core.replay.didim import didim

BENCHMARKS = str(Path(__file__).resolve().parents[3] / 'benchmarks' / 'studies')
SECONDS, SEED, DECIMATION = 16.0, 3, 4


@pytest.fixture(scope='module')
def study():
    """Run the quick motion: what tells of the study, its data, and their replay."""
    sys.path.insert(0, BENCHMARKS)
    try:
        import scara
        import scara_plant
        import scara_tables
    finally:
        sys.path.remove(BENCHMARKS)
    data = scara_plant.experiment(SECONDS, SEED, scara_plant.QUICK)
    case = scara.problem(data, DECIMATION)
    estimates = {
        'didim': didim(case, case.initial_parameters('regular')).estimate,
        'idim': scara.idim(case, data, 20.0),
    }
    return scara_tables, estimates


@pytest.mark.parametrize('method', ['didim', 'idim'])
def test_the_parameters_of_an_independent_plant_are_found(study, method):
    """At 8 % of noise: inertias and friction that matter within 5 %, as the paper has them."""
    tables, estimates = study
    found = estimates[method]
    error = found.value - tables.NOMINAL / tables.PER_PAPER
    assert np.all(np.abs(error) < 4.0 * found.sigma)
    assert np.all(np.abs(tables.deviation(found)[tables.MATTER]) < 0.05)
    assert np.all(np.abs(tables.deviation(found)[[0, 3, 4]]) < 0.01)
