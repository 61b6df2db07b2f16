"""Pages, and texts for other programs, from templates: no value may be missing."""

from collections.abc import Callable
from contextlib import suppress
import os
from pathlib import Path
import sys
from typing import Any

from jinja2 import (
    BytecodeCache,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    select_autoescape,
    StrictUndefined,
)


def text_templates(*folders: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the templates of folders, which may use filters; XML and HTML are escaped."""
    environment = Environment(
        loader=FileSystemLoader(folders),
        bytecode_cache=_compiled_beside(folders[0]),
        autoescape=select_autoescape(['xml', 'html'], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment


def _compiled_beside(folder: Path) -> BytecodeCache | None:
    """Return where compiled templates are kept, as Python keeps modules; None where it may not."""
    kept = folder / '__pycache__'
    if sys.dont_write_bytecode or not os.access(kept if kept.exists() else folder, os.W_OK):
        return None
    kept.mkdir(exist_ok=True)
    return _Kept(str(kept))


class _Kept(FileSystemBytecodeCache):
    """Compiled templates in files: what cannot be written, as on a full disk, is not kept."""

    def dump_bytecode(self, bucket: Any) -> None:
        """Keep what was compiled."""
        with suppress(OSError):
            super().dump_bytecode(bucket)
