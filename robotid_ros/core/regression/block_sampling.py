"""Systematic sampling of a long recording: every k-th block, at most so many rows in memory."""

from typing import Generic, TypeVar

T = TypeVar('T')
# Rows after decimation that stay in memory for residuals and figures: 60 MB for six joints and 61
# columns.
MAX_ROWS = 20_000


class BlockSampler(Generic[T]):
    """
    Every k-th of the blocks so far; k doubles whenever their rows get too many.

    Attributes
    ----------
    blocks : those that are kept

    """

    def __init__(self, max_rows: int = MAX_ROWS):
        self.blocks: list[T] = []
        self._max_rows, self._rows = max_rows, list[int]()
        self._seen, self._step = 0, 1

    def takes_next(self) -> bool:
        """Return whether the next block is one to keep, and go on to the one after."""
        self._seen += 1
        return (self._seen - 1) % self._step == 0

    def add(self, block: T, rows: int) -> None:
        """Keep a block of so many rows."""
        self.blocks.append(block)
        self._rows.append(rows)
        while sum(self._rows) > self._max_rows and len(self.blocks) > 1:
            self.blocks, self._rows = self.blocks[::2], self._rows[::2]
            self._step *= 2
