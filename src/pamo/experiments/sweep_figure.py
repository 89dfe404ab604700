"""The figure of a sweep: what each setting and each hyperparameter that was varied did to the regret."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo.experiments.figures import label, legend_above, note, panels
from pamo.experiments.sweep import Found, varied
from pamo.simulation.plot import Style, printed, styles_for

_MOST_PANELS = 12
_WIDE = 30.0
"""The greatest over the least value from which on an axis is logarithmic."""


def draw_sweep(found: Found) -> Any:
    """Draw a panel for each field that was varied.

    Of a setting: the regret of each policy's best candidate. Of a hyperparameter: every run's regret over the best of
    its setting, with the geometric mean at each value. Where no field was varied: the same by policy.
    """
    rows, fields = found.rows, varied(found)
    ids = list(dict.fromkeys(policy.id for policy in found.spec.candidates.values()))
    styles = styles_for(ids)
    shown = list(fields.items())[:_MOST_PANELS]
    figure, axes = panels(max(len(shown), 1), legend=0.35 + 0.2 * ((len(ids) - 1) // 8))
    if not shown:
        for row in rows:
            axes[0].plot([row["share"]], [ids.index(row["id"])], "o", color=styles[row["id"]][0], markersize=5)
        axes[0].set_yticks(range(len(ids)), list(map(printed, ids)), fontsize=8.5)
        label(axes[0], x="regret over the setting's best")
    for each, ((of, name), values) in zip(axes, shown, strict=False):
        if of == "environment":
            _draw_setting(each, rows, values, styles)
            label(each, f"setting: {name}", name, "regret of each policy's best")
        else:
            _draw_hyperparameter(each, rows, values, styles[of])
            label(each, f"{printed(of)}: {name}", name, "regret over the setting's best")
    left = len(fields) - len(shown)
    note(figure, f"mean of up to {found.spec.rungs[-1]} trials{f'; {left} fields not shown' if left > 0 else ''}")
    legend_above(figure, list(map(printed, ids)), list(styles.values()))
    return figure


def _draw_setting(each: Any, rows: Sequence[Mapping[str, Any]], values: list[Any], styles: Mapping[str, Style]) -> None:
    place = _places(each, values)
    for name, (colour, line) in styles.items():
        best: dict[float, list[float]] = {}
        settings = dict.fromkeys(row["setting"] for row in rows)
        for setting in settings:
            here = [(row["mean"], x) for row, x in zip(rows, place, strict=True) if _is(row, setting, name)]
            if here and not math.isnan(min(here)[1]):
                mean, x = min(here)
                best.setdefault(x, []).append(mean)
        if best:
            every = [(x, mean) for x, means in best.items() for mean in means]
            each.plot(*zip(*every, strict=True), "o", color=colour, markersize=3.5, alpha=0.5)
            _draw_means(each, best, colour, line)


def _draw_hyperparameter(each: Any, rows: Sequence[Mapping[str, Any]], values: list[Any], style: Style) -> None:
    place = _places(each, values)
    points: dict[float, list[float]] = {}
    for row, x in zip(rows, place, strict=True):
        if not math.isnan(x) and row["share"] > 0:
            points.setdefault(x, []).append(row["share"])
    every = [(x, share) for x, shares in points.items() for share in shares]
    if every:
        each.plot(*zip(*every, strict=True), "o", color=style[0], markersize=3.5, alpha=0.5)
        _draw_means(each, points, *style)


def _draw_means(each: Any, points: Mapping[float, Sequence[float]], colour: str, line: Any) -> None:
    means = [(x, float(np.exp(np.log(np.maximum(points[x], 1e-300)).mean()))) for x in sorted(points)]
    each.plot(*zip(*means, strict=True), color=colour, linestyle=line, linewidth=1.4)
    low, high = (bound(value for some in points.values() for value in some) for bound in (min, max))
    if high > 10 * max(low, 1e-9):
        each.set_yscale("log")


def _is(row: Mapping[str, Any], setting: str, name: str) -> bool:
    return bool(row["setting"] == setting and row["id"] == name)


def _places(each: Any, values: Sequence[Any]) -> list[float]:
    """Return where each value is on the axis, NaN for none, and give it ticks: numbers by size, words side by side."""
    given = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        if min(given) > 0 and max(given) > _WIDE * min(given):
            each.set_xscale("log")
        return [math.nan if value is None else float(value) for value in values]
    words = list(dict.fromkeys(map(str, given)))
    each.set_xticks(range(len(words)), words, fontsize=8)
    return [math.nan if value is None else float(words.index(str(value))) for value in values]
