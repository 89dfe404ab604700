"""Run studies one after the other, keep each when it is whole, and skip what is finished and unchanged.

A study's folder is made beside its place and then renamed into it: a run that is stopped, even by `kill -9`, loses at
most the study in progress.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from pamo._version import __version__
from pamo.compiling import kernel_stamp
from pamo.errors import InputError, PamoError
from pamo.experiments.figures import save_figure
from pamo.experiments.study import Study
from pamo.experiments.tables import Table, Tables

RECORD = "study.json"


def settings_of(study: Study, *, quick: bool, trials: int | None) -> dict[str, Any]:
    """Return the settings that a run of the study has, after `--quick` and `--trials`."""
    settings = dict(study.settings) | (dict(study.quick) if quick else {})
    if trials is not None and "trials" in settings:
        settings["trials"] = trials
    return settings


def digest(study: Study, settings: Mapping[str, Any], seed: int) -> str:
    """Return what a finished study is known by: its settings, its seed, and the code that made it."""
    code = hashlib.sha256()
    for name in sorted(_modules_of(study.measure.__module__)):
        code.update(Path(str(sys.modules[name].__file__)).read_bytes())
    spec = json.dumps([study.name, settings, seed, kernel_stamp(), code.hexdigest()], sort_keys=True, default=str)
    return hashlib.sha256(spec.encode()).hexdigest()


def _modules_of(name: str) -> set[str]:
    """Return the module and all modules of pamo that it uses, directly or not: a change in any may change a result."""
    found, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        for value in vars(sys.modules[current]).values():
            other = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
            if isinstance(other, str) and other.startswith("pamo.") and other in sys.modules:
                waiting.append(other)
    return found


def finished(folder: Path) -> dict[str, Any] | None:
    """Return the record of a finished study, or None: a folder without a readable record counts for nothing."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = all((folder / name).is_file() for name in record.get("files", []))
    return record if whole else None


def run_studies(
    studies: Sequence[Study],
    output: Path,
    *,
    seed: int = 1,
    quick: bool = False,
    trials: int | None = None,
    shown: bool = True,
    announce: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Run the studies that are not finished yet and return every one's record, in order."""
    if trials is not None and trials < 2:
        raise InputError(f"expected at least 2 trials, for a spread to be seen, got {trials}")
    output.mkdir(parents=True, exist_ok=True)
    wanted = []
    for study in studies:
        settings = settings_of(study, quick=quick, trials=trials)
        known = digest(study, settings, seed)
        record = finished(output / study.name)
        wanted.append((study, settings, known, record if record and record["digest"] == known else None))
    total = sum(study.weight for study, _, _, record in wanted if record is None)
    records: list[dict[str, Any]] = []
    with _Bar(total, shown) as bar:
        for study, settings, known, kept in wanted:
            if kept is not None:
                announce(f"{study.name}: finished before, unchanged")
                records.append(kept)
                continue
            bar.describe(study.name)
            advance = bar.advance(study.weight)
            record = run_study(study, settings, known, seed, output / study.name, advance, quick=quick)
            bar.line(f"{study.name}: {record['seconds']:.1f} s")
            records.append(record)
    return records


def run_study(
    study: Study,
    settings: Mapping[str, Any],
    known: str,
    seed: int,
    folder: Path,
    progress: Callable[[float], None],
    *,
    quick: bool = False,
) -> dict[str, Any]:
    """Run one study and keep it: tables, figures, claims with their verdicts; return its record."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        started = time.perf_counter()
        tables = study.measure(settings, seed, progress)
        measured = time.perf_counter() - started
        record = _record(study, settings, seed, tables) | {
            "digest": known,
            "quick": quick,
            "measuring_seconds": measured,
        }
        files = []
        for name, table in tables.items():
            table.save(partial / f"{name}.parquet")
            files.append(f"{name}.parquet")
        for drawing in study.drawings:
            files += save_figure(drawing.draw(tables), partial / drawing.id)
        record |= {"files": files, "seconds": time.perf_counter() - started}
        (partial / RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except OSError as error:
        raise PamoError(f"{study.name} could not be kept in {folder}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return record


def _record(study: Study, settings: Mapping[str, Any], seed: int, tables: Tables) -> dict[str, Any]:
    """Return what the report shows of the study: claims with verdicts, figures with words and twins, settings, seed."""
    claims = []
    for claim in study.claims:
        finding = claim.judge(tables)
        claims.append(
            {
                "id": claim.id,
                "claim": claim.paper,
                "source": claim.source,
                "rule": claim.rule,
                "ours": claim.ours,
                "verdict": str(finding.verdict),
                "seen": finding.seen,
                "figures": dict(finding.figures),
            }
        )
    drawings = [
        {
            "id": drawing.id,
            "title": drawing.title,
            "alt": drawing.describe(tables),
            "table": _plain(drawing.twin(tables)),
        }
        for drawing in study.drawings
    ]
    return {
        "name": study.name,
        "title": study.title,
        "about": study.about,
        "source": study.source,
        "settings": json.loads(json.dumps(settings, default=str)),
        "seed": seed,
        "version": __version__,
        "claims": claims,
        "drawings": drawings,
    }


def _plain(table: Table) -> dict[str, Any]:
    return {"columns": list(table.columns), "rows": [list(row.values()) for row in table.rows()]}


class _Bar:
    """A progress bar over all studies, by their weights, with the time left; on stderr, or nothing."""

    def __init__(self, total: float, shown: bool) -> None:
        self._total = total
        self._shown = shown and total > 0
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        if self._shown:
            form = "{desc}: {percentage:3.0f} %|{bar}| {elapsed} gone, {remaining} left"
            self._bar = tqdm(total=self._total, file=sys.stderr, bar_format=form, leave=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def describe(self, name: str) -> None:
        if self._bar is not None:
            self._bar.set_description_str(name)

    def line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)

    def advance(self, weight: float) -> Callable[[float], None]:
        def step(share: float) -> None:
            if self._bar is not None:
                self._bar.update(min(share * weight, self._total - self._bar.n))

        return step
