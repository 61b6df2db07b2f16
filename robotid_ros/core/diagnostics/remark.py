"""Sentences for the user, with how much they matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# From what may make the result useless to what is good to know.
SERIOUS, WARNING, NOTE = 'serious', 'warning', 'note'
SEVERITIES = (SERIOUS, WARNING, NOTE)
# Code of the finding that efforts are neither torques nor forces.
EFFORT_UNIT = 'effort_unit'


class Remark(str):
    """
    A sentence with its remedy.

    Attributes
    ----------
    severity : one of `SEVERITIES`
    code : what was found, for decisions, '' where none depends on it
    joints : names of the joints that the sentence is about
    values : figures that the sentence is about

    """

    severity: str
    code: str
    joints: tuple[str, ...]
    values: Mapping[str, Any]

    def __new__(
        cls,
        text: str,
        severity: str = '',
        code: str = '',
        joints: Iterable[str] = (),
        **values: Any,
    ) -> Remark:
        """Take a text; a remark keeps what is not given anew."""
        remark = super().__new__(cls, text)
        remark.severity = severity or severity_of(text)
        remark.code = code or code_of(text)
        remark.joints = tuple(joints) or joints_of(text)
        remark.values = {**values_of(text), **values}
        return remark


def severity_of(text: str) -> str:
    """Return the severity of a sentence, `WARNING` where nobody said it."""
    return text.severity if isinstance(text, Remark) else WARNING


def code_of(text: str) -> str:
    """Return the code of a sentence, '' where it has none."""
    return text.code if isinstance(text, Remark) else ''


def joints_of(text: str) -> tuple[str, ...]:
    """Return the joints that a sentence is about, as far as it names them as values."""
    return text.joints if isinstance(text, Remark) else ()


def values_of(text: str) -> Mapping[str, Any]:
    """Return the values that a sentence is about."""
    return text.values if isinstance(text, Remark) else {}


def prefixed(name: str, text: str) -> Remark:
    """Return a sentence that names where it comes from, with all that it has."""
    return Remark(
        f'{name}: {text}',
        severity_of(text),
        code_of(text),
        joints_of(text),
        **values_of(text),
    )


def remarks(severity: str, texts: Iterable[str]) -> list[str]:
    """Give sentences a severity."""
    return [Remark(text, severity) for text in texts]


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Return sentences without repetitions, what matters most first."""
    unique = dict.fromkeys(texts)
    return tuple(sorted(unique, key=lambda text: SEVERITIES.index(severity_of(text))))
