"""What a stage has to say of its input or result: a value with a code, not a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import enum
from typing import Any


class Severity(enum.IntEnum):
    """How much a finding matters: good to know, to be seen to, may make the result wrong."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """In lower case, as files and terminal have it."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """
    What was found; `finding_codes.render` makes its text.

    Attributes
    ----------
    code : key of `finding_codes.CODES`, 'F401'
    severity : how much it matters here
    joints : names of those concerned
    values : plain values by name; 'source' is the log or method that it is about, of several

    """

    code: str
    severity: Severity
    joints: tuple[str, ...] = ()
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def of(self, source: str) -> Finding:
        """Return it with the name of the log or method that it is about."""
        sources = ': '.join(filter(None, (source, self.values.get('source', ''))))
        return dataclasses.replace(self, values={**self.values, 'source': sources})


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repetitions, what matters most first."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: -each.severity))
