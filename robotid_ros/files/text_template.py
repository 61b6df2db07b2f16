"""Texts for other programs from templates: XML is escaped, no value may be missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape, StrictUndefined


def text_templates(folder: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the templates of a folder, which may use filters of these names."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(['xml'], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment
