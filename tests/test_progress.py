"""The one progress bar, and values as JSON has them."""

from __future__ import annotations

import io
import json
import math
import threading
import time
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


def test_an_interrupted_bar_does_not_stop_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(io.StringIO):
        def write(self, text: str) -> int:
            if "50 %" in text:
                raise KeyboardInterrupt
            return super().write(text)

    monkeypatch.setattr("sys.stderr", Interrupting())

    def half(bar: Bar) -> None:
        time.sleep(0.2)  # it is drawn ten times a second
        bar.advance(2)

    with Bar("stopped", total=4) as bar, pytest.raises(KeyboardInterrupt):
        half(bar)
    with Bar("next", total=8) as bar:
        moving = threading.Thread(target=half, args=[bar], daemon=True)
        moving.start()
        moving.join(10)
        assert not moving.is_alive(), "it waits for the lock that the interrupted bar kept"


def test_shares_that_add_up_to_a_little_more_than_the_whole_are_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("work") as bar:
        for part in (0.20148773406671389, 0.3309896061636194, 0.39437400433660214, 0.07314865543306469):
            bar.advance(part)
            bar.rename("work")
    assert "work: 100 %" in capsys.readouterr().err


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
