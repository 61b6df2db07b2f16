"""What a stage has to say of its input or result: a value with a code, not a sentence."""

from collections.abc import Iterable, Mapping
import dataclasses
import enum
from typing import Any


class Severity(enum.IntEnum):
    """How much a finding matters: checked and right, good to know, to be seen to, wrong."""

    OK = 0
    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """In lower case, as files and terminal have it."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found; `finding_codes.render` makes its text."""

    code: str  # key of `finding_codes.CODES`, 'F401'
    severity: Severity  # how much it matters here
    joints: tuple[str, ...] = ()  # names of those concerned
    # Plain values by name; 'source' is the log or method that it is about, of several.
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def of(self, source: str) -> 'Finding':
        """Return it with the name of the log or method that it is about."""
        sources = ': '.join(filter(None, (source, self.values.get('source', ''))))
        return dataclasses.replace(self, values={**self.values, 'source': sources})

    def at(self, severity: Severity) -> 'Finding':
        """Return it with another severity."""
        return dataclasses.replace(self, severity=severity)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repetitions, what matters most first."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: -each.severity))
