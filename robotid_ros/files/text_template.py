"""Pages, and texts for other programs, from templates: no value may be missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape, StrictUndefined


def text_templates(*folders: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the templates of folders, which may use filters; XML and HTML are escaped."""
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=select_autoescape(['xml', 'html'], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment
