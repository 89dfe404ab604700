"""Compare policies over several settings: one table, one figure, differences paired trial by trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo import environments
from pamo.environments import Environment
from pamo.errors import InputError, unknown_name
from pamo.experiments.figures import panels
from pamo.experiments.grid import final, paired, run_grid
from pamo.experiments.instances import mean_lower_bound
from pamo.experiments.study import Progress
from pamo.experiments.tables import Table
from pamo.simulation import summarize
from pamo.simulation.plot import styles_for

SUITES: Mapping[str, Mapping[str, Environment]] = {
    "regret": {
        "2 users, 5 arms, D=3, predefined": environments.Gaussian(users=2, block_size=5, objectives=3),
        "10 users, 3 arms, D=5, predefined": environments.Gaussian(users=10, block_size=3, objectives=5),
        "10 users, 5 arms, D=8, random": environments.Gaussian(
            users=10, block_size=5, objectives=8, preference="random"
        ),
        "20 users, 3 arms, D=5, random": environments.Gaussian(
            users=20, block_size=3, objectives=5, preference="random"
        ),
        "reward variance 0.2": environments.Gaussian(reward_variance=0.2),
        "preference variance 4": environments.Gaussian(preference_variance=4.0),
        "Bernoulli rewards, bounded": environments.Bounded(reward="bernoulli"),
    }
}
"""Settings that belong together. `regret`: the paper's (an offer of so many arms), and three with more noise."""


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
        name = key.strip().replace("-", "_")
        try:
            values[name] = int(value)
        except ValueError:
            try:
                values[name] = float(value)
            except ValueError:
                values[name] = value.strip()
    kind = values.pop("environment", "gaussian")
    return text, environments.create(str(kind), **values)


def compare(
    policies: Sequence[str],
    settings: Mapping[str, Environment],
    *,
    baseline: str | None = None,
    rounds: int = 5000,
    trials: int = 200,
    seed: int = 1,
    progress: Progress = lambda share: None,
) -> Table:
    """Run every policy in every setting, on the same trials, and return a row for each pair.

    Columns: setting, policy, mean, low and high (the mean's 95 % interval), median, p90 and p99 over trials, share (of
    the baseline's mean; by default the first policy's), and difference, difference_low, difference_high: the mean
    paired difference to the baseline with its 95 % interval. over_bound: the mean over the trials' mean asymptotic
    lower bound (`pamo.theory.LowerBound.at`), NaN where there is none: it takes noisy Gaussian rewards.

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
    cells = [
        {"cell": name, "environment": environment.settings, "policies": names} for name, environment in settings.items()
    ]
    tables = run_grid(cells, rounds=rounds, trials=trials, seed=seed, progress=progress, checkpoints=4)
    rows = []
    for setting, environment in settings.items():
        bound = mean_lower_bound(environment, rounds=rounds, trials=trials, seed=seed)
        reference = float(final(tables, setting, against).mean())
        for policy in names:
            values = final(tables, setting, policy)
            mean, _, low, high = summarize(values)
            median, p90, p99 = np.quantile(values, [0.5, 0.9, 0.99]).tolist()
            difference, difference_low, difference_high = paired(tables, setting, policy, against)
            rows.append(
                {
                    "setting": setting,
                    "policy": policy,
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "median": median,
                    "p90": p90,
                    "p99": p99,
                    "share": mean / reference if reference else float("nan"),
                    "difference": difference,
                    "difference_low": difference_low,
                    "difference_high": difference_high,
                    "over_bound": mean / bound if bound else float("nan"),
                }
            )
    return Table.from_rows(rows)


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
        each.set_title(setting, fontsize=9, loc="left")
        each.set_xlabel(f"final regret over {baseline}'s mean (dot: mean; line: median to 99 %)", fontsize=7.5)
    return figure
