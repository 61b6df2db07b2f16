"""What the doctor found: one sentence each, with the remedy."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any


class Severity(IntEnum):
    """How bad a finding is: with an error no session runs, or nothing can be identified."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """Name in output."""
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """
    One finding.

    Attributes
    ----------
    severity : how bad it is
    subject : what was looked at: 'network', 'controller', 'joint states', 'timing', …
    sentence : what was found, without a full stop
    remedy : what to do about it, '' where nothing is to be done

    """

    severity: Severity
    subject: str
    sentence: str
    remedy: str = ''

    @property
    def text(self) -> str:
        """Sentence and remedy."""
        return f'{self.sentence}: {self.remedy}' if self.remedy else self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Describe the finding by plain values."""
        return {
            'severity': self.severity.word,
            'subject': self.subject,
            'sentence': self.sentence,
            'remedy': self.remedy,
        }


# With subject, sentence and remedy.
fine, note, warning, error = (partial(Finding, severity) for severity in Severity)


def split_remedy(text: str) -> tuple[str, str]:
    """Split a sentence of this package from its remedy, which stands behind the last colon."""
    sentence, _, remedy = ' '.join(text.split()).rpartition(': ')
    return (sentence, remedy) if sentence else (remedy, '')


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity, and keep the order of the checks otherwise."""
    return tuple(sorted(findings, key=lambda finding: -finding.severity))
