"""The families that the paper cites, each in the setting that it was made for; run by `pamo reproduce --extended`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.environments import Environment, Fixed
from pamo.environments.utilities import regret_of_mix
from pamo.experiments.figures import draw_bars, draw_rows, label, legend_above, note, panels, write_at
from pamo.experiments.paper.correlated import Together
from pamo.experiments.study import Claim, Drawing, Finding, Study, Verdict, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.policies import parse
from pamo.policies.interactive import asked_at
from pamo.progress import Progress
from pamo.simulation import simulate, summarize
from pamo.simulation.plot import GREY, MARKERS, STYLES, printed
from pamo.simulation.stepping import Player

EQUALS, FRONT, CHANGED = "equals in the first objective", "a front of two", "a new best arm"
TOGETHER, CONTEXTS, ASKING = "objectives that go together", "the front depends on the context", "questions"
INSTANCES: dict[str, Any] = {
    EQUALS: {
        "means": [[0.8, 0.1], [0.8, 0.7], [0.3, 1.5]],
        "preference": [1.0, 0.2],
        "policies": ["lex", "prucb-kp", "s-ucb"],
    },
    FRONT: {
        "means": [[0.9, 0.2], [0.2, 0.9], [0.1, 0.1]],
        "preference": [1.0, 1.0],
        "policies": ["pareto-kg", "pareto-ucb"],
    },
}
MIXES: dict[str, Any] = {
    "means": [[1.0, 0.0], [0.0, 0.8], [0.35, 0.35]],
    "preference": [1.0, 1.0],
    "policies": ["mo-ogde", "s-ucb"],
    "horizons": [1000, 4000, 16_000],
}
"""The best single arm by the Gini index is the third, and a mix of the others is better."""
PAIRS = {
    "sw-ucb:window=100": "ucb-per-user",
    "d-ucb:discount=0.98": "ucb-per-user",
    "sw-pareto-ucb:window=100": "pareto-ucb",
    "d-pareto-ucb:discount=0.98": "pareto-ucb",
}
"""Those that forget, and those that do not."""
CONTEXTUAL = ("pareto-linucb", "pareto-ucb")
COVARIANCES = ("pareto-ts-cov", "pareto-ts-cov:together=false", "pareto-ts")
ASKS = ("its", "its:always=true")
_LATE, _LAST = 100, 50
"""For so many rounds the new arm is the best, and of so many of them its share is taken."""
MODELS = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.1, 0.9], [0.2, 0.8]], [[0.4, 0.4], [0.4, 0.4]]])
"""(arms, objectives, contexts): the first arm is best in the first context, the second in the other."""


def share_in_context(policy: str, rounds: int, seed: int) -> float:
    """Return how often, in the second half, the arm is pulled that is best in the round's context."""
    sizes = Environment(users=1, arms=3, block_size=1, objectives=2, protocol="all")
    player = Player(parse(policy), sizes, rounds=rounds, known=np.full((1, 2), 0.5), seed=seed)
    generator, right = np.random.default_rng(seed), 0
    for t in range(rounds):
        best = int(generator.integers(2))
        context = np.where(np.arange(2) == best, 0.9, 0.1)
        arm = player.choose(0, [0, 1, 2], context)
        reward = MODELS[arm] @ context + generator.normal(0.0, 0.1, 2)
        player.learn(0, arm, reward, float(reward.mean()))
        right += t >= rounds // 2 and arm == best
    return right / (rounds - rounds // 2)


def questions(policy: str, rounds: int, seed: int) -> tuple[float, float, float]:
    """Return the share of rounds with a question, in the first and in the last fifth, and the best arm's share there.

    A user who weighs the first objective three times as much, and two arms of which each is the best in one.
    """
    environment = Fixed.of(means=[[0.9, 0.2], [0.2, 0.9], [0.6, 0.6]], preferences=[[1.5, 0.5]])
    player, episode = Player(parse(policy), environment, rounds=rounds, seed=seed), environment.start(seed=seed)
    asked, chosen, fifth = [], [], rounds // 5
    while episode.round <= rounds:
        pulled = episode.pull(player.choose(episode.user, episode.offer))
        player.learn(pulled.user, pulled.arm, pulled.reward, pulled.overall)
        asked.append(float(player.kept.by_user[0, asked_at(2)]))
        chosen.append(pulled.arm)
    return sum(asked[:fifth]) / fifth, sum(asked[-fifth:]) / fifth, chosen[-fifth:].count(0) / fifth


def share_of_the_new_best(policy: str, rounds: int, seed: int) -> float:
    """Return how often arm 1 is pulled in the last rounds, when it is the best, having been poor in all before."""
    sizes = Environment(users=1, arms=3, block_size=1, objectives=2, protocol="all")
    player, generator = Player(parse(policy), sizes, rounds=rounds, seed=seed), np.random.default_rng(seed)
    chosen = []
    for t in range(rounds):
        means = [1.0, 0.0 if t < rounds - _LATE else 2.0, -0.5]
        arm = player.choose(0, [0, 1, 2])
        reward = means[arm] + generator.normal(0.0, 0.1, 2)
        player.learn(0, arm, reward, float(reward.mean()))
        chosen.append(arm)
    return chosen[-_LAST:].count(1) / _LAST


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    shares = []
    for name, given in settings["instances"].items():
        environment = Fixed.of(means=given["means"], preferences=[given["preference"]])
        result = simulate(
            given["policies"], environment, rounds=settings["rounds"], trials=settings["trials"], seed=seed
        )
        for policy, outcome in zip(given["policies"], result.values(), strict=True):
            for arm, pulls in enumerate(outcome.pulls.T):
                columns = {"trial": np.arange(len(pulls)), "share": pulls / settings["rounds"]}
                shares.append(Table({"instance": name, "policy": policy, "arm": arm} | columns))
    progress(0.3)
    mixes = _mixes(settings["mixes"], settings["trials"], seed)
    pairs = settings["pairs"]
    for policy in dict.fromkeys([*pairs, *pairs.values()]):
        seeds = range(seed, seed + settings["changed_trials"])
        found = [share_of_the_new_best(policy, settings["changed_rounds"], one) for one in seeds]
        columns = {"trial": np.arange(len(found)), "share": found}
        shares.append(Table({"instance": CHANGED, "policy": policy, "arm": 1} | columns))
        progress(0.5 / (len(pairs) + 2))
    seeds = range(seed, seed + settings["changed_trials"])
    for policy in settings["contextual"]:
        found = [share_in_context(policy, settings["changed_rounds"] // 2, one) for one in seeds]
        columns = {"trial": np.arange(len(found)), "share": found}
        shares.append(Table({"instance": CONTEXTS, "policy": policy, "arm": 0} | columns))
    together = Together.of(means=[[0.5, 0.5], [0.45, 0.45], [0.4, 0.4]], preferences=[[1.0, 1.0]], reward_variance=0.1)
    several, rounds, trials = settings["together"], settings["rounds"], 20 * settings["trials"]
    for policy in several:
        (outcome,) = simulate([policy], together, rounds=rounds, trials=trials, seed=seed).values()
        columns = {"trial": np.arange(trials), "share": outcome.pulls[:, 1:].sum(axis=1) / rounds}
        shares.append(Table({"instance": TOGETHER, "policy": policy, "arm": 0} | columns))
    asked = []
    for policy in settings["asking"]:
        found_by = [questions(policy, settings["changed_rounds"], one) for one in seeds]
        early, late, best = np.array(found_by).T
        asked.append(
            Table({"policy": policy, "trial": np.arange(len(early)), "early": early, "late": late, "best": best})
        )
    progress(0.2)
    return {"shares": Table.stack(shares), "mixes": mixes, "questions": Table.stack(asked)}


def _mixes(settings: Mapping[str, Any], trials: int, seed: int) -> Table:
    """Return the regret by the Gini index at several horizons: against the best mix, and against the best arm."""
    means, weights, found = settings["means"], settings["preference"], []
    environment = Fixed.of(means=means, preferences=[weights], utility="gini")
    for rounds in settings["horizons"]:
        result = simulate(settings["policies"], environment, rounds=rounds, trials=trials, seed=seed)
        for policy, outcome in zip(settings["policies"], result.values(), strict=True):
            regret = regret_of_mix(outcome.pulls, means, weights, "gini")
            columns = {"trial": np.arange(trials), "regret": regret, "by arms": outcome.final_regret}
            found.append(Table({"policy": policy, "rounds": rounds} | columns))
    return Table.stack(found)


def growth(horizons: Sequence[float], regret: Sequence[float]) -> float:
    """Return p of regret that grows like T^p from the first horizon to the last."""
    return float(np.log(regret[-1] / regret[0]) / np.log(horizons[-1] / horizons[0]))


def shares_of(tables: Tables, instance: str, policy: str) -> Floats:
    """Return (trials, arms): how often each arm was pulled."""
    rows = tables["shares"].where(instance=instance, policy=policy)
    return np.stack([rows.where(arm=arm)["share"] for arm in rows.distinct("arm")], axis=1)


def _judge_lex(tables: Tables) -> Finding:
    mine, weights, best_sum = (shares_of(tables, EQUALS, policy) for policy in INSTANCES[EQUALS]["policies"])
    good = [mine[:, 1].min() > 0.5, weights[:, 1].min() > 0.5]
    return Finding(
        judge_share(sum(good), 2),
        f"The arm that is best in the first objective, and of those in the second, has {mine[:, 1].mean():.0%} of the "
        f"pulls, with the weights (1, 0.2) and PRUCB-KP {weights[:, 1].mean():.0%}; the best sum, of "
        f"another arm, has {best_sum[:, 2].mean():.0%} of S-UCB's.",
        {"lex": float(mine[:, 1].mean()), "prucb-kp": float(weights[:, 1].mean())},
    )


def _judge_gini(tables: Tables) -> Finding:
    mine, other = (tables["mixes"].where(policy=policy) for policy in MIXES["policies"])
    horizons = mine.distinct("rounds")
    found, others = ([float(rows.where(rounds=t)["regret"].mean()) for t in horizons] for rows in (mine, other))
    power = growth(horizons, found)
    last = mine.where(rounds=horizons[-1])
    return Finding(
        Verdict.CONFIRMED if power <= 0.65 else Verdict.PARTLY if power < 0.9 else Verdict.NOT,
        f"Against the best mix MO-OGDE loses {', '.join(f'{one:.1f}' for one in found)} in {horizons[0]:,} to "
        f"{horizons[-1]:,} rounds, which grows like T^{power:.2f}; S-UCB loses {others[-1]:,.0f}, like "
        f"T^{growth(horizons, others):.2f}. Held against the best single arm, pull by pull, MO-OGDE would lose "
        f"{last['by arms'].mean():,.0f}, though what it gives is worth more than any arm.",
        {"exponent": power, "regret": found[-1], "by arms": float(last["by arms"].mean())},
    )


def _judge_front(tables: Tables) -> Finding:
    found = shares_of(tables, FRONT, "pareto-kg")
    good = [bool(found[:, 2].max() < 0.05), bool(found[:, :2].min() > 0.25)]
    return Finding(
        judge_share(sum(good), 2),
        f"Of the pulls {found[:, 2].max():.1%} at most go to the arm that both others dominate, and at least "
        f"{found[:, :2].min():.0%} to each of the two on the front.",
        {"dominated": float(found[:, 2].max()), "least on the front": float(found[:, :2].min())},
    )


def _judge_changed(tables: Tables, *, objective: str) -> Finding:
    good, parts = 0, []
    pairs = {one: other for one, other in PAIRS.items() if objective in other}
    for policy, other in pairs.items():
        mine, theirs = (float(shares_of(tables, CHANGED, name).mean()) for name in (policy, other))
        good += mine > 0.5 and mine > theirs + 0.2
        parts.append(f"{policy} {mine:.0%}, {other} {theirs:.0%}")
    return Finding(
        judge_share(good, len(pairs)),
        f"The share of the new best arm in the last {_LAST} rounds: {'; '.join(parts)}.",
        {"won": good, "pairs": len(pairs)},
    )


def _judge_context(tables: Tables) -> Finding:
    mine, theirs = (shares_of(tables, CONTEXTS, policy)[:, 0] for policy in CONTEXTUAL)
    return Finding(
        Verdict.CONFIRMED if mine.min() > 0.9 and mine.min() > theirs.max() else Verdict.NOT,
        f"The arm that dominates in the round's context has {mine.min():.0%} to {mine.max():.0%} of Pareto-LinUCB's "
        f"pulls in the second half, and {theirs.min():.0%} to {theirs.max():.0%} of Pareto-UCB's.",
        {"lowest": float(mine.min()), "without contexts": float(theirs.max())},
    )


def _judge_together(tables: Tables, *, other: str) -> Finding:
    mine, theirs = (shares_of(tables, TOGETHER, policy)[:, 0] for policy in (COVARIANCES[0], other))
    difference = summarize(mine - theirs)
    return Finding(
        Verdict.CONFIRMED if difference.high < 0.0 else Verdict.NOT,
        f"Of the pulls {mine.mean():.1%} go to dominated arms, {theirs.mean():.1%} with {other} (paired difference "
        f"{difference.low:.1%} … {difference.high:.1%}, {len(mine)} trials).",
        {"mine": float(mine.mean()), "other": float(theirs.mean()), "at most": difference.high},
    )


def _judge_questions(tables: Tables) -> Finding:
    early, late, best = (
        float(tables["questions"].where(policy=ASKS[0])[name].mean()) for name in ("early", "late", "best")
    )
    always = float(tables["questions"].where(policy=ASKS[1])["best"].mean())
    good = [late < 0.5 * early, late < 0.15, best > always - 0.1]
    return Finding(
        Verdict.CONFIRMED if all(good) else Verdict.NOT,
        f"It asks in {early:.0%} of the first fifth of the rounds and in {late:.0%} of the last, where the best arm "
        f"has {best:.0%} of the pulls; {always:.0%} if it asks in every round.",
        {"early": early, "late": late, "best arm": best, "best arm, asked always": always},
    )


def _draw(tables: Tables) -> Any:
    rows = [(policy, shares_of(tables, CHANGED, policy)[:, 0]) for policy in (*PAIRS, *dict.fromkeys(PAIRS.values()))]
    figure, (axes,) = panels(1, columns=1, height=3.2, legend=0.05)
    intervals = [(found.mean, *np.nan_to_num([found.low, found.high])) for found in (summarize(r) for _, r in rows)]
    colours = [STYLES[policy.partition(":")[0]][0] for policy, _ in rows]
    draw_bars(axes, [printed(policy) for policy, _ in rows], intervals, colours=colours, form="{:.2f}")
    label(axes, f"An arm that became the best {_LATE} rounds ago", f"its share of the last {_LAST} pulls")
    note(figure, f"one user, K=3, D=2; mean of {len(rows[0][1])} trials, 95 % interval")
    return figure


def _draw_mixes(tables: Tables) -> Any:
    figure, (axes,) = panels(1, columns=1, height=3.2, legend=0.3)
    names, found = MIXES["policies"], tables["mixes"]
    horizons = found.distinct("rounds")
    for policy in names:
        values = [found.where(policy=policy, rounds=t)["regret"] for t in horizons]
        some = Table.from_rows(
            [summarize(one)._asdict() | {"rounds": t} for t, one in zip(horizons, values, strict=True)]
        )
        draw_rows(axes, some, "rounds", STYLES[policy], marker=MARKERS[policy])
    first = float(found.where(policy=names[0], rounds=horizons[0])["regret"].mean())
    root = [first * np.sqrt(t / horizons[0]) for t in horizons]
    axes.plot(horizons, root, color=GREY, linewidth=0.8)
    write_at(axes, "√T", (horizons[-1], root[-1]), (6, 0), color=GREY)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(horizons, [f"{t:,}" for t in horizons])
    axes.minorticks_off()
    label(axes, "Regret by the generalised Gini index, against the best mix of arms", "rounds T", "regret")
    legend_above(
        figure, list(map(printed, names)), [STYLES[one] for one in names], markers=[MARKERS[one] for one in names]
    )
    note(figure, f"one user, K=3, D=2; mean of {len(values[0])} trials, 95 % band")
    return figure


def _twin_mixes(tables: Tables) -> Table:
    rows = []
    for policy in MIXES["policies"]:
        for rounds in tables["mixes"].distinct("rounds"):
            some = tables["mixes"].where(policy=policy, rounds=rounds)
            against = {"against the best mix": "regret", "against the best arm": "by arms"}
            means = {name: round(float(some[column].mean()), 1) for name, column in against.items()}
            rows.append({"policy": policy, "rounds": rounds} | means)
    return Table.from_rows(rows)


def _twin(tables: Tables) -> Table:
    rows = []
    for name in tables["shares"].distinct("instance"):
        for policy in tables["shares"].where(instance=name).distinct("policy"):
            found = shares_of(tables, name, policy).mean(axis=0)
            rows.append({"instance": name, "policy": policy, "shares": ", ".join(f"{one:.2f}" for one in found)})
    return Table.from_rows(rows)


_SHARES = "Shares of pulls over all rounds, in the worst trial. Confirmed if both conditions hold, not if one does. "
_COVARIANCE = (
    "Two objectives whose noise is correlated by 0.95, three arms of which one dominates the others. Confirmed if the "
    "95 % interval of the paired difference of the share of pulls on dominated arms lies below 0, else not: "
)

STUDY = Study(
    name="families",
    title="The cited families at home",
    about="Each of the families that the paper cites was made for something else than hidden preferences. Here each "
    "has an instance of the kind that it was made for: three arms, two objectives, one user.",
    source="Related work",
    settings={
        "instances": INSTANCES,
        "mixes": MIXES,
        "pairs": PAIRS,
        "contextual": CONTEXTUAL,
        "together": COVARIANCES,
        "asking": ASKS,
        "rounds": 3000,
        "trials": 20,
        "changed_rounds": 1000,
        "changed_trials": 8,
    },
    quick={"trials": 4, "changed_trials": 3},
    weight=10.0,
    measure=_measure,
    claims=(
        Claim(
            id="lexicographic",
            paper="Lexicographic bandits let the next objective decide between equals; weights can say the same.",
            source="Hüyük & Tekin (2021); the paper's related work",
            rule=_SHARES + "More than half of the pulls on the lexicographic best, by `lex` and by PRUCB-KP told "
            "weights that fall fast.",
            refuted_by="Another arm most often, by either.",
            judge=_judge_lex,
        ),
        Claim(
            id="gini",
            paper="MO-OGDE's regret against the best mix of arms by the generalised Gini index grows like √T.",
            source="Busa-Fekete, Szörényi, Weng & Mannor (2017)",
            rule="Regret is T times the best mix's index less that of the mean reward given: an arm's own would punish "
            "a mix, which may be worth more than any arm. Growth like T^p from the first horizon to the last, of the "
            "mean over trials: confirmed if p is at most 0.65, partly if below 0.9, else not.",
            refuted_by="Regret that grows in proportion to T, as that of a policy that ends on one arm does.",
            judge=_judge_gini,
        ),
        Claim(
            id="knowledge-gradient",
            paper="The Pareto knowledge gradient pulls all of the front, and little else.",
            source="Yahyaa, Drugan & Manderick (2014)",
            rule=_SHARES + "Less than 5 % on the dominated arm, more than 25 % on each of the others.",
            refuted_by="An arm of the front left out, or the dominated one kept.",
            judge=_judge_front,
        ),
        Claim(
            id="changing-users",
            paper="UCB with a window or a discount finds a user's new best arm sooner.",
            source="Garivier & Moulines (2011)",
            rule="It wins if the new best arm has more than half of the last pulls and 0.2 more than without "
            "forgetting. Confirmed if both win, else not.",
            refuted_by="No larger share than without forgetting.",
            judge=partial(_judge_changed, objective="ucb-per-user"),
        ),
        Claim(
            id="changing-fronts",
            paper="So does Pareto-UCB with a window or a discount.",
            source="Garivier & Moulines (2011) on Drugan & Nowé (2013)",
            rule="As above.",
            refuted_by="No larger share than without forgetting.",
            judge=partial(_judge_changed, objective="pareto-ucb"),
        ),
        Claim(
            id="contextual",
            paper="Where rewards are linear in a context, a policy that models them finds each context's front.",
            source="Lu, Wang, Hu & Zhang (2019)",
            rule="Pulls of the second half. Confirmed if in every trial the arm that dominates in the round's context "
            "has more than 90 % of them, and more than in any trial of Pareto-UCB, else not.",
            refuted_by="A trial in which it pulls as if there were no context.",
            judge=_judge_context,
        ),
        Claim(
            id="covariance",
            paper="Who draws with the covariance that rewards have tells dominated arms from others with fewer pulls.",
            source="Kone, Jourdan & Kaufmann (2024)",
            rule=_COVARIANCE + "with Σ̂ and by Pareto-TS, which takes ¼ for each variance.",
            refuted_by="As many pulls on dominated arms as Pareto-TS has.",
            judge=partial(_judge_together, other=COVARIANCES[2]),
        ),
        Claim(
            id="covariance-alone",
            paper="It is the covariances that do it, and not the variances alone.",
            source="not in their paper: theirs is about identifying a front, ours about what that costs on the way",
            rule=_COVARIANCE + "with Σ̂ and with its diagonal alone.",
            refuted_by="As many pulls on dominated arms without the covariances.",
            judge=partial(_judge_together, other=COVARIANCES[1]),
            ours=True,
        ),
        Claim(
            id="questions",
            paper="Interactive Thompson sampling asks ever less, and ends on the user's best arm all the same.",
            source="Roijers, Zintgraf & Nowé (2017)",
            rule="Means over trials. Confirmed if it asks in the last fifth of the rounds less than half as often as "
            "in the first, in less than 15 % of them, and the best arm's share of their pulls is at most 0.1 below "
            "that of one who asks always; else not.",
            refuted_by="Questions as frequent in the end as in the beginning, or another arm in the end.",
            judge=_judge_questions,
        ),
    ),
    drawings=(
        Drawing(
            "families",
            "Who notices that another arm is the best",
            _draw,
            lambda tables: _judge_changed(tables, objective="").seen,
            _twin,
        ),
        Drawing(
            "families-mixes",
            "What a mix of arms loses against the best one",
            _draw_mixes,
            lambda tables: _judge_gini(tables).seen,
            _twin_mixes,
        ),
    ),
)
