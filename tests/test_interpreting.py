"""Python stands in for compiled kernels, and nobody can tell: what both answer is the same to the last bit."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import binding  # type: ignore[import-untyped]  # it ships no types

from pamo import interpreting
from pamo.compiling import count_of, dimensions, entry, kernel, looped
from pamo.interpreting import plain
from pamo.streams import below, normal, stream_for
from pamo.words import log
from tests.walks import WALKS, walk


def walked(folder: Path, *flags: str) -> dict[str, list[str]]:
    """Return what is answered where nothing is compiled: in a process whose cache is empty, and stays so."""
    found, cache = folder / "found.json", folder / "cache"
    done = subprocess.run(
        [sys.executable, "-m", "tests.walks", str(found), *flags],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not [*cache.rglob("*.nbc")], "something was compiled"
    answers: dict[str, list[str]] = json.loads(found.read_text(encoding="utf-8"))
    return answers


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return walked(tmp_path_factory.mktemp("uncompiled"))


@pytest.mark.parametrize("name", WALKS)
def test_what_is_answered_uncompiled_is_what_is_answered_compiled(name: str, uncompiled: dict[str, list[str]]) -> None:
    assert uncompiled[name] == walk(name)


AFTER_A_RUN = """
import json
from pamo import environments, simulate
from tests.walks import walk
simulate(["recommended"], environments.Gaussian(users=2), rounds=5, trials=1)
print(json.dumps(walk("three objectives")))
"""


def test_what_is_answered_does_not_depend_on_what_was_simulated_before(uncompiled: dict[str, list[str]]) -> None:
    # The simulator's loop rounds otherwise, by code that bears the same names.
    done = subprocess.run([sys.executable, "-c", AFTER_A_RUN], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == uncompiled["three objectives"]


def test_a_function_that_is_off_by_the_last_bit_shows(tmp_path: Path, uncompiled: dict[str, list[str]]) -> None:
    nudged = walked(tmp_path, "--nudged")
    assert {name: nudged[name] != uncompiled[name] for name in WALKS} == dict.fromkeys(WALKS, True)


def test_what_python_calls_rounds_as_python_does_and_a_loop_may_round_less() -> None:
    @kernel
    def product_and_sum(a: float, b: float, c: float) -> float:
        return a * b + c

    numbers = np.random.default_rng(1).normal(size=(1000, 3)).tolist()
    own = [a * b + c for a, b, c in numbers]
    assert [product_and_sum(*each) for each in numbers] == own
    free = [looped(product_and_sum)(*each) for each in numbers]
    np.testing.assert_allclose(free, own, rtol=1e-12, atol=1e-15)
    assert (free != own) == binding.get_host_cpu_features()["fma"]


def odd(x: float, table: Any, dims: Any) -> Any:
    """Divide by nothing, go past the ends of the library's functions, and name what only kernels call."""
    total, nothing = 0.0, 0.0
    for d in range(count_of(dims)):
        total += table[d] / (x * nothing)
    ends = (math.log(nothing), math.sqrt(-1.0 + nothing), math.exp(1000.0 + x), 1.0 / nothing, log(2.0 + x))
    return total, float(x) / nothing, ends


def draws(stream: Any) -> Any:
    return below(stream, 7), normal(stream), normal(stream)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (odd, lambda: (2.5, np.arange(3.0), dimensions(3))),
        (draws, lambda: (stream_for(1, 2, 3),)),
    ],
)
def test_python_calculates_as_compiled_code_does(function: Callable[..., Any], arguments: Callable[[], Any]) -> None:
    found, expected = plain(function)(*arguments()), entry(function)(*arguments())
    assert repr(found) == repr(expected)


def test_code_that_is_not_there_is_stood_in_for_or_refused_and_compiled_in_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @entry
    def doubled(x: float) -> float:
        return 2.0 * x

    interpreting.stand_in()
    try:
        assert doubled(4.0) == 8.0
        assert not doubled.signatures
        with interpreting.from_cache(), pytest.raises(interpreting.NotCompiledError, match="doubled"):
            doubled(4.0)
        with interpreting.compiling_here():
            assert doubled(4.0) == 8.0
        assert doubled.signatures == [(numba.float64,)]
    finally:
        interpreting.compile_again()
    assert doubled(3) == 6.0
    assert len(doubled.signatures) == 2
