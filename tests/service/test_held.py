"""Held connections, in short: others are served meanwhile, and a server that never hangs up is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.held import KINDS, Plan, campaign


@pytest.mark.parametrize("fault", [None, "wait-for-ever"])
def test_others_are_served_while_connections_are_held(tmp_path: Path, fault: str | None) -> None:
    plan = Plan(connections=90, seconds=9.0, crowd=30, most=20, patience=1.0, slowest=2000.0, fault=fault)
    tally = campaign(plan, tmp_path, lambda line: None)
    assert tally.latencies
    assert tally.let_in == plan.most
    if fault is None:
        assert not tally.wrong
        assert set(tally.held["hung_up"]) == set(KINDS)
    else:
        assert any("was held for" in one for one in tally.wrong)
