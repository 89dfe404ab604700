"""Figures of results: one colour and line style a policy everywhere, readable in print and by colour-blind readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pamo.errors import InputError, missing_extra
from pamo.simulation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe & Ito's colours, told apart by every kind of colour vision; the line styles tell them apart in black and white.
_BLUE, _ORANGE, _GREEN, _PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
_SKY, _AMBER, _GREY, _OLIVE = "#56B4E9", "#E69F00", "#666666", "#117733"

STYLES: dict[str, tuple[str, Any]] = {
    "prucb-hp": (_BLUE, "-"),
    "prucb-up": (_BLUE, (0, (5, 1.5))),
    "prucb-kp": (_GREEN, "-"),
    "ucb-per-user": (_ORANGE, "-"),
    "greedy": (_OLIVE, (0, (1, 1))),
    "oful": (_PURPLE, "-"),
    "ucb": (_ORANGE, (0, (5, 1.5))),
    "moss": (_AMBER, (0, (3, 1, 1, 1))),
    "s-ucb": (_SKY, (0, (5, 1.5))),
    "s-moss": (_SKY, (0, (1, 1))),
    "pareto-ucb": (_GREY, "-"),
    "pareto-ts": (_GREY, (0, (3, 1, 1, 1))),
}
_SPARE = [(_BLUE, ":"), (_ORANGE, ":"), (_GREEN, "--"), (_PURPLE, "--"), ("#000000", "-."), (_AMBER, "-")]


def style_of(policy: str, place: int = 0) -> tuple[str, Any]:
    """Return a policy's colour and line style: its own, or by its place one of those kept for the unknown.

    >>> style_of("prucb-hp")
    ('#0072B2', '-')
    """
    return STYLES.get(policy, _SPARE[place % len(_SPARE)])


def require_matplotlib() -> Any:
    """Return `matplotlib.figure`, or say which extra installs it. pyplot is not used: it keeps global state."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise missing_extra("drawing a figure", "matplotlib", "plot") from error
    return matplotlib.figure


def draw_regret(axes: Axes, result: Result, *, log: bool = False) -> None:
    """Draw each policy's mean regret with its 95 % band, named at the right end of its line."""
    ends: list[tuple[float, str, str]] = []
    for place, (name, outcome) in enumerate(result.policies.items()):
        colour, line = style_of(name, place)
        mean, low, high = outcome.band()
        axes.fill_between(outcome.rounds, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(outcome.rounds, mean, color=colour, linestyle=line, linewidth=1.8)
        ends.append((float(mean[-1]), name, colour))
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    last = max(int(outcome.rounds[-1]) for outcome in result.policies.values())
    axes.set_xlim(0, last)
    axes.set_xlabel("round t")
    axes.set_ylabel("cumulative regret, all users")
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(axes, last, ends)


def label_ends(axes: Axes, x: float, ends: list[tuple[float, str, str]], *, size: float = 9.0) -> None:
    """Write names beside the right ends of lines, moved apart so that none covers another.

    ends: (y, name, colour). Each label keeps its order and moves as little as it must.
    """
    if not ends:
        return
    to_screen = axes.transData
    figure: Any = axes.get_figure()
    gap = size * 1.25 * figure.dpi / 72.0
    ordered = sorted(ends)
    wanted = np.array([to_screen.transform((x, y))[1] for y, _, _ in ordered])
    box = axes.get_window_extent()
    placed = spread(wanted, gap, float(box.y0), float(box.y1))
    for (y, name, colour), screen in zip(ordered, placed, strict=True):
        shift = screen - float(to_screen.transform((x, y))[1])
        moved = abs(shift) > 0.5 * gap
        axes.annotate(
            name,
            xy=(x, y),
            xytext=(10 if moved else 4, shift * 72.0 / figure.dpi),
            textcoords="offset points",
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
            if moved
            else None,
        )


def spread(wanted: Any, gap: float, low: float, high: float) -> Any:
    """Return heights at least `gap` apart, in the given rising order, as near to the wanted ones as they can be.

    >>> spread(np.array([0.0, 0.1]), 1.0, -5.0, 5.0).tolist()
    [-0.45, 0.55]
    """
    # Pool neighbours that would overlap into one block centred on the mean of what its members want.
    blocks: list[tuple[float, int]] = []
    for place, value in enumerate(wanted):
        center, count = float(value) - gap * place, 1
        while blocks and blocks[-1][0] > center:
            other, size = blocks.pop()
            center, count = (center * count + other * size) / (count + size), count + size
        blocks.append((center, count))
    flat = np.concatenate([np.full(count, center) for center, count in blocks]) + gap * np.arange(len(wanted))
    if flat[-1] > high:
        flat = flat - (flat[-1] - high)
    if flat[0] < low:
        flat = flat + (low - flat[0])
    return flat


def plot_result(result: Result, path: str | Path | None = None, *, title: str | None = None, log: bool = False) -> Any:
    """Draw a result; write it to `path` if there is one, else return the figure."""
    figure = require_matplotlib().Figure(figsize=(7.2, 4.4), dpi=144)
    axes = figure.add_axes((0.11, 0.13, 0.70, 0.76))
    environment = result.settings["environment"]
    trials = result.settings["trials"]
    default = (
        f"{environment['id']}: {environment['users']} users, {environment['arms']} arms, "
        f"D={environment['objectives']}; mean of {trials} trial{'s' if trials > 1 else ''}, 95 % band"
    )
    axes.set_title(title or default, fontsize=10, loc="left")
    draw_regret(axes, result, log=log)
    if path is None:
        return figure
    target = Path(path)
    if target.suffix not in (".svg", ".png", ".pdf"):
        raise InputError(f"expected a figure file that ends in .svg, .png or .pdf, got {target.name!r}")
    if not target.parent.is_dir():
        raise InputError(f"expected an existing folder to draw {target.name} into, got {target.parent}; make it first")
    figure.savefig(target)
    return target
