"""Import this first: it makes the modules of the folder above importable, as `common`."""

from pathlib import Path
import sys

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
