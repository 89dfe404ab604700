"""Drawing for studies: panels in one style, a legend above them that hides nothing, SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pamo.experiments.grid import curve
from pamo.experiments.tables import Table, Tables
from pamo.simulation.plot import MARKERS, Style, draw_band, printed, require_matplotlib, styles_for, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0
"""Inches: what fits a page, and a screen at 100 dpi."""

INK = "#222222"
_FOOT = 0.17
"""Inches at the foot, for a note on what is shown."""
_IN_A_LINE = 6
"""Names of policies in a line of a legend."""


def panels(count: int, *, columns: int = 3, height: float = 2.7, legend: float = 0.55) -> tuple[Any, list[Axes]]:
    """Return a figure with so many panels and room for a legend above them (`legend` inches of it)."""
    columns = min(columns, count)
    rows = -(-count // columns)
    tall = rows * height + legend + _FOOT
    figure = require_matplotlib().Figure(figsize=(WIDTH, tall), dpi=100, layout="constrained")
    figure.get_layout_engine().set(rect=(0, _FOOT / tall, 1, rows * height / tall), w_pad=0.08, h_pad=0.08)
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
    for each in axes:
        tidy(each)
        each.tick_params(labelsize=8, color=INK)
    return figure, axes


def note(figure: Any, text: str) -> None:
    """Say at the foot what is shown: of how many trials, and which band."""
    figure.text(0.995, 0.01, text, ha="right", va="bottom", fontsize=8, color=INK)


def titled(cell: str) -> str:
    """Return a setting's name in two lines, since a third of a page is too narrow for it.

    >>> titled("random, N=10, K=50, D=5, blocks of 5")
    'random preferences\\nN=10, K=50, D=5, blocks of 5'
    """
    return cell.replace(", N=", " preferences\nN=", 1)


def label(axes: Axes, title: str = "", x: str = "", y: str = "", *, size: float = 8.5) -> None:
    """Write a panel's title and the labels of its axes, as far as they are given; size: of the labels, in points."""
    if title:
        axes.set_title(title, fontsize=9, loc="left")
    if x:
        axes.set_xlabel(x, fontsize=size)
    if y:
        axes.set_ylabel(y, fontsize=size)


def log_rounds(axes: Axes, last: float, *, first: int = 1) -> None:
    """Give rounds a logarithmic axis with a tick at each power of ten."""
    decades = [tick for tick in (1, 10, 100, 1000, 10_000, 100_000) if first <= tick <= last]
    axes.set_xscale("log")
    axes.set_xticks(decades, [f"{tick:,}" for tick in decades])
    axes.minorticks_off()


def write_at(axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """Write a text beside a point, moved by so many points of the page."""
    placed: dict[str, Any] = {"fontsize": 8, "va": "center", "textcoords": "offset points"} | look
    axes.annotate(text, at, xytext=offset, **placed)


def legend_above(
    figure: Any, names: Sequence[str], styles: Sequence[Style], *, columns: int = 8, markers: Sequence[str] = ()
) -> None:
    """Write the legend into the room above the panels, a line sample, with its marker, and a name each."""
    from matplotlib.lines import Line2D

    marks = list(markers) or [""] * len(styles)
    handles = [
        Line2D([], [], color=colour, linestyle=line, linewidth=2, marker=mark, markersize=5)
        for (colour, line), mark in zip(styles, marks, strict=True)
    ]
    figure.legend(
        handles,
        list(names),
        loc="upper left",
        ncols=min(columns, len(names)),
        frameon=False,
        fontsize=8.5,
        handlelength=2.6,
        columnspacing=1.4,
    )


def draw_curves(
    tables: Tables,
    cells: Sequence[str],
    policies: Sequence[str],
    *,
    trials: int | None = None,
    columns: int = 3,
    log: bool = False,
) -> Any:
    """Draw mean regret with its 95 % band, a panel a cell, each policy in its own colour and with its own mark.

    Regret has a logarithmic axis, so that the worst policy does not flatten the contested ones; with `log` rounds too.
    """
    styles = styles_for(policies)
    figure, axes = panels(len(cells), columns=columns, legend=0.28 + 0.2 * (-(-len(policies) // _IN_A_LINE)))
    for place, (each, cell) in enumerate(zip(axes, cells, strict=True)):
        least, most = np.inf, 0.0
        for number, (policy, style) in enumerate(styles.items()):
            rows = curve(tables, cell, policy, trials)
            spaced = (number / len(styles) / 8, 0.125)  # so that marks of lines that meet do not
            draw_rows(
                each, rows, "round", style, linewidth=1.4, marker=MARKERS.get(policy), markersize=4, markevery=spaced
            )
            seen = rows["mean"][(rows["round"] >= (0.0 if log else 0.02 * rows["round"][-1])) & (rows["mean"] > 0.0)]
            least, most = min(least, float(seen[0])), max(most, float(seen[-1]))
        each.set_yscale("log")
        each.set_ylim(max(0.5 * least, (1e-7 if log else 1e-3) * most), 1.6 * most)
        if log:
            log_rounds(each, rows["round"][-1])
        else:
            each.set_xlim(left=0)
        label(each, titled(cell), "round t", "regret, all users" if place % columns == 0 else "", size=8)
    count = max(tables["curves"]["trials"]) if trials is None else trials
    note(figure, f"mean of {count} trials, 95 % band; one that meets the foot reaches 0")
    marks = [MARKERS.get(policy, "") for policy in policies]
    legend_above(figure, list(map(printed, policies)), list(styles.values()), columns=_IN_A_LINE, markers=marks)
    return figure


def draw_rows(axes: Axes, rows: Table, x: str, style: Style, **look: Any) -> None:
    """Draw a table's `mean` with the band from `low` to `high` against its column x."""
    draw_band(axes, rows[x], rows["mean"], rows["low"], rows["high"], style, **look)


def draw_bars(
    axes: Axes,
    names: Sequence[str],
    intervals: Sequence[tuple[float, float, float]],
    *,
    colours: Sequence[str],
    form: str = "{:,.0f}",
) -> None:
    """Draw horizontal bars with their 95 % intervals (mean, low, high), the first on top, the mean at its end."""
    means, lows, highs = zip(*intervals, strict=True)
    places = np.arange(len(names))[::-1]
    axes.barh(places, means, color=list(colours), height=0.62)
    errors = [np.subtract(means, lows), np.subtract(highs, means)]
    axes.errorbar(means, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
    reach = max(*highs, *means)
    for place, mean, high in zip(places, means, highs, strict=True):
        axes.text(max(mean, high) + 0.015 * reach, place, form.format(mean), va="center", fontsize=8)
    axes.set_yticks(places, names, fontsize=8.5)
    axes.set_xlim(0, reach * 1.16)
    axes.grid(visible=False, axis="y")


def save_to(figure: Any, target: Path) -> Path:
    """Write the figure to one file, in the format that its ending names."""
    figure.savefig(target, facecolor="white", dpi=150)
    return target


def save_figure(figure: Any, stem: Path) -> list[str]:
    """Write the figure as SVG and PNG and return the files' names; text is drawn as shapes, so fonts cannot differ."""
    from matplotlib import rc_context

    names = []
    figure.get_layout_engine().execute(figure)  # the panels find their places once, and keep them in both files
    figure.set_layout_engine(None)  # and not "none", for which each file would be drawn twice
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": stem.name}):
        for ending, options in ((".svg", {"metadata": {"Date": None}}), (".png", {"dpi": 150})):
            target = stem.with_suffix(ending)
            figure.savefig(target, facecolor="white", **options)
            names.append(target.name)
    return names
