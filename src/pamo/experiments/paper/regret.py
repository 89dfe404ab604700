"""What the regret studies share: the paper's settings as cells, and tables of final regret for the reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pamo.experiments.figures import draw_curves
from pamo.experiments.grid import PAPER_TRIALS, beats, curve, final
from pamo.experiments.study import Drawing
from pamo.experiments.tables import Table, Tables
from pamo.simulation import summarize

PREFERENCE_FREE = ("s-ucb", "s-moss", "pareto-ucb", "pareto-ts")
"""The policies that see rewards alone: they choose alike for every user (Definition 1)."""


def cell(users: int, block: int, objectives: int, preference: str, policies: Iterable[str]) -> dict[str, Any]:
    """Return one setting of the paper's experiments, by a name that says it all."""
    sizes = {"users": users, "block_size": block, "objectives": objectives, "preference": preference}
    return {
        "cell": f"{preference}, N={users}, D={objectives}, blocks of {block}",
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

    def draw(tables: Tables) -> Any:
        count = None if trials is None else min(trials, int(max(tables["curves"]["trials"])))
        return draw_curves(tables, chosen(tables), policies, trials=count)

    usual: dict[str, Any] = {
        "draw": draw,
        "describe": lambda tables: describe_finals(tables, chosen(tables), policies),
        "twin": lambda tables: twin_of_finals(tables, chosen(tables), policies),
    }
    return Drawing(id, title, **(usual | parts))


def twin_of_finals(tables: Tables, cells: Sequence[str], policies: Sequence[str]) -> Table:
    """Return final regrets for the reader: mean and 95 % interval of all trials, and the mean of the first ten."""
    rows = []
    for name in cells:
        for policy in policies:
            values = final(tables, name, policy)
            first = round(float(values[:PAPER_TRIALS].mean()), 1)
            row = {"setting": name, "policy": policy} | final_row(values)
            rows.append(row | {"trials": len(values), "mean of first ten": first})
    return Table.from_rows(rows)


def describe_finals(tables: Tables, cells: Sequence[str], policies: Sequence[str]) -> str:
    """Say in words how the curves end, lowest first, setting by setting."""
    parts = []
    for name in cells:
        ends = sorted((float(curve(tables, name, policy)["mean"][-1]), policy) for policy in policies)
        parts.append(f"{name}: " + ", ".join(f"{policy} {mean:,.0f}" for mean, policy in ends))
    return "Mean cumulative regret against rounds. Final values, lowest first. " + "; ".join(parts) + "."


def count_beaten(
    tables: Tables, cells: Sequence[str], policy: str, others: Sequence[str]
) -> tuple[int, int, list[tuple[str, str]]]:
    """Return how many (setting, other) pairs the policy wins, how many there are, and those it does not win."""
    lost = [(name, other) for name in cells for other in others if not beats(tables, name, policy, other)]
    total = len(cells) * len(others)
    return total - len(lost), total, lost


def cells_of(tables: Tables) -> list[str]:
    """Return the names of the settings that were run, in order."""
    return tables["finals"].distinct("cell")
