"""What the regret studies share: the paper's settings as cells, and tables of final regret for the reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pamo.experiments.figures import draw_curves
from pamo.experiments.grid import beats, curve, final
from pamo.experiments.study import Drawing, Finding, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.simulation import summarize

PREFERENCE_FREE = ("s-ucb", "s-moss", "pareto-ucb", "pareto-ts")
"""The policies that see rewards alone: they choose alike for every user (Definition 1)."""


def cell(users: int, block: int, objectives: int, preference: str, policies: Iterable[str]) -> dict[str, Any]:
    """Return one setting of the paper's experiments, by a name that says it all."""
    sizes = {"users": users, "block_size": block, "objectives": objectives, "preference": preference}
    return {
        "cell": f"{preference}, N={users}, K={users * block}, D={objectives}, blocks of {block}",
        "environment": {"id": "gaussian"} | sizes,
        "policies": list(policies),
    }


def interval_text(low: float, high: float, form: str = ".0f") -> str:
    """Return an interval as tables show it.

    >>> interval_text(0.5, 2.25, ".1f")
    '0.5 … 2.2'
    """
    return f"{low:{form}} … {high:{form}}"


def final_row(values: Any) -> dict[str, Any]:
    """Return a policy's final regret for the reader: its mean over trials and the mean's 95 % interval."""
    mean, _, low, high = summarize(values)
    return {"final regret": round(mean, 1), "95 % interval": interval_text(low, high)}


def regret_drawing(
    id: str, title: str, policies: Sequence[str], *, keep: str = "", trials: int | None = None, **parts: Any
) -> Drawing:
    """Return the figure of regret curves, a panel a setting, with its words and its table; parts: what is to differ.

    keep: what the settings' names must hold to be shown. trials: of how many trials, by default all.
    """

    def chosen(tables: Tables) -> list[str]:
        return [name for name in cells_of(tables) if keep in name]

    def count(tables: Tables) -> int | None:
        return None if trials is None else min(trials, int(max(tables["curves"]["trials"])))

    usual: dict[str, Any] = {
        "draw": lambda tables: draw_curves(tables, chosen(tables), policies, trials=count(tables)),
        "describe": lambda tables: describe_finals(tables, chosen(tables), policies, count(tables)),
        "twin": lambda tables: twin_of_finals(tables, chosen(tables), policies, count(tables)),
    }
    return Drawing(id, title, **(usual | parts))


def twin_of_finals(tables: Tables, cells: Sequence[str], policies: Sequence[str], trials: int | None = None) -> Table:
    """Return final regrets for the reader: mean and 95 % interval of the trials shown, by default all of them."""
    rows = []
    for name in cells:
        for policy in policies:
            values = final(tables, name, policy)[:trials]
            rows.append({"setting": name, "policy": policy} | final_row(values) | {"trials": len(values)})
    return Table.from_rows(rows)


def describe_finals(tables: Tables, cells: Sequence[str], policies: Sequence[str], trials: int | None = None) -> str:
    """Say in words how the curves end, lowest first, setting by setting; trials: of how many, by default all."""
    parts = []
    count = len(final(tables, cells[0], policies[0])[:trials])
    for name in cells:
        ends = sorted((float(curve(tables, name, policy, trials)["mean"][-1]), policy) for policy in policies)
        parts.append(f"{name}: " + ", ".join(f"{policy} {mean:,.0f}" for mean, policy in ends))
    return (
        f"Mean cumulative regret of {count} trials against rounds. Final values, lowest first. "
        + "; ".join(parts)
        + "."
    )


def count_beaten(
    tables: Tables, cells: Sequence[str], policy: str, others: Sequence[str]
) -> tuple[int, int, list[tuple[str, str]]]:
    """Return how many (setting, other) pairs the policy wins, how many there are, and those it does not win."""
    lost = [(name, other) for name in cells for other in others if not beats(tables, name, policy, other)]
    total = len(cells) * len(others)
    return total - len(lost), total, lost


SUPERIOR_RULE = (
    "if the 95 % interval of the paired difference of final regrets lies below zero. Confirmed if it wins all "
    "(setting, competitor) pairs, partly if more than half, else not."
)
SUPERIOR_REFUTED = (
    "A competitor whose regret is as low or lower, in any setting; in half of the pairs, for the worst verdict."
)


def judge_superior(tables: Tables, policy: str, others: Sequence[str]) -> Finding:
    """Judge whether a policy has less regret than each of the others in every setting, and say where it has not."""
    names = cells_of(tables)
    won, total, lost = count_beaten(tables, names, policy, others)
    seen = f"Lower regret in {won} of {total} comparisons ({len(names)} settings, {len(others)} competitors)."
    if lost:
        counts = Counter(other for _, other in lost)
        seen += f" Not lower than: {', '.join(f'{other} in {count}' for other, count in counts.most_common())} of "
        seen += f"{len(names)} settings."
    return Finding(judge_share(won, total), seen, {"won": won, "comparisons": total})


def cells_of(tables: Tables) -> list[str]:
    """Return the names of the settings that were run, in order."""
    return tables["finals"].distinct("cell")
