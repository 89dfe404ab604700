"""Tables of results: named columns of one length, kept as Parquet. Studies hand them to claims, figures and readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.errors import InputError, ResultFileError, missing_extra

Column = npt.NDArray[Any]


class Table:
    """Columns of one length, by name.

    >>> table = Table.from_rows([{"policy": "ucb", "regret": 2.0}, {"policy": "moss", "regret": 1.0}])
    >>> table.where(policy="moss")["regret"].tolist()
    [1.0]
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns: dict[str, Column] = {name: np.asarray(column) for name, column in columns.items()}
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"expected columns of one length, got {lengths}")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Build a table from dictionaries with the same keys."""
        return cls({name: [row[name] for row in rows] for name in rows[0]}) if rows else cls({})

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

    def save(self, path: Path) -> None:
        """Write the table as Parquet."""
        pyarrow, parquet = _pyarrow()
        parquet.write_table(pyarrow.table({name: column.tolist() for name, column in self.columns.items()}), path)

    @classmethod
    def load(cls, path: Path) -> Table:
        """Return the table that `save` wrote."""
        pyarrow, parquet = _pyarrow()
        try:
            table = parquet.read_table(path)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise ResultFileError(f"{path} cannot be read: it was cut short or is not Parquet ({error})") from error
        return cls({name: np.array(table[name].to_pylist()) for name in table.column_names})


Tables = dict[str, Table]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra("keeping a study's results", "pyarrow", "results") from error
    return pyarrow, pyarrow.parquet
