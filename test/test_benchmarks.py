"""What benchmarks take from the package by its text is there."""

from pathlib import Path
import sys

ROOT = Path(__file__).resolve().parents[1]


def test_the_mistakes_that_tests_have_to_see_can_be_made() -> None:
    sys.path.insert(0, str(ROOT / 'benchmarks'))
    try:
        import named_mutants
    finally:
        sys.path.remove(str(ROOT / 'benchmarks'))
    counted = {
        (module, what): (ROOT / f'robotid_ros/core/{module}.py').read_text().count(old)
        for module, entries in named_mutants.NAMED.items()
        for what, old, _ in entries
    }
    assert {name: count for name, count in counted.items() if count != 1} == {}
