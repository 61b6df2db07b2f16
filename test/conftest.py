"""For all tests: nothing depends on chance or on the speed of the machine."""

from collections.abc import Iterator
import gc
import itertools
import os
import sys

from hypothesis import HealthCheck, settings
from loopback import LOOPBACK
import pytest
import yaml

from robotid_ros.core.findings import Finding, render
from robotid_ros.nodes.demo.node_processes import claim_domain, release_domain

# The same examples in every run, so that a suite that passed passes; one that takes long on a busy
# machine is not wrong. `HYPOTHESIS_PROFILE=explore make unit` looks for new counterexamples.
PATIENT = {'deadline': None, 'suppress_health_check': [HealthCheck.too_slow]}
settings.register_profile('same', derandomize=True, **PATIENT)
settings.register_profile('explore', print_blob=True, **PATIENT)
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'same'))
# Tests read parameters.yaml hundreds of times: in C, as the package does.
yaml.SafeLoader, yaml.SafeDumper = yaml.CSafeLoader, yaml.CSafeDumper
# Whoever else is on the network is not part of any test.
os.environ.update(LOOPBACK)

# Each finding of any test has the values that its text takes: it is rendered at once.
_plain_init = Finding.__init__


def _rendered(self: Finding, *args: object, **kwargs: object) -> None:
    _plain_init(self, *args, **kwargs)  # type: ignore[arg-type]
    render(self)


Finding.__init__ = _rendered  # type: ignore[assignment,method-assign]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Spread the modules that wait for nodes over those that compute.

    Each of the processes that share a machine then has some of both: while one waits, others use
    its processor. The order within a module stays.
    """
    modules = [list(module) for _, module in itertools.groupby(items, lambda item: item.path)]
    groups: dict[bool, list[list[pytest.Item]]] = {True: [], False: []}
    for module in modules:
        groups[any(item.get_closest_marker('ros') for item in module)].append(module)
    places = [
        (k / len(group), module) for group in groups.values() for k, module in enumerate(group)
    ]
    items[:] = itertools.chain(*(module for _, module in sorted(places, key=lambda each: each[0])))


def pytest_collection_finish() -> None:
    """Look for no garbage among modules and tests, which stay."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture
def without_bokeh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as on a robot without Bokeh: no page, which takes most of a command's time."""
    monkeypatch.setitem(sys.modules, 'bokeh', None)


@pytest.fixture
def domain() -> Iterator[int]:
    """Take a ROS domain on this machine that no other test has."""
    domain = claim_domain()
    yield domain
    release_domain(domain)
