"""Sweep over settings and hyperparameters: every candidate on the same trials of every setting, or halved on the way.

What is finished is kept, a line a task: a sweep that was stopped, even by `kill -9`, goes on where it was, and one
whose file was changed plays only what is new.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pamo import compiling
from pamo.arrays import Floats
from pamo.errors import PamoError
from pamo.experiments.sweep_spec import Spec
from pamo.experiments.tasks import Began, Runner, Task, local, regrets, unnamed
from pamo.from_file import sources_of
from pamo.plain import plain
from pamo.progress import Progress, scaled, unseen
from pamo.simulation import summarize

KEPT = "finished.jsonl"
TABLE = "table.csv"
FIGURE = "figure"
_MOST_LINES = 40
"""Settings that the text has a line for."""
Pair = tuple[str, str]
"""A setting and a candidate, by name."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a sweep found. rows: one for each setting and candidate, a setting's best first.

    setting, policy, trials, mean, low and high (the mean's 95 % interval) and median of the final regret; share: the
    mean over that of the setting's best, on the same trials; difference, difference_low, difference_high: to the best,
    paired. environment: what the file says of the setting; id, hyperparameters: of the policy. overall: a row for each
    candidate, the best first: share, the geometric mean over settings; worst, the greatest of them; best, the settings
    in which it was the best.
    """

    spec: Spec
    rows: Sequence[Mapping[str, Any]]
    overall: Sequence[Mapping[str, Any]]


def sweep(
    spec: Spec,
    folder: Path | None = None,
    *,
    runner: Runner = local,
    progress: Progress = unseen,
    began: Began = unnamed,
) -> Found:
    """Play what a spec says and is not finished yet, and return what was found.

    folder: where what is finished is kept. Halving plays all candidates on the first rung's trials, and on those of the
    next the share `keep` of them that did best in the setting; trials of one rung are the first ones of the next.
    """
    going: list[Pair] = [(setting, name) for setting in spec.settings for name in spec.candidates]
    played: dict[Pair, Floats] = {pair: np.empty(0) for pair in going}
    rungs = list(zip((0, *spec.rungs[:-1]), spec.rungs, strict=True))
    works = [(trials - before) * spec.keep**rung for rung, (before, trials) in enumerate(rungs)]
    with _kept(folder) as kept:
        for (before, trials), work in zip(rungs, works, strict=True):
            if before:
                going = _best(going, played, spec.keep)
            part = scaled(progress, work / sum(works))
            for pair, values in _play(spec, going, before, trials, kept, runner, part, began):
                played[pair] = np.append(played[pair], values)
    return _found(spec, played)


def _best(going: Sequence[Pair], played: Mapping[Pair, Floats], keep: float) -> list[Pair]:
    """Return the pairs that go on: in each setting the share `keep` of the candidates, at least one."""
    by_setting: dict[str, list[Pair]] = {}
    for pair in going:
        by_setting.setdefault(pair[0], []).append(pair)
    return [
        pair
        for pairs in by_setting.values()
        for pair in sorted(pairs, key=lambda pair: float(played[pair].mean()))[: math.ceil(len(pairs) * keep)]
    ]


def _play(
    spec: Spec,
    going: Sequence[Pair],
    before: int,
    trials: int,
    kept: _Kept,
    runner: Runner,
    progress: Progress,
    began: Began,
) -> Iterator[tuple[Pair, Floats]]:
    """Yield the final regrets of these pairs in the trials from `before` on; what is kept already at once."""
    tasks, pairs, keys = [], [], []
    weights = {pair: float(spec.settings[pair[0]].users) for pair in going}
    total = sum(weights.values())
    for pair in going:
        environment, policy = spec.settings[pair[0]], spec.candidates[pair[1]]
        given = (policy, environment, spec.rounds, before, trials - before, spec.seed, [spec.rounds])
        own = sources_of(policy, environment)
        key = _key([policy.id, policy.settings, environment.settings, *given[2:], own])
        if key in kept.lines:
            progress(weights[pair] / total)
            yield pair, np.array(kept.lines[key])
        else:
            tasks.append(Task("sweep", regrets, given, weights[pair]))
            pairs.append(pair)
            keys.append(key)
    left = scaled(progress, sum(weights[pair] for pair in pairs) / total)
    for place, found in runner(tasks, left, began):
        kept.add(keys[place], pairs[place], found[:, -1])
        yield pairs[place], found[:, -1]


def _key(what: Sequence[Any]) -> str:
    """Return what a finished task is known by: all that decides its result."""
    text = json.dumps([*what, compiling.kernel_stamp()], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class _Kept:
    """The regrets of finished tasks by their key, and where they are written."""

    def __init__(self, lines: dict[str, list[float]], stream: Any) -> None:
        self.lines, self._stream = lines, stream

    def add(self, key: str, pair: Pair, values: Floats) -> None:
        """Keep a finished task: it is on the disk when this returns."""
        if self._stream is None:
            return
        line = {"key": key, "setting": pair[0], "policy": pair[1], "regret": values.tolist()}
        self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())


@contextmanager
def _kept(folder: Path | None) -> Iterator[_Kept]:
    if folder is None:
        yield _Kept({}, None)
        return
    lines: dict[str, list[float]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / KEPT
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            try:
                one = json.loads(line)
                lines[one["key"]] = [float(value) for value in one["regret"]]
            except (ValueError, LookupError, TypeError):  # half a line, of a run that was killed: it is played again
                continue
        with path.open("a", encoding="utf-8") as stream:
            if text and not text.endswith("\n"):
                stream.write("\n")
            yield _Kept(lines, stream)
    except OSError as error:
        raise PamoError(f"what is finished could not be kept in {folder}: {error}") from error


def _found(spec: Spec, played: Mapping[Pair, Floats]) -> Found:
    rows = []
    for setting, fields in spec.fields.items():
        here = {name: played[setting, name] for name in spec.candidates}
        ordered = sorted(here, key=lambda name: (-len(here[name]), float(here[name].mean())))
        best = here[ordered[0]]
        for name in ordered:
            values = here[name]
            same = best[: len(values)]
            mean, _, low, high = summarize(values)
            apart = summarize(values - same)
            rows.append(
                {"setting": setting, "policy": name, "trials": len(values), "mean": mean, "low": low, "high": high}
                | {"median": float(np.median(values)), "share": mean / same.mean() if same.any() else math.nan}
                | {"difference": apart.mean, "difference_low": apart.low, "difference_high": apart.high}
                | {"environment": fields}
                | {"id": spec.candidates[name].id, "hyperparameters": spec.candidates[name].settings}
            )
    return Found(spec=spec, rows=rows, overall=_overall(spec, rows))


def _overall(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    best = {setting: next(row["policy"] for row in rows if row["setting"] == setting) for setting in spec.settings}
    by_name: dict[str, list[Mapping[str, Any]]] = {name: [] for name in spec.candidates}
    for row in rows:
        by_name[row["policy"]].append(row)
    overall = []
    for name, own in by_name.items():
        shares = np.array([row["share"] for row in own])
        overall.append(
            {"policy": name, "trials": min(row["trials"] for row in own), "share": _geometric(shares)}
            | {"worst": float(shares.max()), "best": sum(chosen == name for chosen in best.values())}
        )
    return sorted(overall, key=lambda row: (math.isnan(row["share"]), row["share"], -row["best"]))


def _geometric(shares: Floats) -> float:
    return float(np.exp(np.log(np.maximum(shares, 1e-300)).mean()))


def text_of(found: Found, *, top: int = 10) -> str:
    """Return what was found as lines of text: the best in each setting, and the first `top` candidates."""
    spec, rows = found.spec, found.rows
    trials = " → ".join(map(str, spec.rungs))
    lines = [
        f"{spec.method}: {_count(spec.settings, 'setting')} × {_count(spec.candidates, 'candidate')}; regret after "
        f"{spec.rounds} rounds, {trials} trials, seed {spec.seed}",
        "",
    ]
    wide = max(24, 2 + max(len(name) for name in spec.candidates))
    if len(spec.settings) == 1:
        lines.append(f"{'policy':<{wide}}{'trials':>7}{'mean':>11}{'95 % interval':>21}   difference to the best")
        for row in rows[:top]:
            apart = f"{row['difference']:+,.1f} ({row['difference_low']:+,.1f} … {row['difference_high']:+,.1f})"
            lines.append(
                f"{row['policy']:<{wide}}{row['trials']:>7}{row['mean']:>11,.1f}{_interval(row):>21}   "
                f"{'–' if row is rows[0] else apart}"
            )
        return "\n".join([*lines, *_left(len(rows) - top, "candidate")])
    broad = max(24, 2 + max(len(name) for name in spec.settings))
    lines.append(f"{'setting':<{broad}}{'best policy':<{wide}}{'mean':>11}{'95 % interval':>21}{'others as good':>16}")
    for setting in list(spec.settings)[:_MOST_LINES]:
        best, *others = [row for row in rows if row["setting"] == setting]
        alike = sum(not row["difference_low"] > 0 for row in others)
        lines.append(
            f"{setting:<{broad}}{best['policy']:<{wide}}{best['mean']:>11,.1f}{_interval(best):>21}{alike:>16}"
        )
    lines += _left(len(spec.settings) - _MOST_LINES, "setting")
    lines += ["", f"{'policy':<{wide}}{'trials':>7}{'over the best':>15}{'at worst':>10}{'best in':>9}"]
    for row in found.overall[:top]:
        lines.append(
            f"{row['policy']:<{wide}}{row['trials']:>7}{row['share']:>14.3f}×{row['worst']:>9.2f}×{row['best']:>9}"
        )
    lines += _left(len(found.overall) - top, "candidate")
    lines += ["", "others as good: whose difference to the best, on the same trials, may be 0 (95 %)"]
    return "\n".join([*lines, "over the best: regret over that of each setting's best, the geometric mean"])


def _count(many: Mapping[str, Any], what: str) -> str:
    return f"{len(many):,} {what}{'' if len(many) == 1 else 's'}"


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['low']:,.1f} … {row['high']:,.1f}"


def _left(count: int, what: str) -> list[str]:
    return [f"… and {count:,} {what}{'' if count == 1 else 's'} more"] if count > 0 else []


def document_of(found: Found) -> dict[str, Any]:
    """Return what was found as plain values."""
    spec = found.spec
    return {
        "sweep": {"method": spec.method, "rounds": spec.rounds, "seed": spec.seed, "rungs": list(spec.rungs)},
        "settings": {name: environment.settings for name, environment in spec.settings.items()},
        "rows": list(found.rows),
        "overall": list(found.overall),
    }


def varied(found: Found) -> dict[tuple[str, str], list[Any]]:
    """Return the fields that were tried at more than one value, with the value that each row has: None for none.

    By ("environment", name) and (a policy's id, name).
    """
    columns: dict[tuple[str, str], list[Any]] = {}
    for place, row in enumerate(found.rows):
        for of, values in (("environment", row["environment"]), (row["id"], row["hyperparameters"])):
            for name, value in values.items():
                columns.setdefault((of, name), [None] * len(found.rows))[place] = value
    return {
        key: column
        for key, column in columns.items()
        if len({repr(value) for value in column if value is not None}) > 1
    }


def write_table(found: Found, path: Path) -> None:
    """Write the rows as CSV, with a column for each field that was varied."""
    fields = varied(found)
    numbers = [name for name in found.rows[0] if name not in ("environment", "id", "hyperparameters")]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*numbers, *(f"{of}.{name}" for of, name in fields)])
        for place, row in enumerate(found.rows):
            values = plain([row[name] for name in numbers])
            writer.writerow([*values, *(column[place] for column in fields.values())])
