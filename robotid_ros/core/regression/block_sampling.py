"""What is looked at of a long recording: whole pieces, spread over all of it, not too many."""

from typing import Generic, TypeVar

T = TypeVar('T')
MOST = 20_000  # rows after decimation


class BlockSampler(Generic[T]):
    """
    Every k-th of the pieces so far; k doubles as often as their rows get too many.

    Attributes
    ----------
    kept : the pieces

    """

    def __init__(self, most: int = MOST):
        self.blocks: list[T] = []
        self._most, self._rows = most, list[int]()
        self._seen, self._step = 0, 1

    def takes_next(self) -> bool:
        """Tell whether the next piece is one to keep, and go on to the one after."""
        self._seen += 1
        return (self._seen - 1) % self._step == 0

    def add(self, piece: T, rows: int) -> None:
        """Keep a piece of so many rows."""
        self.blocks.append(piece)
        self._rows.append(rows)
        while sum(self._rows) > self._most and len(self.blocks) > 1:
            self.blocks, self._rows = self.blocks[::2], self._rows[::2]
            self._step *= 2
