"""Sentences for the user, with how much they matter."""

from __future__ import annotations

from collections.abc import Iterable

# From what may make the result useless to what is good to know.
SERIOUS, WARNING, NOTE = 'serious', 'warning', 'note'
SEVERITIES = (SERIOUS, WARNING, NOTE)


class Remark(str):
    """
    A sentence with its remedy.

    Attributes
    ----------
    severity : one of `SEVERITIES`

    """

    severity: str

    def __new__(cls, text: str, severity: str = WARNING) -> Remark:
        """Take a text; what has a severity keeps it."""
        remark = super().__new__(cls, text)
        remark.severity = severity
        return remark


def severity_of(text: str) -> str:
    """Return the severity of a sentence, `WARNING` where nobody said it."""
    return text.severity if isinstance(text, Remark) else WARNING


def remarks(severity: str, texts: Iterable[str]) -> list[str]:
    """Give sentences a severity."""
    return [Remark(text, severity) for text in texts]


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Return sentences without repetitions, what matters most first."""
    unique = dict.fromkeys(texts)
    return tuple(sorted(unique, key=lambda text: SEVERITIES.index(severity_of(text))))
