"""The compiled cache: a second process compiles nothing, and a changed kernel is never run from yesterday's cache."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pamo import compiling

PACKAGE = Path(compiling.__file__).parent

HOLDS_KERNEL = re.compile(r"^@(kernel|inlined)\b|\bnjit\(|\bcompile_for\(", re.MULTILINE)

# Runs two policies and prints what was compiled (misses) and what came from the disk (hits).
PROGRAM = """
import json
import numpy as np
import pamo
from pamo import compiling, environments, policies, simulate
from pamo.rows import observe
from pamo.simulation.loop import trial_loop
from pamo.simulation.rounds import choosing, drawing

result = simulate(["prucb-hp", "ucb"], environments.Gaussian(users=2, block_size=2), rounds=20, trials=2, seed=1)
kernels = {
    "loop": trial_loop(3, False, False),  # as `simulate` asks for it: the very same object
    "prucb-hp": choosing(policies.PrucbHp.kernel, None),
    "ucb": choosing(policies.Ucb.kernel, None),
    "instance": environments.Gaussian.instance,
    "draw": drawing(environments.Gaussian.draw),
}
counts = {
    name: [sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())]
    for name, kernel in kernels.items()
}
# What kernels have compiled into them has no way in from Python: were that taken from the cache, we would end here.
row = np.zeros(6)
observe(row, 0, 1.0, np.ones(3), 3)
assert row.tolist() == [1.0] * 6
regret = [outcome.final_regret.tolist() for outcome in result.values()]
print(json.dumps({"file": pamo.__file__, "stamp": compiling.kernel_stamp(), "counts": counts, "regret": regret}))
"""


def run(folder: Path) -> dict[str, Any]:
    """Run the program over the copy of the package in this folder."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        check=False,
        env=environment | {"PYTHONPATH": str(folder)},
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert Path(report["file"]).is_relative_to(folder), "the copy was not the one that ran"
    return report


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "pamo", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_second_process_compiles_nothing_and_a_changed_kernel_is_compiled_anew(copy):
    first = run(copy)
    for hits, misses in first["counts"].values():
        assert (hits, misses > 0) == (0, True)

    second = run(copy)
    assert second["stamp"] == first["stamp"]
    assert second["regret"] == first["regret"]
    for name, (hits, misses) in second["counts"].items():
        assert misses == 0, f"{name} was compiled in the second process"
        assert hits > 0

    # A file that the loop's own file only imports from: Numba by itself would not notice.
    streams = copy / "pamo" / "streams.py"
    text = streams.read_text(encoding="utf-8")
    line = "    return np.float64(next_word(stream) >> _ELEVEN) * _UNIT\n"
    assert text.count(line) == 1
    streams.write_text(text.replace(line, line.replace("* _UNIT", "* (0.5 * _UNIT)")), encoding="utf-8")
    third = run(copy)
    assert third["stamp"] != first["stamp"]
    assert third["regret"] != first["regret"], "yesterday's kernels were run"
    assert third["counts"]["loop"] == [0, 1]


def stamp_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the stamp that the package would have if it were installed here."""
    monkeypatch.setattr(compiling, "__file__", str(package / "compiling.py"))
    stamp: str = compiling.kernel_stamp.__wrapped__()
    return stamp


def test_the_stamp_covers_every_file_that_holds_a_kernel(tmp_path, monkeypatch):
    package = tmp_path / "pamo"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = stamp_of(package, monkeypatch)
    assert before == compiling.kernel_stamp(), "the stamp should not depend on where the package lies"
    holders = [path for path in sorted(package.rglob("*.py")) if HOLDS_KERNEL.search(path.read_text(encoding="utf-8"))]
    assert {"streams.py", "rows.py", "prucb.py", "gaussian.py", "loop.py"} <= {path.name for path in holders}
    for path in holders:
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\n", encoding="utf-8")
        assert stamp_of(package, monkeypatch) != before, f"a change in {path.name} would go unnoticed"
        path.write_text(text, encoding="utf-8")
    assert stamp_of(package, monkeypatch) == before


def test_the_stamp_covers_how_kernels_are_compiled(monkeypatch):
    before = compiling.kernel_stamp.__wrapped__()
    monkeypatch.setitem(compiling.OPTIONS, "error_model", "python")
    assert compiling.kernel_stamp.__wrapped__() != before


WITHIN = """
from pamo.compiling import apart, kernel, log

part = apart(log.py_func)

@kernel
def twice(x):
    return log(x) + part(x)

print(twice(3.0) == 2.0 * log(3.0) == 2.0 * kernel(log.py_func)(3.0))
"""


def test_python_can_call_what_was_cached_for_kernels_alone(tmp_path: Path) -> None:
    """What is cached of it for a kernel has no way in, and must not be taken for what Python calls."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", WITHIN],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
