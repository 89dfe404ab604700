"""Result files: Parquet with spec, seed and version inside; CSV and JSON for other tools.

The Parquet table has a row for each (policy, trial, round); `regret_by_user` is a list in each row, `pulls` a list in
the last round's row; a flat file has neither. The schema's metadata holds the settings and the policies, so a file says
by itself what it is.
Files are written beside their final name and then renamed: a reader never sees half of one.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pamo._version import __version__
from pamo.errors import InputError, ResultFileError
from pamo.plain import to_json
from pamo.simulation.result import PolicyResult, Result
from pamo.simulation.showing import SCALARS, columns_of
from pamo.tabular import first_line, readable, require_pyarrow

FORMAT = 1
"""The version of the file's layout: raised when an older pamo could not read a newer file."""


@contextmanager
def written_whole(path: str | Path, kind: str, endings: Collection[str]) -> Iterator[Path]:
    """Give a file beside `path` to write to, and rename it when all went well: a reader never sees half of one.

    kind: what the file is, for messages. endings: what its name may end in.
    """
    target = Path(path)
    if target.suffix not in endings:
        raise InputError(f"expected a {kind} file that ends in {', '.join(endings)}, got {target.name!r}")
    if not target.parent.is_dir():
        raise InputError(f"expected an existing folder to write {target.name} into, got {target.parent}; make it first")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise ResultFileError(f"{target} could not be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def save(result: Result, path: str | Path, *, flat: bool = False) -> Path:
    """Write the result; the ending chooses the format. flat: Parquet without nested lists, for other tools."""
    target = Path(path)
    if flat and target.suffix != ".parquet":
        raise InputError(f"expected a flat file to end in .parquet, got {target.name!r}; .csv is flat by itself")
    if flat:
        with written_whole(target, "result", (".parquet",)) as partial:
            _write_flat(result, partial)
        return target
    writers = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}
    with written_whole(target, "result", writers) as partial:
        writers[target.suffix](result, partial)
    return target


def load(path: str | Path) -> Result:
    """Return the result that a Parquet file holds."""
    source = Path(path)
    with readable(source, "a result that `Result.save` wrote") as (_, parquet):
        table = parquet.read_table(source, page_checksum_verification=True)
    metadata = table.schema.metadata or {}
    if b"pamo_flat" in metadata:
        raise ResultFileError(
            f"{source} is flat, for other tools; what `Result.save` writes without flat can be loaded"
        )
    if b"pamo" not in metadata:
        raise ResultFileError(f"{source} is a Parquet file, but not one that pamo wrote; expected a result file")
    try:
        spec = json.loads(metadata[b"pamo"])
        if spec["format"] > FORMAT:
            raise ResultFileError(
                f"{source} was written by pamo {spec['version']} in format {spec['format']}; pamo {__version__} reads "
                f"formats up to {FORMAT}: upgrade pamo to open it"
            )
        settings = spec["settings"]
        policies = {
            name: _read_policy(table, name, about, settings["trials"], source)
            for name, about in spec["policies"].items()
        }
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ResultFileError(
            f"{source} is damaged: expected what a result of format {FORMAT} holds, got {first_line(error)}"
        ) from error
    return Result(settings=settings, policies=policies)


def _read_policy(table: Any, name: str, about: dict[str, Any], trials: int, source: Path) -> PolicyResult:
    from pyarrow import compute

    rows = table.filter(compute.equal(table["policy"], name))
    rounds = np.array(about["rounds"], dtype=np.int64)
    if rows.num_rows != trials * len(rounds):
        raise ResultFileError(
            f"{source} holds {rows.num_rows} rows of {name}; expected {trials} trials × {len(rounds)} checkpoints"
        )
    shape = (trials, len(rounds))
    columns = {column: rows[column].to_numpy().reshape(shape) for column in SCALARS if column != "regret"}
    lists = {column: rows[column].combine_chunks().flatten().to_numpy() for column in ("regret_by_user", "pulls")}
    return PolicyResult(
        id=about["id"],
        hyperparameters=about["hyperparameters"],
        rounds=rounds,
        regret_by_user=lists["regret_by_user"].reshape(*shape, -1),
        pulls=lists["pulls"].reshape(trials, -1),
        seconds=about["seconds"],
        **columns,
    )


def _write_parquet(result: Result, path: Path) -> None:
    pyarrow, parquet = require_pyarrow()
    spec = {
        "format": FORMAT,
        "version": __version__,
        "settings": dict(result.settings),
        "policies": {
            name: {
                "id": outcome.id,
                "hyperparameters": dict(outcome.hyperparameters),
                "rounds": outcome.rounds.tolist(),
                "seconds": outcome.seconds,
            }
            for name, outcome in result.policies.items()
        },
    }
    schema = pyarrow.schema(
        [
            ("policy", pyarrow.string()),
            ("trial", pyarrow.int64()),
            ("round", pyarrow.int64()),
            *((column, pyarrow.float64()) for column in SCALARS),
            ("regret_by_user", pyarrow.list_(pyarrow.float64())),
            ("pulls", pyarrow.list_(pyarrow.int64())),
        ],
        metadata={"pamo": json.dumps(spec, ensure_ascii=False)},
    )
    with parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for name, outcome in result.policies.items():
            trials, marks = outcome.regret.shape
            last = [None] * (marks - 1)
            writer.write_table(
                pyarrow.table(
                    {
                        "policy": [name] * (trials * marks),
                        "trial": np.repeat(np.arange(trials) + result.settings["first_trial"], marks),
                        "round": np.tile(outcome.rounds, trials),
                        **{column: getattr(outcome, column).ravel() for column in SCALARS},
                        "regret_by_user": outcome.regret_by_user.reshape(trials * marks, -1).tolist(),
                        "pulls": [row for pulls in outcome.pulls.tolist() for row in (*last, pulls)],
                    },
                    schema=schema,
                )
            )


def _write_flat(result: Result, path: Path) -> None:
    pyarrow, parquet = require_pyarrow()
    columns = columns_of(result)
    table = pyarrow.table(columns | {"policy": pyarrow.array(columns["policy"].tolist(), pyarrow.string())})
    about = {"version": __version__, "settings": dict(result.settings)}
    table = table.replace_schema_metadata({"pamo_flat": json.dumps(about, ensure_ascii=False)})
    parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


def _rows(result: Result) -> Iterator[list[Any]]:
    for name, outcome in result.policies.items():
        columns = [getattr(outcome, column).tolist() for column in SCALARS]
        for trial, lines in enumerate(zip(*columns, strict=True), result.settings["first_trial"]):
            for mark, *values in zip(outcome.rounds.tolist(), *lines, strict=True):
                yield [name, trial, mark, *("" if math.isnan(value) else value for value in values)]


def _write_csv(result: Result, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["policy", "trial", "round", *SCALARS])
        writer.writerows(_rows(result))


def _write_json(result: Result, path: Path) -> None:
    path.write_text(to_json(result.summary(), indent=1) + "\n", encoding="utf-8")
