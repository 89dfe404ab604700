"""What a server compiles before it serves: all that its users ask for, so that none of them waits for it."""

import json
import subprocess
import sys

import numba
import pytest

from pamo.service import warming

# In a process of its own: what other tests have compiled would hide what is missing here.
PROGRAM = """
import json, sys
from numba.core.dispatcher import Dispatcher
from pamo import Engine
from pamo.contract.events import ArmChanged, TasteChanged
from pamo.service.warming import warm_all

def compiled():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("pamo."):
            for value in vars(module).values():
                if isinstance(value, Dispatcher):
                    called = vars(value).get("outside", value)  # a kernel that Python has called after all
                    found[f"{value.py_func.__module__}.{value.py_func.__qualname__}"] = len(called.signatures)
    return found

with Engine(["price", "taste", "service"], seed=1) as engine:
    engine.add_arms(["A", "B", "C"])
    if sys.argv[1] == "warm":
        warm_all(engine)
    before = compiled()
    for n in range(30):
        user, scores = f"u{n % 3}", {"price": 0.1 * (n % 10), "taste": 0.5, "service": 0.2}
        decision = engine.decide(user, arms={"A": {"price": 0.5}, "B": {"price": 0.2}} if n % 5 == 4 else None)
        if n % 5 == 2:
            scores.pop("taste")
        if n % 5 == 4:
            scores.pop("price")
        engine.feedback(decision, scores, None if n % 7 == 3 else 0.4)
    watch = engine.core.decider.watch
    watch.suspect("u1")
    watch.found()
    last = engine.decide("u1")
    engine.store.append(TasteChanged(last.id, "u1", 0.0, ((last.arm, scores | {"price": 0.1, "taste": 0.5}, 0.4),)))
    engine.store.append(ArmChanged(last.arm, 0.0, {"taste": (2.0, 1.0, 0.5)}))
    engine.preference("u1")
    engine.explain(engine.decide("u1", k=2))
    after = compiled()
print(json.dumps(sorted(name for name, count in after.items() if count > before.get(name, 0))))
"""


def test_nothing_is_compiled_for_a_user_who_waits() -> None:
    for how, late in (("warm", False), ("cold", True)):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, how], capture_output=True, check=False, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert bool(json.loads(done.stdout)) == late, done.stdout


def test_who_waits_for_the_compiler_is_told_once_and_nobody_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming._Told, "told", False)
    twice = numba.njit(lambda x: 2.0 * x)
    with warming.telling_of_compilation():
        assert capsys.readouterr().err == ""
        assert (twice(1.0), twice(2)) == (2.0, 4.0)
        told = capsys.readouterr().err
        assert (told.count("\n"), "compiles" in told) == (1, True)
    monkeypatch.setattr(warming._Told, "told", False)
    with warming.telling_of_compilation():
        assert twice(3.0) == 6.0
    numba.njit(lambda x: 3.0 * x)(1.0)
    assert capsys.readouterr().err == ""
