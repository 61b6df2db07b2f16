"""Results as tables, for notebooks and pandas."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from html import escape
from importlib import import_module
from typing import Any

from ..exceptions import ConfigurationError


@dataclasses.dataclass(frozen=True)
class ResultTable:
    """Columns of equal length by their names, and what the rows are with the name of each."""

    index_name: str
    index: Sequence[str]
    columns: Mapping[str, Iterable[Any]]

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`; ConfigurationError where pandas is not installed."""
        try:
            pandas = import_module('pandas')
        except ImportError as error:
            raise ConfigurationError('this table needs pandas: pip install pandas') from error
        return pandas.DataFrame(
            {name: list(values) for name, values in self.columns.items()},
            index=pandas.Index(list(self.index), name=self.index_name),
        )

    def to_html(self) -> str:
        """Return the table as HTML."""
        head = ''.join(f'<th>{escape(name)}</th>' for name in (self.index_name, *self.columns))
        rows = zip(self.index, *self.columns.values(), strict=True)
        body = ''.join(
            f'<tr><th>{escape(name)}</th>'
            + ''.join(
                f'<td>{escape(v) if isinstance(v, str) else f"{v:.5g}"}</td>' for v in values
            )
            for name, *values in rows
        )
        return f'<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
