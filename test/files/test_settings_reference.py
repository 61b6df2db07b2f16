"""The reference of all keys is true: it is read as the defaults, and no key is missing."""

import dataclasses
from pathlib import Path
import re
import typing

from robotid_ros.files.configuration import Configuration, from_mapping
from robotid_ros.files.configuration_text import settings_reference
from robotid_ros.files.yaml import parse_yaml

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'configuration.md'


def every_key(cls):
    for field in dataclasses.fields(cls):
        yield field.name, field.metadata
        kind = typing.get_type_hints(cls)[field.name]
        inside = [kind, *typing.get_args(kind)]
        yield from (
            key for each in inside if dataclasses.is_dataclass(each) for key in every_key(each)
        )


def test_it_reads_as_the_defaults():
    values = parse_yaml(settings_reference(), 'reference')['/**']['ros__parameters']
    assert from_mapping(values) == Configuration()


def test_every_key_stands_below_its_meaning_unit_and_bounds():
    lines = [line.strip().removeprefix('#').strip() for line in settings_reference().splitlines()]
    text = ' '.join(lines)
    for key, meta in every_key(Configuration):
        assert any(line.startswith(f'{key}:') for line in lines), key
        assert ' '.join(meta['description'].split()) in text, key
        for fact in (meta['unit'], *meta['choices']):
            assert fact in text, key


def test_bounds_stand_beside_the_unit():
    text = settings_reference()
    assert re.search(
        r'rate of hardware and physics \[number; Hz; 10 to 4000\]\n +update_rate: 1000\.0', text
    )


def test_the_documented_reference_is_the_present_one():
    """To mend it: `robotid init --keys`, between the fences of the page."""
    (block,) = re.findall(r'```yaml\n(# Every key.*?)```', PAGE.read_text(), re.DOTALL)
    assert block == settings_reference()
