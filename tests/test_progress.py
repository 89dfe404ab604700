"""The one progress bar, and values as JSON has them."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest

from pamo.plain import plain, to_json
from pamo.progress import Bar, scaled, unseen, waiting


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def test_a_bar_shows_its_name_and_share_and_is_gone_at_the_end(written: io.StringIO) -> None:
    with Bar("folding", total=4) as bar:
        bar.advance(1)
        bar.rename("packing")
        bar.say("half a line")
    text = written.getvalue()
    assert "folding:   0 %" in text
    assert "packing:  25 %" in text
    assert "gone" in text
    assert "left" in text
    assert "half a line\n" in text
    assert text.split("\r")[-2].strip() == ""


def test_a_bar_never_goes_beyond_its_end(written: io.StringIO) -> None:
    with Bar("work") as bar:
        for _ in range(4):
            scaled(bar.advance, 0.5)(0.9)
        bar.rename("last")
    assert "last: 100 %" in written.getvalue()


def test_a_bar_that_is_not_shown_and_one_of_no_work_write_nothing(written: io.StringIO) -> None:
    for options in ({"shown": False}, {"total": 0}):
        with Bar("nothing", **options) as bar:
            bar.advance(1)
            bar.say("not said")
    unseen(0.5)
    assert written.getvalue() == ""


def test_waiting_writes_nothing_into_a_file(written: io.StringIO) -> None:
    with waiting("looking") as rename:
        rename("still looking")
    assert written.getvalue() == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_however_deep(value: float) -> None:
    document: dict[str, Any] = {"a": [1, {"b": (value, "x", True, None)}], "c": value}
    assert json.loads(to_json(document)) == {"a": [1, {"b": [None, "x", True, None]}], "c": None}
    assert plain(2.5) == 2.5
