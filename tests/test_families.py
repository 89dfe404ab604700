"""What the cited families are for, each in its own setting, as `pamo reproduce --extended` judges it."""

from __future__ import annotations

import pytest

from pamo.experiments.paper import EXTENDED
from pamo.experiments.runner import settings_of
from pamo.experiments.study import Verdict
from pamo.experiments.tables import Table, Tables
from pamo.progress import unseen

STUDY = EXTENDED["families"]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return STUDY.measure(settings_of(STUDY, quick=True, trials=None), 1, unseen)


@pytest.mark.parametrize("claim", STUDY.claims, ids=lambda claim: claim.id)
def test_each_does_what_its_paper_says(claim, tables: Tables) -> None:  # type: ignore[no-untyped-def]
    assert claim.judge(tables).verdict == Verdict.CONFIRMED


TURNS = {
    "lexicographic": ("lex", "s-ucb"),
    "gini": ("mo-ogde", "s-ucb"),
    "knowledge-gradient": ("pareto-kg", "pareto-ucb"),
    "changing-users": ("sw-ucb:window=100", "ucb-per-user"),
    "changing-fronts": ("d-pareto-ucb:discount=0.98", "pareto-ucb"),
}
"""A policy of each claim, and another that stands in for it under its name."""


@pytest.mark.parametrize("claim", TURNS)
def test_another_policy_under_its_name_turns_the_verdict(claim: str, tables: Tables) -> None:
    policy, stands_in = TURNS[claim]
    rows = [row for row in tables["shares"].rows() if row["policy"] != policy]
    rows += [row | {"policy": policy} for row in rows if row["policy"] == stands_in]
    (judged,) = (one for one in STUDY.claims if one.id == claim)
    assert judged.judge({"shares": Table.from_rows(rows)}).verdict != Verdict.CONFIRMED
