"""Results as people meet them at a prompt, in a notebook and in a frame."""

from __future__ import annotations

import importlib
import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from pamo.errors import InputError

if TYPE_CHECKING:
    from pamo.simulation.result import PolicyResult, Result

SCALARS = ("regret", "pareto_regret", "overall", "optimal_share", "preference_error")
"""What is noted of a policy, a trial and a round, in one number each."""
_WIDE, _HIGH, _MARGIN = 420, 150, 4
_PAPER = "background:#fff;color:#222;padding:8px;overflow-x:auto"
"""Policies' colours are chosen for white paper: a dark notebook has a sheet of it, as for any figure."""


def interval_of(outcome: PolicyResult) -> str:
    """Return the mean final regret with its 95 % interval, in words of one line."""
    mean, low, high = (float(each[-1]) for each in outcome.band())
    return f"{mean:,.1f}" + (f" [{low:,.1f}, {high:,.1f}]" if outcome.trials > 1 else "")


def line_of(result: Result) -> str:
    """Return what was run, in one line."""
    settings, environment = result.settings, result.settings["environment"]
    trials = settings["trials"]
    return (
        f"{environment['id']}: {environment['users']} users, {environment['arms']} arms, "
        f"D={environment['objectives']}; "
        f"{settings['rounds']:,} rounds, {trials:,} trial{'s' if trials > 1 else ''}, seed {settings['seed']}"
    )


def html_of(result: Result) -> str:
    """Return a table of final regrets, the lowest first, and a small chart of the mean curves; it needs nothing."""
    from pamo.simulation.plot import ink, printed, styles_for

    looks = styles_for(result)
    ordered = sorted(result.items(), key=lambda item: float(item[1].final_regret.mean()))
    highest = max(float(outcome.regret.mean(axis=0).max()) for outcome in result.values()) or 1.0
    last = max(int(outcome.rounds[-1]) for outcome in result.values())
    lines, rows = [], []
    for name, outcome in ordered:
        colour, style = looks[name]
        means = outcome.regret.mean(axis=0)
        dashes = "" if style == "-" else f' stroke-dasharray="{" ".join(str(2 * part) for part in style[1])}"'
        across = _MARGIN + (_WIDE - 2 * _MARGIN) * np.append(0, outcome.rounds) / last
        down = _HIGH - _MARGIN - (_HIGH - 2 * _MARGIN) * np.append(0.0, means) / highest
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.8"{dashes} points="{points}"/>')
        rows.append(
            f'<tr style="background:#fff"><td style="text-align:left;color:{ink(colour)}">{escape(printed(name))}</td>'
            f"<td>{escape(interval_of(outcome))}</td><td>{float(outcome.optimal_share[:, -1].mean()):.1%}</td></tr>"
        )
    about = escape(line_of(result))
    return (
        f'<div style="{_PAPER}"><div>{about}</div><svg viewBox="0 0 {_WIDE} {_HIGH}" width="{_WIDE}" role="img" '
        f'aria-label="mean cumulative regret by round, up to {highest:,.0f}" '
        f'style="max-width:100%;border-left:1px solid #888;border-bottom:1px solid #888">{"".join(lines)}'
        "</svg><table><thead><tr><th>policy</th><th>final regret [95 %]</th><th>optimal</th></tr></thead><tbody>"
        f"{''.join(rows)}</tbody></table></div>"
    )


def columns_of(result: Result, *, users: bool = False) -> dict[str, Any]:
    """Return the long form: a row for each policy, trial and round, or with `users` for each user's regret as well."""
    first, parts = result.settings["first_trial"], []
    for name, outcome in result.items():
        trials, marks = outcome.regret.shape
        each = outcome.regret_by_user.shape[2] if users else 1
        part: dict[str, Any] = {
            "policy": np.full(trials * marks * each, name, dtype=object),
            "trial": np.repeat(np.arange(trials) + first, marks * each),
            "round": np.tile(np.repeat(outcome.rounds, each), trials),
        }
        if users:
            part |= {"user": np.tile(np.arange(each), trials * marks), "regret": outcome.regret_by_user.ravel()}
        else:
            part |= {column: getattr(outcome, column).ravel() for column in SCALARS}
        parts.append(part)
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def frame_of(result: Result, package: str, *, users: bool) -> Any:
    """Return the long form as a frame of pandas or polars."""
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"a frame of {package} needs {package}, which is not installed: pip install {package}"
        ) from error
    columns = columns_of(result, users=users)
    return module.DataFrame(columns | {"policy": columns["policy"].tolist()})


def short(outcome: PolicyResult) -> str:
    """Return what a policy came to, in one line."""
    error = float(outcome.preference_error[:, -1].mean())
    return (
        f"PolicyResult({outcome.id}: regret {interval_of(outcome)} after {int(outcome.rounds[-1]):,} rounds, "
        f"{outcome.trials:,} trials" + ("" if math.isnan(error) else f", ‖ĉ − c̄‖ {error:.3f}") + ")"
    )
