"""Tables that others wrote, as CSV or Parquet: columns by name, and what is wrong with them by row and column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.errors import InputError, ResultFileError, missing_extra, unknown_name

ENDINGS = (".csv", ".parquet")
OBJECTIVES = "pamo.objectives"
"""Where a Parquet file of ours says which of its columns are objectives, and their scales."""
_SHOWN = 5
"""Problems of a file that a sentence names one by one."""


class Problem(NamedTuple):
    """A cell that is not what its column is to hold. row: counted from 1, the header of a CSV file not among them."""

    row: int
    column: str
    said: str

    def __str__(self) -> str:
        return f"row {self.row:,}, column {self.column!r}: {self.said}"


def problems_text(problems: Sequence[Problem]) -> str:
    """Return problems in words, the first ones one by one.

    >>> problems_text([Problem(3, "taste", "expected a number, got 'good'")])
    "row 3, column 'taste': expected a number, got 'good'"
    """
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    return "; ".join(map(str, problems[:_SHOWN])) + more


def require_pyarrow(feature: str = "a Parquet result file") -> tuple[Any, Any]:
    """Return `pyarrow` and `pyarrow.parquet`, or say what needs them and which extra installs them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra(feature, "pyarrow", "results") from error
    return pyarrow, pyarrow.parquet


@contextmanager
def readable(source: Path, expected: str, feature: str = "a Parquet result file") -> Iterator[tuple[Any, Any]]:
    """Give `pyarrow` and `pyarrow.parquet` to read a file with, and say what is wrong with one that cannot be read."""
    pyarrow, parquet = require_pyarrow(feature)
    if not source.is_file():
        raise ResultFileError(f"{source} is not a file; expected {expected}")
    try:
        yield pyarrow, parquet
    except (pyarrow.ArrowException, OSError) as error:
        kind = "CSV" if source.suffix == ".csv" else "Parquet"
        raise ResultFileError(
            f"{source} cannot be read as {kind}: it was cut short, or is not what was expected ({first_line(error)})"
        ) from error


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or its kind where it says nothing."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


class Columns:
    """Some columns of a CSV or Parquet file, by name."""

    def __init__(
        self, path: str | Path, names: Sequence[str], *, optional: Sequence[str] = (), what: str, feature: str
    ) -> None:
        """Read the columns; what: the file's contents, feature: what reads it, both for messages."""
        source = Path(path)
        if source.suffix not in ENDINGS:
            raise InputError(f"expected {what} in a file that ends in {' or '.join(ENDINGS)}, got {source.name!r}")
        with readable(source, what, feature) as (pyarrow, parquet):
            read = _csv if source.suffix == ".csv" else _parquet
            self._table = read(source, names, optional, pyarrow, parquet)
        self._pyarrow = pyarrow
        self.names: tuple[str, ...] = tuple(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def numbers(self, name: str) -> tuple[Floats, list[Problem]]:
        """Return a column as numbers, NaN where there is none, and what in it is neither a number nor empty."""
        column, types = self._table[name], self._pyarrow.types
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type):
            values: Floats = column.cast(self._pyarrow.float64()).to_numpy()
            said = {place: values[place] for place in np.flatnonzero(np.isinf(values)).tolist()}
        elif types.is_null(column.type):
            return np.full(len(self), np.nan), []
        elif types.is_string(column.type) or types.is_large_string(column.type):
            values, said = _parsed(column, self._pyarrow)
        else:
            raise InputError(f"expected numbers in the column {name!r}, got {column.type}")
        problems = [Problem(place + 1, name, f"expected a number, got {got!r:.40}") for place, got in said.items()]
        if said:
            values = values.copy()
            values[list(said)] = np.nan
        return values, problems

    def codes(self, name: str) -> tuple[Ints, list[str]]:
        """Return for each row which of the column's distinct values it has, −1 where none, and these as texts."""
        column = self._table[name].combine_chunks()
        if not self._pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        known = [None if value in ("", None) else str(value) for value in column.dictionary.to_pylist()]
        if None in known:
            places = np.where(places == known.index(None), -1, places)
        return places, ["" if text is None else text for text in known]

    def values(self, name: str) -> list[Any]:
        """Return a column as Python has it."""
        found: list[Any] = self._table[name].to_pylist()
        return found


def _parsed(column: Any, pyarrow: Any) -> tuple[Floats, dict[int, Any]]:
    """Return texts as numbers, and those that are none by their place."""
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(column)
    empty = compute.equal(trimmed, "")
    try:
        values: Floats = compute.if_else(empty, None, trimmed).cast(pyarrow.float64()).to_numpy()
        return values, {place: values[place] for place in np.flatnonzero(np.isinf(values)).tolist()}
    except pyarrow.ArrowInvalid:
        pass  # which of them it was, is found out one by one
    texts, values, said = column.to_pylist(), np.full(len(column), np.nan), {}
    for place, text in enumerate(texts):
        if text is None or not text.strip():
            continue
        try:
            values[place] = float(text)
        except ValueError:
            said[place] = text
            continue
        if math.isinf(values[place]):
            said[place] = text
    return values, said


def _csv(source: Path, names: Sequence[str], optional: Sequence[str], pyarrow: Any, _: Any) -> Any:
    from pyarrow import csv

    with csv.open_csv(source) as opened:
        known = opened.schema.names
    chosen = _chosen(source, names, optional, known)
    text = pyarrow.string()  # whether a cell is a number is for `numbers` to say, with its row
    convert = csv.ConvertOptions(
        include_columns=chosen, column_types=dict.fromkeys(chosen, text), strings_can_be_null=True
    )
    return csv.read_csv(source, convert_options=convert)


def _parquet(source: Path, names: Sequence[str], optional: Sequence[str], _: Any, parquet: Any) -> Any:
    return parquet.read_table(source, columns=_chosen(source, names, optional, parquet.read_schema(source).names))


def _chosen(source: Path, names: Sequence[str], optional: Sequence[str], known: Sequence[str]) -> list[str]:
    for name in names:
        if name not in known:
            raise unknown_name(f"column of {source.name}", name, known)
    twice = {name for name in names if list(known).count(name) > 1}
    if twice:
        raise InputError(f"expected each column of {source.name} once, got {', '.join(sorted(twice))} several times")
    return [*names, *(name for name in optional if name in known and name not in names)]
