"""The power-loss campaign, in short. Its disk is tested too: one that lost nothing would prove nothing."""

from __future__ import annotations

from random import Random

import pytest

from campaigns import power_loss
from campaigns.disk import SECTOR, Create, Delete, State, Sync, Truncate, Write


def test_nothing_acknowledged_is_lost() -> None:
    tally = power_loss.campaign(200, "FULL", seed=3)
    assert (tally.points, tally.lost, tally.corrupt) == (200, 0, 0), tally.examples
    assert tally.acknowledged > 1000
    assert tally.lives == 2


def test_the_campaign_sees_losses_where_the_log_is_not_synced() -> None:
    tally = power_loss.campaign(100, "NORMAL", seed=3)
    assert tally.lost > 0
    assert tally.corrupt == 0, tally.examples


def test_the_command_says_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    assert power_loss.main(["--points", "20"]) == 0
    printed = capsys.readouterr().out
    assert "synchronous=FULL: 20 crash points" in printed
    assert "0 points with losses, 0 corrupt" in printed


def images(state: State, count: int = 200) -> list[bytes | None]:
    return [state.crash(Random(seed)).get("f") for seed in range(count)]


def test_what_was_synced_is_always_there_and_the_rest_may_be() -> None:
    state = State()
    for step in (Create("f"), Write("f", 0, b"a" * 2 * SECTOR), Sync("f")):
        state.take(step)
    assert set(images(state)) == {b"a" * 2 * SECTOR}
    state.take(Write("f", 0, b"b" * 2 * SECTOR))
    seen = set(images(state))
    old, new = b"a" * SECTOR, b"b" * SECTOR
    assert {old + old, old + new, new + old, new + new} <= seen
    assert len(seen) > 4  # garbage
    state.take(Sync("f"))
    assert set(images(state)) == {new + new}


def test_files_may_vanish_or_come_back_until_the_folder_is_synced() -> None:
    state = State()
    state.take(Create("f"))
    state.take(Write("f", 0, b"x"))
    assert None in images(state)
    state.take(Sync("f"))
    assert None not in images(state)
    state.take(Delete("f", False))
    assert {None, b"x"} == set(images(state))
    for step in (Create("g"), Sync("g")):
        state.take(step)
    assert set(images(state)) == {None}


def test_a_cut_may_be_lost_too() -> None:
    state = State(durable={"f": b"12345678"})
    state.take(Truncate("f", 4))
    assert set(images(state)) == {b"12345678", b"1234"}
