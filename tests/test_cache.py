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

result = simulate(["s-ucb", "ucb"], environments.Gaussian(users=2, block_size=2), rounds=20, trials=2, seed=1)
kernels = {
    "loop": trial_loop(3, False, False, False).compiled,  # as `simulate` asks for it: the very same object
    "s-ucb": choosing(policies.SUcb.kernel, None, True),
    "ucb": choosing(policies.Ucb.kernel, None, True),
    "instance": compiling.looped(environments.Gaussian.instance),
    "draw": drawing(environments.Gaussian.draw),
}
counts = {
    name: [sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())]
    for name, kernel in kernels.items()
}
# What kernels have compiled into them can be called from Python, too.
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


ALIKE = """
import sys
from numba import types
from pamo.compiling import around, compile_for, kernel

@kernel
def first(x):
    return x + 1.0

@kernel
def second(x):
    return x + 2.0

def calling(kernel):
    def call(x):
        return kernel(x)
    return around(call, kernel)

def play(function):
    return function(0.0)

chosen = [calling(globals()[name]) for name in sys.argv[1:]]
for one in chosen:  # all are there before the first is called, as in `simulate`
    one.compile((types.float64,))
loop = compile_for(play, types.float64(types.FunctionType(types.float64(types.float64))))
print(*(loop(one) for one in chosen))
"""


def test_closures_that_two_processes_cached_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """They are called the same, and in both processes they were compiled as the second function of all."""
    program = tmp_path / "alike.py"
    program.write_text(ALIKE, encoding="utf-8")
    printed = []
    for names in (["first"], ["second"], ["first", "second"], ["second", "first"]):
        done = subprocess.run(
            [sys.executable, program, *names],
            env=os.environ | {"PYTHONHASHSEED": "0"},  # by which the options are spelled, and these are in the name
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.split())
    assert printed == [["1.0"], ["2.0"], ["1.0", "2.0"], ["2.0", "1.0"]]


NAMED = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location(sys.argv.pop(1), sys.argv.pop(1))
sys.modules[spec.name] = module = module_from_spec(spec)
spec.loader.exec_module(module)
"""


def test_a_program_that_is_imported_by_another_name_runs(tmp_path: Path) -> None:
    """What is cached of it names a module that there is not."""
    program = tmp_path / "alike.py"
    program.write_text(ALIKE, encoding="utf-8")
    for name in ("shop", "market", "shop"):
        done = subprocess.run(
            [sys.executable, "-c", NAMED, name, program, "first"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr


def entries(folder: Path, stamp: str = "today") -> Any:
    @compiling.kernel
    def function(x):
        return x

    kind: Any = type(function._cache._cache_file)
    return kind(str(folder), "function", stamp)


def test_two_processes_that_cache_at_the_same_time_do_not_mix_up_signatures(tmp_path: Path) -> None:
    one, other = entries(tmp_path), entries(tmp_path)
    write, read = one._save_data, other._load_index
    before = read()

    def read_before() -> Any:
        other._load_index = read
        return before

    def interrupted(name: str, data: Any) -> None:
        other._load_index = read_before
        other.save("floats", "code for floats")
        write(name, data)

    one._save_data = interrupted
    one.save("integers", "code for integers")
    assert one.load("integers") in {None, "code for integers"}
    assert one.load("floats") in {None, "code for floats"}


def test_what_is_being_written_is_not_yesterdays(tmp_path: Path) -> None:
    before, after, reader = entries(tmp_path, "yesterday"), entries(tmp_path), entries(tmp_path)
    before.save("floats", "yesterday's code")
    seen = []

    def looked_at(write: Any) -> Any:
        def do(*arguments: Any) -> None:
            seen.append(reader.load("floats"))
            write(*arguments)
            seen.append(reader.load("floats"))

        return do

    after._save_index, after._save_data = looked_at(after._save_index), looked_at(after._save_data)
    after.save("floats", "today's code")
    assert set(seen) == {None, "today's code"}
    assert len(list(tmp_path.glob("*.nbc"))) == 1, "what yesterday left lies there for ever"


WITHIN = """
from pamo.compiling import apart, kernel
from pamo.words import log

part = apart(log.py_func)

@kernel
def twice(x):
    return log(x) + part(x)

print(twice(3.0) == 2.0 * log(3.0) == 2.0 * kernel(log.py_func)(3.0))
"""


def test_what_was_compiled_for_arrays_apart_is_not_taken_for_a_kernel(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", WITHIN],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
