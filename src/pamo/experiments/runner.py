"""Run studies, keep each when it is whole, and skip what is finished and unchanged.

A study's folder is made beside its place and then renamed into it: a run that is stopped, even by `kill -9`, loses at
most the study in progress, and the one before it whose figures are being drawn.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pamo import compiling
from pamo._version import __version__
from pamo.errors import InputError, PamoError
from pamo.experiments.figures import save_figure
from pamo.experiments.study import Claim, Study
from pamo.experiments.tables import Tables
from pamo.experiments.tasks import Runner, Task, local
from pamo.plain import to_json
from pamo.progress import Bar, Progress
from pamo.simulation.preparing import Prepared

RECORD = "study.json"


def settings_of(study: Study, *, quick: bool, trials: int | None) -> dict[str, Any]:
    """Return the settings that a run of the study has, after `--quick` and `--trials`."""
    settings = dict(study.settings) | (dict(study.quick) if quick else {})
    if trials is not None and "trials" in settings:
        settings["trials"] = trials
    return settings


def told_of(claim: Claim) -> dict[str, Any]:
    """Return what a claim says, as the report has it."""
    told = {"id": claim.id, "claim": claim.paper, "source": claim.source, "rule": claim.rule}
    return told | {"refuted_by": claim.refuted_by, "ours": claim.ours}


def digest(study: Study, settings: Mapping[str, Any], seed: int) -> str:
    """Return what a finished study is known by: its settings, its seed, its words, and the code that made it."""
    made = [study.measure, *(claim.judge for claim in study.claims)]
    made += [step for drawing in study.drawings for step in (drawing.draw, drawing.describe, drawing.twin)]
    code = hashlib.sha256()
    for name in sorted(_modules_of({getattr(step, "func", step).__module__ for step in made})):
        code.update(Path(str(sys.modules[name].__file__)).read_bytes())
    words = [study.name, study.title, study.about, study.source, *map(told_of, study.claims)]
    words += [(drawing.id, drawing.title) for drawing in study.drawings]
    spec = json.dumps([words, settings, seed, compiling.kernel_stamp(), code.hexdigest()], sort_keys=True, default=str)
    return hashlib.sha256(spec.encode()).hexdigest()


def _modules_of(names: set[str]) -> set[str]:
    """Return these modules and all of pamo that they use, directly or not: a change in any may change a result."""
    found: set[str] = set()
    waiting = list(names)
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
    runner: Runner = local,
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
    records = {study.name: kept for study, _, _, kept in wanted if kept is not None}
    for name in records:
        announce(f"{name}: finished before, unchanged")
    left = [(study, settings, known) for study, settings, known, kept in wanted if kept is None]
    # A cluster's workers compile where they are. Here what needs nothing compiled comes first: meanwhile the rest is.
    ahead = {study.name: list(study.prepare(settings)) for study, settings, _ in left if not quick and runner is local}
    left.sort(key=lambda one: bool(ahead.get(one[0].name)))
    tasks = [Task(study.name, _measured, (study.measure, settings, seed), study.weight) for study, settings, _ in left]
    keeping: list[Future[dict[str, Any]]] = []
    # Figures are drawn on one core while the next study is measured on all: kernels leave Python's lock alone.
    with (
        Prepared(ahead) as prepared,
        Bar("reproduce", total=float(bool(left)), shown=shown) as bar,
        ThreadPoolExecutor(1) as background,
    ):

        def begin(name: str) -> None:
            bar.rename(f"{name}, compiling")
            prepared.wait_for(name)
            bar.rename(name)

        def finish() -> None:
            for one in keeping:
                record = one.result()
                bar.say(f"{record['name']}: {record['seconds']:.1f} s")
                records[record["name"]] = record
            keeping.clear()

        for place, (tables, seconds) in runner(tasks, bar.advance, begin):
            study, settings, known = left[place]
            told = {"digest": known, "quick": quick, "measuring_seconds": seconds}
            finish()
            keeping.append(background.submit(keep_study, study, settings, seed, tables, told, output / study.name))
        bar.rename("drawing")
        finish()
    return [records[study.name] for study in studies]


def _measured(
    measure: Callable[[Mapping[str, Any], int, Progress], Tables],
    settings: Mapping[str, Any],
    seed: int,
    progress: Progress,
) -> tuple[Tables, float]:
    """Return what a study measures, and the seconds that it took."""
    started = time.perf_counter()
    return measure(settings, seed, progress), time.perf_counter() - started


def keep_study(
    study: Study, settings: Mapping[str, Any], seed: int, tables: Tables, told: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Judge and draw a study that was measured, and keep it: tables, figures, claims with verdicts; return its record.

    told: what the record has to hold besides.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        started = time.perf_counter()
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        record = _record(study, settings, seed, tables) | dict(told)
        files = [f"{name}.parquet" for name in tables]
        for name, table in zip(files, tables.values(), strict=True):
            table.save(partial / name)
        for drawing in study.drawings:
            figure = drawing.draw(tables)
            assert figure.texts, f"{drawing.id}: expected a note on what is shown, of how many trials"
            files += save_figure(figure, partial / drawing.id)
        record |= {"files": files, "seconds": told["measuring_seconds"] + time.perf_counter() - started}
        (partial / RECORD).write_text(to_json(record, indent=1), encoding="utf-8")
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
            told_of(claim) | {"verdict": str(finding.verdict), "seen": finding.seen, "figures": dict(finding.figures)}
        )
    drawings = []
    for drawing in study.drawings:
        twin = drawing.twin(tables)
        table = {"columns": list(twin.columns), "rows": [list(row.values()) for row in twin.rows()]}
        drawings.append({"id": drawing.id, "title": drawing.title, "alt": drawing.describe(tables), "table": table})
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
