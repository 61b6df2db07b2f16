"""Pages, and texts for other programs, from templates: no value may be missing."""

from collections.abc import Callable
from contextlib import suppress
import os
from pathlib import Path
import sys
from typing import Any

from jinja2 import (
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    select_autoescape,
    StrictUndefined,
)


def text_templates(*folders: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the templates of folders, which may use filters; XML and HTML are escaped."""
    # Compiled templates are kept beside them, as Python keeps modules, where that is possible.
    kept = folders[0] / '__pycache__'
    keeps = not sys.dont_write_bytecode and os.access(
        kept if kept.exists() else kept.parent, os.W_OK
    )
    if keeps:
        kept.mkdir(exist_ok=True)
    environment = Environment(
        loader=FileSystemLoader(folders),
        bytecode_cache=_Kept(str(kept)) if keeps else None,
        autoescape=select_autoescape(['xml', 'html'], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment


class _Kept(FileSystemBytecodeCache):
    """Compiled templates in files: what cannot be written, as on a full disk, is not kept."""

    def dump_bytecode(self, bucket: Any) -> None:
        """Keep what was compiled."""
        with suppress(OSError):
            super().dump_bytecode(bucket)
