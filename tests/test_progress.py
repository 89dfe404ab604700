"""The one progress bar, and values as JSON has them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from pamo.plain import plain, to_json
from pamo.progress import Bar, scaled, unseen, waiting


def test_a_bar_shows_its_name_and_share_and_is_gone_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("folding", total=4) as bar:
        bar.advance(1)
        bar.rename("packing")
        bar.say("half a line")
    text = capsys.readouterr().err
    assert "folding:   0 %" in text
    assert "packing:  25 %" in text
    assert "gone" in text
    assert "left" in text
    assert "half a line\n" in text
    assert text.split("\r")[-2].strip() == ""


def test_a_bar_never_goes_beyond_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("work") as bar:
        for _ in range(4):
            scaled(bar.advance, 0.5)(0.9)
        bar.rename("last")
    assert "last: 100 %" in capsys.readouterr().err


def test_a_bar_that_is_not_shown_and_one_of_no_work_write_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for options in ({"shown": False}, {"total": 0}):
        with Bar("nothing", **options) as bar:
            bar.advance(1)
            bar.say("not said")
    unseen(0.5)
    assert capsys.readouterr().err == ""


def test_waiting_writes_nothing_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("looking") as rename:
        rename("still looking")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_however_deep(value: float) -> None:
    document: dict[str, Any] = {"a": [1, {"b": (value, "x", True, None)}], "c": value}
    assert json.loads(to_json(document)) == {"a": [1, {"b": [None, "x", True, None]}], "c": None}
    assert plain(2.5) == 2.5
