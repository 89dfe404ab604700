"""How cost grows: time and memory of the simulator against users, arms, D, rounds, trials, threads and arms on offer.

    python -m benchmarks.growth

Each point is a process of its own: seconds of the run, what was compiled before not counted, and by how much its memory
rose at most. The exponent p of cost ∝ sizeᵖ is fitted to the upper half of the sizes, beside what one would expect. It
writes growth.json, growth.svg and growth.png into `reports/growth`; `--quick` leaves out the largest sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pamo import environments, simulate
from pamo.experiments.figures import label, legend_above, note, panels, save_figure
from pamo.plain import to_json
from pamo.progress import Bar
from pamo.simulation.plot import AMBER, BLUE

ROOT = Path(__file__).parents[1]
BASE: Mapping[str, Any] = {"users": 20, "block_size": 5, "objectives": 5, "rounds": 1000, "trials": 32, "threads": 1}
LEAST = 4.0
"""Megabytes below which a rise in memory is not told from what a process does anyway."""


@dataclass(frozen=True)
class Axis:
    """What is varied: a field of the run, its sizes, what else is other than usual, and the exponents expected."""

    name: str
    field: str
    sizes: tuple[int, ...]
    time: float
    memory: float
    others: Mapping[str, Any]
    why: str


AXES = (
    Axis(
        "users, 5 arms each",
        "users",
        (10, 30, 100, 300, 1000),
        1,
        2,
        {"trials": 8, "rounds": 300},
        "a decision each; a table of what each arm is worth to each",
    ),
    Axis(
        "arms, 5 on offer",
        "arms",
        (100, 1000, 10_000, 100_000),
        1,
        1,
        {"users": 20, "trials": 4, "rounds": 2000},
        "blocks are dealt anew each round",
    ),
    Axis(
        "arms on offer",
        "block_size",
        (5, 20, 80, 320, 1280),
        1,
        1,
        {"users": 5, "trials": 4, "rounds": 500, "protocol": "all"},
        "each is scored",
    ),
    Axis("objectives D", "objectives", (3, 5, 16, 32, 64), 2, 2, {"rounds": 300, "users": 100}, "D × D a user"),
    Axis("rounds T", "rounds", (250, 1000, 4000, 16_000), 1, 0, {"trials": 8}, "sums, and no history"),
    Axis("trials", "trials", (32, 128, 512, 2048), 1, 1, {"rounds": 100}, "results of each"),
    Axis("threads", "threads", (1, 2, 4, 8, 16, 32), -1, 1, {"trials": 256}, "trials side by side"),
)


def measure(point: Mapping[str, Any]) -> dict[str, float]:
    """Return seconds and megabytes of a run, in this process."""
    given = dict(point)
    size = {name: given.pop(name) for name in ("rounds", "trials", "threads")}
    small = environments.Gaussian(**(given | {"users": 1, "block_size": 2, "arms": 2}))
    simulate(["prucb-hp"], small, rounds=2, trials=size["threads"], threads=size["threads"], checkpoints=1)  # compiles
    environment = environments.Gaussian(**given)
    before, begun = _peak(), time.perf_counter()
    simulate(["prucb-hp"], environment, checkpoints=10, **size)
    return {"seconds": time.perf_counter() - begun, "megabytes": _peak() - before}


def _peak() -> float:
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return p of cost ∝ sizeᵖ, fitted to the upper half of the sizes (two at least).

    >>> round(exponent([1, 10, 100, 1000], [5.0, 3.0, 30.0, 300.0]), 6)
    1.0
    """
    upper = slice(-max(2, math.ceil(len(sizes) / 2)), None)
    x, y = np.log(np.array(sizes[upper], dtype=float)), np.log(np.maximum(costs[upper], 1e-12))
    return float(np.polyfit(x, y, 1)[0])


def growth(*, quick: bool, cores: int) -> list[dict[str, Any]]:
    """Measure every axis."""
    found = []
    plans = []
    for axis in AXES:
        sizes = [size for size in axis.sizes if axis.field != "threads" or size <= cores]
        plans.append((axis, sizes[:-2] if quick and len(sizes) > 3 else sizes))
    with Bar("growth", total=sum(len(sizes) for _, sizes in plans)) as bar:
        for axis, sizes in plans:
            bar.rename(axis.name)
            rows = []
            for size in sizes:
                point = {**BASE, **axis.others, axis.field: size}
                if axis.field == "block_size":
                    point["arms"] = size
                command = [sys.executable, "-m", "benchmarks.growth", "--point", json.dumps(point)]
                done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", cwd=ROOT)
                rows.append({"size": size} | json.loads(done.stdout.splitlines()[-1]))
                bar.advance(1)
            enough = rows[-1]["megabytes"] >= LEAST
            found.append(
                {
                    "axis": axis.name,
                    "rows": rows,
                    "time": _fitted(rows, "seconds"),
                    "time_expected": axis.time,
                    "memory": _fitted(rows, "megabytes") if enough else math.nan,
                    "memory_expected": axis.memory,
                    "why": axis.why,
                }
            )
    return found


def _fitted(rows: Sequence[Mapping[str, float]], cost: str) -> float:
    if len(rows) < 2:
        return math.nan
    return exponent([int(row["size"]) for row in rows], [max(row[cost], 1e-3) for row in rows])


def text_of(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table."""
    lines = [
        f"{'against':<20}{'from':>9}{'to':>11}{'seconds':>19}{'exponent':>10}{'expected':>10}"
        f"{'megabytes':>19}{'exponent':>10}{'expected':>10}   because"
    ]
    for one in found:
        first, last = one["rows"][0], one["rows"][-1]
        times = f"{first['seconds']:.3g} … {last['seconds']:.3g}"
        sizes = f"{first['megabytes']:.1f} … {last['megabytes']:.1f}"
        lines.append(
            f"{one['axis']:<20}{first['size']:>9,}{last['size']:>11,}{times:>19}{_shown(one['time']):>10}"
            f"{one['time_expected']:>10}{sizes:>19}{_shown(one['memory']):>10}{one['memory_expected']:>10}"
            f"   {one['why']}"
        )
    return "\n".join(lines)


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def draw(found: Sequence[Mapping[str, Any]]) -> Any:
    """Draw seconds and megabytes against each size, with lines of the expected slope through the last point."""
    figure, axes = panels(len(found), columns=3, height=2.5, legend=0.35)
    for each, one in zip(axes, found, strict=True):
        sizes = np.array([row["size"] for row in one["rows"]], dtype=float)
        for cost, slope, colour in (("seconds", "time_expected", BLUE), ("megabytes", "memory_expected", AMBER)):
            values = np.array([max(row[cost], 1e-3) for row in one["rows"]])
            each.plot(sizes, values, marker="o", markersize=3.5, color=colour, linewidth=1.4)
            expected = values[-1] * (sizes / sizes[-1]) ** one[slope]
            each.plot(sizes, expected, color=colour, linestyle=(0, (2, 2)), linewidth=1.0)
        each.set(xscale="log", yscale="log")
        each.minorticks_off()
        each.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], fontsize=7)
        label(each, one["axis"], f"exponents: time {_shown(one['time'])}, memory {_shown(one['memory'])}")
    names = ["seconds", "megabytes", "expected slope"]
    legend_above(figure, names, [(BLUE, "-"), (AMBER, "-"), ("#666666", (0, (2, 2)))])
    note(figure, "PRUCB-HP; exponents fitted to the upper half")
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without the two largest sizes of each")
    parser.add_argument("--cores", type=int, default=_cores(), help="the most threads (default: as many as cores)")
    parser.add_argument("--output", type=Path, default=ROOT / "reports" / "growth", help="default: reports/growth")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.point:
        print(json.dumps(measure(json.loads(options.point))))
        return 0
    found = growth(quick=options.quick, cores=options.cores)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "growth.json").write_text(to_json(found, indent=1), encoding="utf-8")
    save_figure(draw(found), options.output / "growth")
    print(text_of(found))
    return 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


if __name__ == "__main__":
    sys.exit(main())
