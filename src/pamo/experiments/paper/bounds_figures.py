"""The figures of the study `bounds`: bounds over regret, bounds far out, and growth with T, K, D and N."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.experiments.figures import draw_rows, label, legend_above, log_rounds, note, panels, write_at
from pamo.experiments.paper.bounds_runs import (
    ALL,
    CLEAR,
    HIDDEN,
    KNOWN,
    POLICIES,
    PRESCRIBED,
    STATED,
    THEOREMS,
    doublings_of,
)
from pamo.experiments.paper.regret import interval_text
from pamo.experiments.study import Drawing
from pamo.experiments.tables import Table, Tables
from pamo.simulation.plot import BLACK, DASHED, DOTTED, GREY, MIXED, STYLES, Style, draw_line, ink, printed, spread

_STYLES: dict[str, Style] = {name: STYLES[name] for name in (HIDDEN, STATED, KNOWN)}
_STYLES[PRESCRIBED] = (STYLES[HIDDEN][0], MIXED)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_AXES = {"T": "rounds T", "K": "arms K", "D": "objectives D", "N": "users N"}


_INSTANCES = "N=2, K=10, D=3"


def _name(policy: str) -> str:
    """Return a policy's name as it is printed, without the settings that it is run with."""
    return printed(policy.partition(",")[0])


def rounded(value: float) -> str:
    """Return a large number as a reader would write it.

    >>> rounded(8.1234e8)
    '8.1·10⁸'
    """
    power = math.floor(math.log10(value))
    return f"{value / 10**power:.1f}·10{str(power).translate(_RAISED)}"


def says_more(rows: Table) -> npt.NDArray[np.bool_]:
    """Tell where a bound is below the trivial one, and so says more than that."""
    below: npt.NDArray[np.bool_] = rows["bound"] < (1 - 1e-9) * rows["trivial"]
    return below


def says_more_from(tables: Tables, policy: str) -> float:
    """Return the T from which on the bound of the median instance is below the trivial one, infinity if never."""
    far = tables["horizon"].where(policy=policy)
    later = far["round"][says_more(far)]
    return float(later[0]) if len(later) else math.inf


def warm_up_of(tables: Tables) -> float:
    """Return Theorem 1's M."""
    return float(tables["horizon"].where(policy=PRESCRIBED)["M"][0])


def axis_of(row: Mapping[str, Any]) -> str:
    """Return which exponent a row has, in words."""
    if row["axis"] != "T":
        return str(row["axis"])
    return (
        f"T (all {row['trials']} instances)" if row["instances"] == ALL else f"T ({row['trials']} {row['instances']})"
    )


def _draw_regret(tables: Tables) -> Any:
    figure, axes = panels(3, columns=3, height=3.4, legend=0.4)
    for each, policy in zip(axes, THEOREMS, strict=True):
        rows, trials = tables["curves"].where(policy=policy), tables["trials"].where(policy=policy)
        paper, colour = int(trials["rounds"][0]), _STYLES[policy][0]
        each.plot(rows["round"], rows["round"] * np.median(trials["trivial"]) / paper, color=GREY, ls=DOTTED, lw=1.6)
        each.fill_between(rows["round"], rows["bound, 10 %"], rows["bound, 90 %"], color=colour, alpha=0.15, lw=0)
        each.plot(rows["round"], rows["bound"], color=colour, linestyle=DASHED, linewidth=1.5)
        each.plot(rows["round"], rows["without M"], color=colour, linestyle=MIXED, linewidth=1.2)
        each.fill_between(rows["round"], rows["low"], rows["high"], color=colour, alpha=0.25, linewidth=0)
        each.plot(rows["round"], rows["mean"], color=colour, linewidth=1.8)
        each.axvline(paper, color=GREY, linewidth=0.8)
        each.text(
            paper, 0.03, f"T = {paper:,} ", transform=each.get_xaxis_transform(), fontsize=8, color=GREY, ha="right"
        )
        each.set_yscale("log")
        each.set_ylim(0.1, 3e6)
        log_rounds(each, rows["round"][-1])
        label(each, f"{THEOREMS[policy]}: {_name(policy)}", "rounds T", "regret, all users")
    note(figure, f"{_INSTANCES}; mean of {len(trials)} trials, 95 % band")
    axes[0].text(1.2, 5e5, f"the bound is the trivial one\nup to M = {rounded(warm_up_of(tables))}", fontsize=8)
    names = ["mean regret", "bound: median and 80 % of instances", "trivial bound", "Theorem 1 if M were 0 (no bound)"]
    lines = ["-", DASHED, DOTTED, MIXED]
    legend_above(figure, names, [(GREY if line == DOTTED else BLACK, line) for line in lines])
    return figure


def _describe_regret(tables: Tables) -> str:
    parts = []
    for policy, theorem in THEOREMS.items():
        rows = tables["trials"].where(policy=policy)
        parts.append(
            f"{theorem} ({policy}): regret {rows['regret'].mean():,.0f}, bound {np.median(rows['bound']):,.0f}, "
            f"trivial bound {np.median(rows['trivial']):,.0f}"
        )
    return (
        "Mean regret, the theorem's bound, and the trivial bound (every round as costly as can be) against the rounds, "
        f"on logarithmic axes. The bounds are far above. At T = {tables['trials']['rounds'][0]:,}: {'; '.join(parts)}."
    )


def _twin_regret(tables: Tables) -> Table:
    wanted = np.array([10, 30, 100, 300, 1000, 2500, 5000, 10_000, 20_000, 40_000])
    rounds = np.unique(tables["curves"]["round"])
    shown = set(rounds[np.searchsorted(rounds, wanted[wanted <= rounds[-1]])].tolist())
    rows = [row for policy in THEOREMS for row in tables["curves"].where(policy=policy).rows() if row["round"] in shown]
    return Table.from_rows(rows).told(
        {
            "bound of": lambda row: THEOREMS[row["policy"]],
            "policy": "policy",
            "rounds": "round",
            "mean regret": ("mean", 1),
            "95 % interval": lambda row: interval_text(row["low"], row["high"], ".1f"),
            "bound, median instance": lambda row: round(row["bound"]),
            "bound/regret, median": lambda row: float(f"{row['ratio']:.3g}"),
        }
    )


def _draw_horizon(tables: Tables) -> Any:
    figure, (axes,) = panels(1, columns=1, height=3.7, legend=0.25)
    hidden = tables["trials"].where(policy=PRESCRIBED)
    paper = int(hidden["rounds"][0])
    decisions = float(hidden["trivial"][0]) / paper
    for policy in THEOREMS:
        far, seen = tables["horizon"].where(policy=policy), tables["curves"].where(policy=policy)
        draw_line(axes, far["round"], np.minimum(far["bound"], far["trivial"]), _STYLES[policy], linewidth=1.6)
        late = seen["round"] >= far["round"][0]
        measured = seen["mean"] / seen["round"] / decisions
        draw_line(axes, seen["round"][late], measured[late], _STYLES[policy], linewidth=3.0)
    write_at(axes, "measured", (float(seen["round"][-1]), float(measured[-1])), (6, 6))  # at the last one's end
    warm_up = warm_up_of(tables)
    write_at(axes, f"M = {rounded(warm_up)}", (warm_up, 1.0), (4, 3), va="bottom")
    axes.axvline(paper, color=GREY, linewidth=0.8)
    axes.text(paper * 1.15, 2e-7, f"the paper's T = {paper:,}", fontsize=8, color=GREY)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-7, 5)
    axes.minorticks_off()
    label(axes, x="rounds T", y="regret a decision")
    note(figure, f"{_INSTANCES}; {len(hidden)} trials")
    names = [f"{theorem}, {_name(policy)}" for policy, theorem in THEOREMS.items()]
    legend_above(figure, names, [_STYLES[policy] for policy in THEOREMS])
    return figure


def _describe_horizon(tables: Tables) -> str:
    parts = []
    for policy, theorem in THEOREMS.items():
        since = says_more_from(tables, policy)
        parts.append(f"{theorem} {f'from T = {rounded(since)} on' if math.isfinite(since) else 'at no T shown'}")
    return (
        "Regret a decision: what is measured (thick, up to the last round run) and what the bounds allow (thin, up to "
        "T = 10¹², never more than the trivial bound) against the rounds, on logarithmic axes. A bound says more than "
        f"the trivial one, in the median instance: {', '.join(parts)}."
    )


def _twin_horizon(tables: Tables) -> Table:
    rows = []
    for power in range(2, 13):
        row: dict[str, Any] = {"rounds": f"10{str(power).translate(_RAISED)}"}
        for policy, theorem in THEOREMS.items():
            far = tables["horizon"].where(policy=policy)
            place = int(np.argmin(np.abs(np.log10(far["round"]) - power)))
            row[f"{theorem}: bound on a decision's regret"] = float(f"{far['bound'][place]:.3g}")
        rows.append(row)
    return Table.from_rows(rows)


def _draw_scaling(tables: Tables) -> Any:
    figure, axes = panels(4, columns=2, height=2.9, legend=0.4)
    for each, (axis, words) in zip(axes, _AXES.items(), strict=True):
        found = tables["exponents"].where(axis=axis, instances=ALL)
        ends = []
        for policy in POLICIES:
            rows = _by_size(tables, axis, policy)
            width = 2.6 if policy == STATED else 1.6  # PRUCB-KP lies upon it
            draw_rows(each, rows, "size", _STYLES[policy], linewidth=width)
            (row,) = found.where(policy=policy).rows()
            bound = f", bound {row['bound']:.2f}" if math.isfinite(row["bound"]) else ""
            ends.append((float(rows["mean"][-1]), f"{_power(row)}{bound}", ink(_STYLES[policy][0])))
        sizes = rows["size"].tolist()
        each.set_xscale("log")
        each.set_yscale("log")
        each.set_xlim(sizes[0] * 0.93, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.38)
        each.set_xticks(sizes, [f"{size:,}" for size in sizes])
        low, high = each.get_ylim()
        ticks = [step * 10**power for power in range(-1, 6) for step in (1, 2, 5) if low < step * 10**power < high]
        each.set_yticks(ticks, [f"{tick:,.0f}" for tick in ticks])
        each.minorticks_off()
        _label_ends(each, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.03, ends)
        label(each, f"{words}: fitted exponents beside the lines", words, "regret, all users")
    names = [_name(policy) + "".join(policy.partition(",")[1:]) for policy in POLICIES]
    legend_above(figure, names, [_STYLES[policy] for policy in POLICIES])
    counts = [f"{axis} {found['trials'][0]}" for axis in _AXES for found in [tables["exponents"].where(axis=axis)]]
    note(figure, f"{_INSTANCES} where they are not varied; mean of the trials ({', '.join(counts)}), 95 % band")
    return figure


def _label_ends(axes: Any, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Write a text beside the end of each line, moved apart so that none covers another."""
    low, high = np.log(axes.get_ylim())
    ordered = sorted(ends)
    wanted = (np.log([y for y, _, _ in ordered]) - low) / (high - low)
    for (_, text, colour), height in zip(ordered, spread(wanted, 0.075, 0.03, 0.97), strict=True):
        axes.text(x, height, text, transform=axes.get_xaxis_transform(), fontsize=8, color=colour, va="center")


def _by_size(tables: Tables, axis: str, policy: str) -> Table:
    """Return mean regret with its interval at each size; in T at the doublings that exponents are fitted to."""
    if axis != "T":
        return tables["sizes"].where(axis=axis, policy=policy)
    rows = tables["curves"].where(policy=policy)
    keep = np.isin(rows["round"], doublings_of(int(rows["round"][-1])))
    return Table({"size": rows["round"][keep]} | {name: rows[name][keep] for name in ("mean", "low", "high")})


def _describe_scaling(tables: Tables) -> str:
    parts = []
    for policy in POLICIES:
        rows = tables["exponents"].where(policy=policy).rows()
        parts.append(f"{policy}: " + ", ".join(f"{axis_of(row)} {_power(row)}" for row in rows))
    return (
        "Mean regret against rounds, arms, objectives and users, one varied at a time, on logarithmic axes. Fitted "
        f"exponents of {'; '.join(parts)}."
    )


def _twin_scaling(tables: Tables) -> Table:
    rows: list[dict[str, Any]] = []
    for axis, words in _AXES.items():
        by_policy = {policy: _by_size(tables, axis, policy) for policy in POLICIES}
        for place, size in enumerate(by_policy[PRESCRIBED]["size"].tolist()):
            row = {"varied": words, "size": f"{size:,}"}
            rows.append(row | {policy: f"{table['mean'][place]:,.1f}" for policy, table in by_policy.items()})
        for instances in (ALL, CLEAR):
            found = tables["exponents"].where(axis=axis, instances=instances)
            if len(found):
                cells = {row["policy"]: _with_bound(row) for row in found.rows()}
                rows.append({"varied": words, "size": f"exponent, {instances}"} | cells)
    return Table.from_rows(rows)


def _with_bound(row: Mapping[str, Any]) -> str:
    bound = f"; bound {row['bound']:.2f}" if math.isfinite(row["bound"]) else ""
    interval = f" [{row['low']:z.2f}, {row['high']:z.2f}]" if row["monotone"] else ""
    return f"{_power(row)}{interval}{bound}"


def _power(row: Mapping[str, Any]) -> str:
    """Return the exponent, or that there is none where the regret rises and falls."""
    return f"{row['exponent']:z.2f}" if row["monotone"] else "no power law"


DRAWINGS = (
    Drawing("bounds-regret", "The bounds over the regret", _draw_regret, _describe_regret, _twin_regret),
    Drawing(
        "bounds-horizon", "From which T on the bounds say something", _draw_horizon, _describe_horizon, _twin_horizon
    ),
    Drawing("bounds-scaling", "How regret grows with T, K, D and N", _draw_scaling, _describe_scaling, _twin_scaling),
)
