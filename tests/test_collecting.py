"""Times without a collector, of several threads at once."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pamo.cli import main
from pamo.collecting import uncollected

COMMAND = """
import gc, sys
from pamo.cli import main
sys.argv = ["pamo", *{arguments}]
main()
print(gc.get_threshold()[0], gc.isenabled())
"""


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


def test_a_process_that_simulates_collects_rarely_and_no_other_does(capsys: pytest.CaptureFixture[str]) -> None:
    usual, short = gc.get_threshold(), ["simulate", "--rounds=2", "--trials=1", "--policy=ucb"]
    assert main(short) == 0
    assert gc.get_threshold() == usual
    for arguments, threshold in ((short, 1_000_000), (["policies"], usual[0])):
        run = [sys.executable, "-c", COMMAND.format(arguments=arguments)]
        said = subprocess.run(run, check=True, capture_output=True, encoding="utf-8").stdout
        assert said.splitlines()[-1] == f"{threshold} True"
