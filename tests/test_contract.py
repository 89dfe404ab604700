"""What engine, service and client agree on: codes that stay, and packages that load only what is asked for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import msgspec
import pytest

import pamo
from pamo.contract import answers
from pamo.contract.answers import ArmScore, Decision, Explanation, FeedbackResult
from pamo.contract.codes import CODES, Code
from pamo.contract.events import Outcome, outcome_of, refused
from pamo.errors import InputError, PamoError, ServiceError, error_of, unknown_name
from pamo.service.problems import Problem, problem_of

PROBLEMS = [code for code in Code if code.status >= 400]

ROOT = Path(__file__).parent.parent


def table_of_codes() -> str:
    """Return the documentation's table."""
    rows = ["| code | status | what it means | in Python |", "|---|---|---|---|"]
    for code in Code:
        kind = type(error_of(code, "") or ServiceError()).__name__
        if code.status < 400:
            rows.append(f"| `{code}` | in a batch | {code.meaning} | |")
        else:
            status = "404 or 422" if code is Code.UNKNOWN_ARM else code.status
            rows.append(f"| `{code}` | {status} | {code.meaning} | `{kind}` |")
    return "\n".join(rows) + "\n"


def test_every_code_is_documented_as_it_is() -> None:
    assert table_of_codes() in (ROOT / "docs" / "http.md").read_text("utf-8")


def test_the_codes_stay_as_they_are() -> None:
    assert [code.value for code in Code] == [
        "recorded",
        "duplicate",
        "unknown_decision",
        "unknown_arm",
        "unknown_experiment",
        "arm_not_chosen",
        "feedback_conflict",
        "decision_conflict",
        "experiment_conflict",
        "key_conflict",
        "expired_decision",
        "invalid",
        "malformed",
        "unauthorized",
        "forbidden",
        "not_found",
        "method_not_allowed",
        "body_timeout",
        "too_large",
        "not_json",
        "rate_limited",
        "failed",
        "unavailable",
    ]


def test_every_error_has_a_code_that_makes_a_problem_of_the_same_code() -> None:
    kinds: list[type[PamoError]] = [PamoError, *PamoError.__subclasses__()]
    for kind in kinds:
        error = kind("what came")
        problem = problem_of(error)
        assert problem.code == error.code
        assert problem.status == Code(error.code).status  # type: ignore[call-arg]
        assert problem.body().code == error.code
    assert problem_of(unknown_name("arm", "Z", ["A"], "arms")).code == "unknown_arm"
    assert problem_of(InputError("so", "k")).field == "k"


def test_a_status_alone_has_a_code() -> None:
    for status in {code.status for code in PROBLEMS}:
        assert CODES[status].status == status
        assert Problem(status, "so").code == CODES[status]
    assert Problem(404, "so").code == "not_found"
    assert Problem(404, "so", code=Code.UNKNOWN_ARM).body().code == "unknown_arm"


def test_every_refusal_has_an_outcome_and_an_error() -> None:
    refusals = [code for code in Code if outcome_of(code) is not None]
    assert {outcome_of(code) for code in refusals} == set(Outcome) - {Outcome.RECORDED, Outcome.DUPLICATE}
    for code in refusals:
        receipt = refused(code, "because")
        assert (receipt.code, receipt.reason, receipt.sequence) == (code, "because", 0)
        error = error_of(code, "because")
        assert error is not None
        assert error.code == code


def test_an_unknown_code_is_an_error_all_the_same() -> None:
    assert error_of("of_tomorrow", "so") is None
    error = FeedbackResult("d1", "of tomorrow", detail="so", code="of_tomorrow").error
    assert type(error) is PamoError
    assert str(error) == "so"


def test_answers_come_back_from_json_as_they_were() -> None:
    chosen = ArmScore("A", {"price": 0.25, "taste": 0.5}, float("inf"), 0.125)
    best = ArmScore("B", {"price": 0.5, "taste": 0.5}, 0.25, 0.0)
    why = Explanation("d1", "p", {"price": 0.5, "taste": 1.0}, chosen, best, "Because.")
    content = msgspec.json.encode(why)
    assert b'"reward_bonus":null' in content
    assert b'"score":null' in content
    assert msgspec.json.decode(content, type=Explanation) == why
    assert (why.explored, best.value, best.score) == (True, 1.0, 1.25)


def test_what_a_decision_has_in_process_is_not_sent() -> None:
    decision = Decision("d1", "ann", "A", ("A",), 1.0, "p")
    decision.details, decision.repeated = {"preference": (0.5,)}, True
    content = msgspec.json.encode(decision)
    assert sorted(msgspec.json.decode(content)) == ["arm", "arms", "id", "policy", "propensity", "user"]
    read = msgspec.json.decode(content, type=Decision)
    assert read == decision
    assert (read.details, read.repeated) == (None, False)


def test_every_answer_says_what_it_is() -> None:
    for kind in vars(answers).values():
        if isinstance(kind, type) and is_dataclass(kind):
            assert kind.__doc__
            assert not kind.__doc__.startswith(f"{kind.__name__}(")
            assert fields(kind)


def loaded(program: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(run.stdout.split())


def test_the_client_loads_neither_a_compiler_nor_arrays() -> None:
    modules = loaded("from pamo.client import Client\nClient('http://127.0.0.1:1').close()")
    assert not modules & {"numba", "numpy", "llvmlite", "pamo.engine", "pamo.store", "pamo.simulation", "pamo.policies"}
    assert {one.split(".")[1] for one in modules if one.startswith("pamo.")} == {
        "_version",
        "client",
        "contract",
        "errors",
    }


def test_the_client_is_there_in_a_quarter_of_a_second() -> None:
    program = (
        "import time\nstarted = time.process_time()\nfrom pamo.client import Client\n"
        "print(time.process_time() - started)"
    )
    # Of the processor's time, and the best of three: others may be at work here.
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < 0.25


def test_pamo_loads_engine_and_simulator_when_they_are_asked_for() -> None:
    modules = loaded("import pamo\npamo.InputError")
    assert not modules & {"numba", "numpy", "pamo.engine", "pamo.simulation", "pamo.policies", "pamo.client"}
    modules = loaded("import pamo\npamo.Engine")
    assert "pamo.engine" in modules
    assert not modules & {"pamo.simulation", "pamo.environments", "pamo.client", "pamo.service"}
    assert "pamo.environments" in loaded("from pamo import environments, simulate")


def test_all_names_of_pamo_are_listed_and_there() -> None:
    assert set(pamo.__all__) <= set(dir(pamo))
    assert "Client" in dir(pamo)
    for name in pamo.__all__:
        assert getattr(pamo, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pamo.Nothing
