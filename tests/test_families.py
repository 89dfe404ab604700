"""What the cited families are for, each in its own setting, as `pamo reproduce --extended` judges it."""

from __future__ import annotations

import pytest

from pamo.experiments.paper import EXTENDED
from pamo.experiments.runner import settings_of
from pamo.experiments.study import Claim, Verdict
from pamo.experiments.tables import Table, Tables
from pamo.progress import unseen

STUDY = EXTENDED["families"]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return STUDY.measure(settings_of(STUDY, quick=True, trials=None), 1, unseen)


@pytest.mark.parametrize("claim", STUDY.claims, ids=lambda claim: claim.id)
def test_each_does_what_its_paper_says(claim: Claim, tables: Tables) -> None:
    assert claim.judge(tables).verdict == (Verdict.NOT if claim.id == "covariance-alone" else Verdict.CONFIRMED)


TURNS = {
    "lexicographic": ("lex", "s-ucb"),
    "gini": ("mo-ogde", "s-ucb"),
    "knowledge-gradient": ("pareto-kg", "pareto-ucb"),
    "changing-users": ("sw-ucb:window=100", "ucb-per-user"),
    "changing-fronts": ("d-pareto-ucb:discount=0.98", "pareto-ucb"),
    "contextual": ("pareto-linucb", "pareto-ucb"),
    "covariance": ("pareto-ts-cov", "pareto-ts"),
    "covariance-alone": ("pareto-ts-cov:together=false", "pareto-ts"),
    "questions": ("its", "its:always=true"),
}
"""A policy of each claim, and another that stands in for it under its name."""


@pytest.mark.parametrize("claim", TURNS)
def test_another_policy_under_its_name_turns_the_verdict(claim: str, tables: Tables) -> None:
    policy, stands_in = TURNS[claim]
    changed = {}
    for name, table in tables.items():
        rows = [row for row in table.rows() if row["policy"] != policy]
        changed[name] = Table.from_rows(
            [*rows, *(row | {"policy": policy} for row in rows if row["policy"] == stands_in)]
        )
    (judged,) = (one for one in STUDY.claims if one.id == claim)
    assert judged.judge(changed).verdict != judged.judge(tables).verdict
