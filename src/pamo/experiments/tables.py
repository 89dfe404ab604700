"""Tables of results: named columns of one length, kept as Parquet. Studies hand them to claims, figures and readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.errors import InputError
from pamo.tabular import readable, require_pyarrow

Column = npt.NDArray[Any]
_FEATURE = "keeping a study's results"


class Table:
    """Columns of one length, by name; a single value stands for a column of it.

    >>> table = Table.from_rows([{"policy": "ucb", "regret": 2.0}, {"policy": "moss", "regret": 1.0}])
    >>> table.where(policy="moss")["regret"].tolist()
    [1.0]
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        given = {name: np.asarray(column) for name, column in columns.items()}
        lengths = {name: len(column) for name, column in given.items() if column.ndim}
        if len(set(lengths.values())) > 1:
            raise InputError(f"expected columns of one length, got {lengths}")
        length = next(iter(lengths.values()), 1)
        self.columns: dict[str, Column] = {
            name: column if column.ndim else np.full(length, column) for name, column in given.items()
        }

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Build a table from dictionaries with the same keys."""
        return cls({name: [row[name] for row in rows] for name in rows[0]}) if rows else cls({})

    @classmethod
    def stack(cls, tables: Sequence[Table]) -> Table:
        """Return the tables' rows one after the other."""
        return cls({name: np.concatenate([table[name] for table in tables]) for name in tables[0].columns})

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def where(self, **equal: Any) -> Table:
        """Return the rows in which each named column has the given value."""
        keep = np.ones(len(self), dtype=bool)
        for name, value in equal.items():
            keep &= self.columns[name] == value
        return Table({name: column[keep] for name, column in self.columns.items()})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Go through the table row by row, as plain Python values."""
        lists = {name: column.tolist() for name, column in self.columns.items()}
        for place in range(len(self)):
            yield {name: values[place] for name, values in lists.items()}

    def distinct(self, name: str) -> list[Any]:
        """Return the column's values, each once, in the order of their first appearance."""
        return list(dict.fromkeys(self.columns[name].tolist()))

    def told(self, columns: Mapping[str, Any]) -> Table:
        """Return the table for a reader: columns by new names, each of an old one or of what a function makes of a row.

        A pair (name, digits) is an old column, rounded.

        >>> Table({"mean": [0.126], "low": [0.1]}).told({"mean": ("mean", 2), "at least": "low"}).columns
        {'mean': array([0.13]), 'at least': array([0.1])}
        """

        def cell(row: Mapping[str, Any], how: Any) -> Any:
            if isinstance(how, tuple):
                return round(row[how[0]], how[1])
            return how(row) if callable(how) else row[how]

        return Table.from_rows([{name: cell(row, how) for name, how in columns.items()} for row in self.rows()])

    def save(self, path: Path) -> None:
        """Write the table as Parquet."""
        pyarrow, parquet = require_pyarrow(_FEATURE)
        parquet.write_table(pyarrow.table({name: column.tolist() for name, column in self.columns.items()}), path)

    @classmethod
    def load(cls, path: Path) -> Table:
        """Return the table that `save` wrote."""
        with readable(path, "a table of a study, as Parquet", _FEATURE) as (_, parquet):
            table = parquet.read_table(path)
        return cls({name: np.array(table[name].to_pylist()) for name in table.column_names})


Tables = dict[str, Table]
