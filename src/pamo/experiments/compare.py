"""Compare policies over several settings: one table, one figure, differences paired trial by trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pamo import environments
from pamo.arrays import Floats
from pamo.environments import Environment
from pamo.errors import InputError, unknown_name
from pamo.experiments.figures import label, panels
from pamo.experiments.instances import mean_lower_bound
from pamo.experiments.tables import Table
from pamo.experiments.tasks import Runner, Task, in_order, local, regrets
from pamo.policies import labels, parse
from pamo.progress import Progress, unseen
from pamo.simulation import summarize
from pamo.simulation.plot import styles_for


def parse_setting(text: str) -> tuple[str, Environment]:
    """Return the setting that a command line names: `users=2,block-size=5`, and `environment=bounded` where wanted.

    >>> parse_setting("users=3,reward-variance=0.2")[1].users
    3
    """
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"expected a setting as name=value,name=value, got {part!r} in {text!r}")
        values[key.strip().replace("-", "_")] = _value(value.strip())
    kind = values.pop("environment", "gaussian")
    return text, environments.create(str(kind), **values)


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def compare(
    policies: Sequence[str],
    settings: Mapping[str, Environment],
    *,
    baseline: str | None = None,
    rounds: int = 5000,
    trials: int = 200,
    seed: int = 1,
    progress: Progress = unseen,
    runner: Runner = local,
) -> Table:
    """Run every policy in every setting, on the same trials, and return a row for each pair.

    Columns: setting, policy, mean, low and high (the mean's 95 % interval), median, p90 and p99 over trials, share (of
    the baseline's mean; by default the first policy's), and difference, difference_low, difference_high: the mean
    paired difference to the baseline with its 95 % interval. over_bound: the mean over the trials' mean asymptotic
    lower bound (`pamo.theory.LowerBound.at`), NaN where there is none: it takes noisy Gaussian rewards. growth: by how
    much the mean grows in the second half, over what it was at half-time; linear: the trials that grow linearly
    (`linear_trials`). Where a setting has newcomers, only their regret counts, as a newcomer's mean.

    >>> table = compare(["prucb-hp", "greedy"], {"small": environments.Gaussian()}, rounds=50, trials=4)
    >>> table.distinct("policy"), float(table["share"][0])
    (['prucb-hp', 'greedy'], 1.0)
    """
    names = list(dict.fromkeys(policies))
    if not names or not settings:
        raise InputError(f"expected at least one policy and one setting, got {len(names)} and {len(settings)}")
    if trials < 2:
        raise InputError(f"expected at least 2 trials, for a spread to be seen, got {trials}")
    against = names[0] if baseline is None else baseline
    if against not in names:
        raise unknown_name("baseline among the policies compared", against, names)
    rows: list[dict[str, Any]] = []
    several = list(map(parse, names))
    labels(several)  # which refuses one that is there twice
    marks = sorted({max(1, rounds // part) for part in (8, 4, 2, 1)})
    tasks = [
        task
        for environment in settings.values()
        for task in (
            Task("compare", _bound, (environment, rounds, trials, seed), environment.users / 10),
            *(
                Task("compare", regrets, (policy, environment, rounds, 0, trials, seed, marks), environment.users)
                for policy in several
            ),
        )
    ]
    found, width = in_order(runner, tasks, progress), 1 + len(names)
    for place, setting in enumerate(settings):
        bound, *several_regrets = found[place * width : (place + 1) * width]
        played = dict(zip(names, several_regrets, strict=True))
        reference = played[against][:, -1]
        for policy, regret in played.items():
            values = regret[:, -1]
            mean, _, low, high = summarize(values)
            apart = summarize(values - reference)
            rows.append(
                {"setting": setting, "policy": policy, "mean": mean, "low": low, "high": high}
                | dict(zip(("median", "p90", "p99"), np.quantile(values, [0.5, 0.9, 0.99]).tolist(), strict=True))
                | {"share": mean / reference.mean() if reference.any() else math.nan}
                | {"difference": apart.mean, "difference_low": apart.low, "difference_high": apart.high}
                | {"over_bound": mean / bound if bound else math.nan, "growth": _growth(regret)}
                | {"linear": linear_trials(regret, rounds) if len(marks) == 4 else 0}
            )
    return Table.from_rows(rows)


def _bound(environment: Environment, rounds: int, trials: int, seed: int, progress: Progress) -> float:
    """Return the mean lower bound, 0 where newcomers are counted alone: the bound is on everybody's regret."""
    found = 0.0 if environment.newcomers else mean_lower_bound(environment, rounds=rounds, trials=trials, seed=seed)
    progress(1.0)
    return found


def _growth(regret: Floats) -> float:
    """Return by how much the mean regret grows in the second half, over what it was at half-time."""
    half = float(regret[:, -2].mean()) if regret.shape[1] > 1 else 0.0
    return float(regret[:, -1].mean()) / half - 1.0 if half > 0.0 else math.nan


def linear_trials(regret: Floats, rounds: int) -> int:
    """Return the number of trials whose regret grows linearly, given it at an eighth, a quarter, a half and the end.

    A regret that grows linearly doubles what it grows by whenever the rounds double (a logarithm adds the same each
    time). One is counted that does so twice in a row, to within a tenth, and grows by more than √T in the second half:
    two arms nearer to each other than 1/√T cannot be told apart in T rounds, and cost that much whatever one does.

    >>> linear_trials(np.array([[100.0, 200.0, 400.0, 800.0], [1.0, 2.0, 3.0, 4.0]]), rounds=1000)
    1
    """
    grown = np.diff(regret, axis=1)
    doubled = (grown[:, 1:] >= 1.8 * np.maximum(grown[:, :-1], 1e-9)).all(axis=1)
    return int((doubled & (grown[:, -1] > rounds**0.5)).sum())


def text_of(table: Table, baseline: str) -> str:
    """Return the comparison as lines of text, setting by setting, the lowest mean first."""
    wide = max(24, *(len(name) + 2 for name in table.distinct("policy")))
    lines = []
    for setting in table.distinct("setting"):
        lines.append(f"{setting}")
        lines.append(
            f"  {'policy':<{wide}}{'mean':>9}{'median':>9}{'90 %':>9}{'99 %':>9}{'share':>8}{'over bound':>12}"
            f"   difference to {baseline}"
        )
        for row in sorted(table.where(setting=setting).rows(), key=lambda row: float(row["mean"])):
            difference = (
                "–"
                if row["policy"] == baseline
                else f"{row['difference']:+,.0f} ({row['difference_low']:+,.0f} … {row['difference_high']:+,.0f})"
            )
            figures = "".join(f"{row[name]:>9,.0f}" for name in ("mean", "median", "p90", "p99"))
            lines.append(
                f"  {row['policy']:<{wide}}{figures}{row['share']:>8.3f}{_times(row['over_bound']):>12}   {difference}"
            )
        lines.append("")
    return "\n".join(lines + _about_the_bound(table)).rstrip()


def _times(ratio: float) -> str:
    return "–" if math.isnan(ratio) else f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def _about_the_bound(table: Table) -> list[str]:
    """Say what `over bound` is, where it is, and who is under it."""
    if np.isnan(table["over_bound"]).all():
        return []
    under = [f"{row['policy']} ({row['setting']})" for row in table.rows() if row["over_bound"] < 1]
    remark = f"; under it here: {', '.join(under)}" if under else ""
    return [f"over bound: mean regret over the lower bound of large T, which small T may stay under{remark}"]


def draw_comparison(table: Table, baseline: str) -> Any:
    """Draw each policy's mean regret over the baseline's, a panel a setting, with lines from the median to the 99 %."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    settings, names = table.distinct("setting"), table.distinct("policy")
    styles = styles_for(names)
    figure, axes = panels(len(settings), columns=2, height=0.9 + 0.24 * len(names), legend=0.1)
    for each, setting in zip(axes, settings, strict=True):
        rows = sorted(table.where(setting=setting).rows(), key=lambda row: -float(row["mean"]))
        reference = next(float(row["mean"]) for row in rows if row["policy"] == baseline)
        for place, row in enumerate(rows):
            colour = styles[row["policy"]][0]
            each.plot([row["median"] / reference, row["p99"] / reference], [place, place], color=colour, linewidth=1.4)
            each.plot([row["share"]], [place], marker="o", markersize=5, color=colour)
        each.axvline(1.0, color="#888888", linewidth=0.9)
        each.set_xscale("log")
        each.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        each.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        each.xaxis.set_minor_formatter(NullFormatter())
        each.set_yticks(range(len(rows)), [row["policy"] for row in rows], fontsize=8.5)
        label(each, setting, f"regret over {baseline}'s mean (dot: mean, line: median to 99 %)", size=7.5)
    return figure
