"""Times without a collector, of several threads at once."""

from __future__ import annotations

import gc

import pytest

from pamo.collecting import uncollected


def test_whoever_ends_last_has_python_collect_again() -> None:
    one, other = uncollected(), uncollected()
    with one:
        other.__enter__()
    assert not gc.isenabled()  # a thread that looked while another was about to end would have left it so for good
    other.__exit__(None, None, None)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_ends_it() -> None:
    with pytest.raises(ValueError, match="oh"), uncollected():
        raise ValueError("oh")
    assert gc.isenabled()
