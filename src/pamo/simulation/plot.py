"""Figures of results: one colour and line style a policy everywhere, readable in print and by colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pamo.errors import missing_extra
from pamo.simulation.files import written_whole
from pamo.simulation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe & Ito's colours and some of Tol's, told apart by every kind of colour vision, for what is drawn most; the rest
# as far from them as can be. Lines and marks differ, so that those drawn together are told apart in black and white.
BLUE, SKY, VERMILION, AMBER, GREEN = "#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73"
PURPLE, FOREST, GREY, BLACK = "#AA4499", "#117733", "#666666", "#000000"
DASHED, DOTTED, MIXED = (0, (5, 1.5)), (0, (1, 1)), (0, (3, 1, 1, 1))

Style = tuple[str, Any]
"""A colour, and a line style as Matplotlib has it."""

_LOOKS: dict[str, tuple[str, Any, Any]] = {
    "prucb-hp": (BLUE, "-", "o"),
    "prucb-up": (SKY, DASHED, "s"),
    "prucb-kp": (BLACK, DOTTED, "x"),
    "prucb-hp-v": ("#332288", "-", "h"),
    "prucb-up-v": ("#1F8093", "-", "p"),
    "prucb-kp-v": ("#882255", DASHED, "d"),
    "prts": ("#FF1A8C", "-", "1"),
    "s-ucb": (GREEN, DASHED, "P"),
    "s-moss": ("#999933", DOTTED, "X"),
    "pareto-ucb": (GREY, "-", "*"),
    "pareto-ts": ("#CC6677", MIXED, "+"),
    "oful": (PURPLE, "-", "^"),
    "ucb": ("#8C510A", DASHED, "<"),
    "moss": (AMBER, MIXED, ">"),
    "ucb-per-user": (VERMILION, "-", "v"),
    "greedy": (FOREST, "-", "D"),
    "sw-ucb": ("#800015", "-", "2"),
    "d-ucb": ("#FF1A40", DASHED, "3"),
    "sw-pareto-ucb": ("#475629", "-", "4"),
    "d-pareto-ucb": ("#8CBD28", DASHED, "8"),
    "exp3": ("#1A1AFF", MIXED, "H"),
    "pareto-kg": ("#C5A687", "-", "|"),
    "mo-ogde": ("#9500B2", "-", "_"),
    "lex": ("#A687C5", DASHED, 4),
    "pareto-ts-cov": ("#78443A", DOTTED, 5),
    "pareto-linucb": ("#00B200", "-", 6),
    "its": ("#E600BF", MIXED, 7),
}
STYLES: dict[str, Style] = {name: (colour, line) for name, (colour, line, _) in _LOOKS.items()}
"""A colour for each policy, and no colour twice."""
MARKERS = {name: mark for name, (_, _, mark) in _LOOKS.items()}
"""A mark for each, where many lines meet: they are told apart without colour, too."""
PRINTED = {
    "prucb-kp": "GT (PRUCB-KP)",
    "ucb-per-user": "UCB per user",
    "greedy": "greedy",
    "pareto-ucb": "Pareto-UCB",
    "pareto-ts": "Pareto-TS",
    "sw-pareto-ucb": "SW-Pareto-UCB",
    "d-pareto-ucb": "D-Pareto-UCB",
    "pareto-kg": "Pareto-KG",
    "pareto-ts-cov": "Pareto-TS, covariance",
    "pareto-linucb": "Pareto-LinUCB",
    "lex": "Lex-UCB",
}
_LABEL, _LEADER = 9.0, 14.0  # a label's size and its distance from its line, in points
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_SPARE = ("#B96CE0", "#7FB464", "#D75B42", "#1A8CFF", "#D78C42", "#00B259", "#884DFF", "#B20000")
"""For policies of one's own, none of them another policy's."""


def styles_for(names: Iterable[str]) -> dict[str, Style]:
    """Return the colour and line style of each policy of a figure: its own, or for an unknown one a colour left over.

    >>> styles_for(["moss", "mine"])
    {'moss': ('#E69F00', (0, (3, 1, 1, 1))), 'mine': ('#B96CE0', '-')}
    """
    several = list(names)
    unknown = [name for name in several if name not in STYLES]
    spare = {name: (_spare(place), ("-", DASHED, DOTTED, MIXED)[place % 4]) for place, name in enumerate(unknown)}
    return {name: STYLES.get(name) or spare[name] for name in several}


def _spare(place: int) -> str:
    """Return one of the colours left over; beyond these, hues a golden section apart, so that none comes again."""
    if place < len(_SPARE):
        return _SPARE[place]
    red, green, blue = hls_to_rgb(place * 0.618034 % 1.0, 0.3 + 0.1 * (place % 3), 0.5)
    return f"#{round(255 * red):02X}{round(255 * green):02X}{round(255 * blue):02X}"


def printed(name: str) -> str:
    """Return a policy's name as the paper prints it, with what was changed of it.

    >>> printed("prucb-hp"), printed("pareto-ts"), printed("oful:epsilon=0.1"), printed("mine")
    ('PRUCB-HP', 'Pareto-TS', 'OFUL:epsilon=0.1', 'mine')
    """
    base, colon, changed = name.partition(":")
    return (PRINTED.get(base) or (base.upper() if base in STYLES else base)) + colon + changed


def require_matplotlib() -> Any:
    """Return `matplotlib.figure`, or say which extra installs it. pyplot is not used: it keeps global state."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise missing_extra("drawing a figure", "matplotlib", "plot") from error
    return matplotlib.figure


def tidy(axes: Axes) -> None:
    """Give axes the common look."""
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_line(axes: Axes, x: Any, y: Any, style: Style, **look: Any) -> None:
    """Draw a line in a policy's style; a broken one above a solid one lets both be seen where they meet."""
    colour, line = style
    axes.plot(x, y, color=colour, linestyle=line, zorder=2.0 if line == "-" else 2.1, **look)


def draw_band(axes: Axes, x: Any, mean: Any, low: Any, high: Any, style: Style, **look: Any) -> None:
    """Draw a mean and the band around it."""
    axes.fill_between(x, low, high, color=style[0], alpha=0.18, linewidth=0)
    draw_line(axes, x, mean, style, **look)


def draw_regret(axes: Axes, result: Result, *, log: bool = False) -> None:
    """Draw each policy's mean regret with its 95 % band, named at the right end of its line."""
    ends: list[tuple[float, str, str]] = []
    lowest = 0.0
    for name, (colour, line) in styles_for(result).items():
        outcome = result[name]
        mean, low, high = outcome.band()
        draw_band(axes, outcome.rounds, mean, low, high, (colour, line), linewidth=1.8)
        ends.append((float(mean[-1]), name, colour))
        lowest = min(lowest, float(low.min()))
    if log and any(height > 0.0 for height, _, _ in ends):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=lowest)
    last = max(int(outcome.rounds[-1]) for outcome in result.policies.values())
    axes.set_xlim(0, last)
    axes.set_xlabel("round t")
    axes.set_ylabel("cumulative regret, all users")
    tidy(axes)
    label_ends(axes, last, ends)


def label_ends(axes: Axes, x: float, ends: list[tuple[float, str, str]], *, size: float = _LABEL) -> None:
    """Write names beside the right ends of lines, moved apart so that none covers another.

    ends: (y, name, colour). Each label keeps its order and moves as little as it must.
    """
    if not ends:
        return
    figure: Any = axes.get_figure()
    gap = size * 1.25 * figure.dpi / 72.0
    ordered = sorted(ends)
    wanted = np.array([axes.transData.transform((x, y))[1] for y, _, _ in ordered])
    box = axes.get_window_extent()
    for (y, name, colour), at, screen in zip(ordered, wanted, spread(wanted, gap, box.y0, box.y1), strict=True):
        axes.annotate(
            name,
            xy=(x, y),
            xytext=(_LEADER, (screen - at) * 72.0 / figure.dpi),
            textcoords="offset points",
            color=ink(colour),
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),  # to the middle of the label's left side
            },
        )


def ink(colour: str) -> str:
    """Return the colour, darkened until text in it can be read on white (a contrast of 4.5, WCAG's AA).

    >>> ink("#0072B2"), ink("#E69F00")
    ('#0072b2', '#9c6c00')
    """
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
    factor = 1.0
    while _contrast(parts * factor) < 4.5:
        factor -= 0.01
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts * factor)


def _contrast(parts: Any) -> float:
    """Return how a colour stands out from white, from 1 (not at all) to 21 (black), as WCAG defines it."""
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ np.array([0.2126, 0.7152, 0.0722]) + 0.05))


def spread(wanted: Any, gap: float, low: float, high: float) -> Any:
    """Return heights at least `gap` apart, in the given rising order, as near to the wanted ones as they can be.

    >>> spread(np.array([0.0, 0.1]), 1.0, -5.0, 5.0).tolist()
    [-0.45, 0.55]
    """
    # Without its place's share of the gaps, a height may equal its neighbour's: pool those that are out of order into
    # blocks, each at the mean of what its members want, and keep all within the limits (isotonic regression).
    blocks: list[tuple[float, int]] = []
    for place, value in enumerate(wanted):
        center, count = float(value) - gap * place, 1
        while blocks and blocks[-1][0] > center:
            other, size = blocks.pop()
            center, count = (center * count + other * size) / (count + size), count + size
        blocks.append((center, count))
    top = high - gap * (len(wanted) - 1)
    if top < low:  # more than there is room for: as much over the top as under the bottom
        low = top = (low + top) / 2.0
    centers = np.concatenate([np.full(count, center) for center, count in blocks])
    return np.clip(centers, low, top) + gap * np.arange(len(wanted))


@cache
def _shown(figure: Any) -> Any:
    """Return the class of figures that show themselves in a notebook: without pyplot Matplotlib's do not."""

    class Shown(figure):  # type: ignore[misc]
        def _repr_png_(self) -> bytes:
            written = BytesIO()
            self.savefig(written, format="png")
            return written.getvalue()

    return Shown


def plot_result(result: Result, path: str | Path | None = None, *, title: str | None = None, log: bool = False) -> Any:
    """Draw a result; write it to `path` if there is one, else return the figure."""
    figure_module = require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.textpath import TextPath

    figure = _shown(figure_module.Figure)(figsize=(7.2, 4.4), dpi=144)
    labels = _LEADER + max(TextPath((0, 0), name, size=_LABEL).get_extents().width for name in result.policies)
    axes = figure.add_axes((0.11, 0.13, max(0.86 - labels / (72.0 * 7.2), 0.3), 0.76))
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
    undated = rc_context({"svg.hashsalt": "pamo"})  # and no date below: the same result draws the same file
    with undated, written_whole(target, "figure", (".svg", ".png", ".pdf")) as partial:
        figure.savefig(partial, format=target.suffix[1:], metadata=_UNDATED.get(target.suffix))
    return target
