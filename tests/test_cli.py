"""The `pamo` command: its contract, its sentences for bad input, and what goes to stdout and to stderr."""

import argparse
import dataclasses
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from pamo import __version__, cli, environments, policies, simulate
from pamo.cli import main
from pamo.environments.base import setting

SMALL = ["--rounds", "60", "--trials", "3", "--checkpoints", "6"]
# The command of the contract, with fewer rounds.
CONTRACT = shlex.split(
    "simulate --policy prucb-hp --policy ucb --users 2 --block-size 5 --objectives 3 --preference predefined "
    "--rounds 200 --trials 10 --seed 1 --format json"
)


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as exit:  # argparse leaves this way
        return int(exit.code or 0)


def strict(text: str) -> object:
    """Parse JSON as the standard has it: without NaN and Infinity, which Python's reader takes."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def without_speed(document: dict[str, Any]) -> dict[str, Any]:
    for outcome in document["policies"].values():
        del outcome["decisions_per_second"]
    return document


def subprocess_environment() -> dict[str, str]:
    return os.environ | {"PYTHONWARNINGS": "error", "PYTHONIOENCODING": "ascii"}


# The contract


def test_the_json_document_is_the_contract(capsys):
    assert run(*CONTRACT) == 0
    document = strict(capsys.readouterr().out)
    assert isinstance(document, dict)
    assert list(document) == ["settings", "policies"]
    assert list(document["policies"]) == ["prucb-hp", "ucb"]
    for outcome in document["policies"].values():
        final = outcome["final_regret"]
        assert set(final) == {"mean", "sd", "low", "high", "trials"}
        assert len(final["trials"]) == 10
        assert final["mean"] == pytest.approx(np.mean(final["trials"]))
        assert final["sd"] == pytest.approx(np.std(final["trials"], ddof=1))
        assert final["low"] < final["mean"] < final["high"]
        assert len(outcome["rounds"]) == len(outcome["mean_regret"]) == 100
        assert outcome["rounds"] == sorted(outcome["rounds"])
        assert outcome["rounds"][-1] == 200
        assert outcome["mean_regret"][-1] == pytest.approx(final["mean"])
        assert outcome["decisions_per_second"] > 0


def test_the_settings_say_what_was_run(capsys):
    assert run(*CONTRACT) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert settings == {
        "environment": {
            "id": "gaussian",
            "users": 2,
            "block_size": 5,
            "objectives": 3,
            "arms": 10,
            "protocol": "random",
            "preference": "predefined",
            "reward_variance": 0.01,
            "preference_variance": 0.5,
        },
        "rounds": 200,
        "trials": 10,
        "seed": 1,
        "first_trial": 0,
        "version": __version__,
    }


def test_the_command_and_the_library_agree(capsys):
    assert run(*CONTRACT) == 0
    document = json.loads(capsys.readouterr().out)
    result = simulate(
        policies=["prucb-hp", policies.create("ucb")],
        environment=environments.Gaussian(users=2, block_size=5, objectives=3, preference="predefined"),
        rounds=200,
        trials=10,
        seed=1,
    )
    assert without_speed(document) == without_speed(json.loads(json.dumps(result.summary())))


def test_every_setting_reaches_the_simulator(capsys):
    arguments = [
        *("simulate", "--policy", "oful:epsilon=0.2", "--users", "3", "--block-size", "2", "--objectives", "3"),
        *("--arms", "8", "--protocol", "rotate", "--environment", "bounded", "--reward", "bernoulli"),
        *("--preference", "random", "--preference-variance", "0.02", "--reward-variance", "0.03"),
        *("--rounds", "30", "--trials", "2", "--first-trial", "4", "--seed", "9", "--threads", "1"),
        *("--checkpoints", "10,20", "--format", "json"),
    ]
    assert run(*arguments) == 0
    document = json.loads(capsys.readouterr().out)
    expected = simulate(
        policies=[policies.create("oful", epsilon=0.2)],
        environment=environments.Bounded(
            users=3,
            block_size=2,
            objectives=3,
            arms=8,
            protocol="rotate",
            preference="random",
            reward="bernoulli",
            reward_variance=0.03,
            preference_variance=0.02,
        ),
        rounds=30,
        trials=2,
        first_trial=4,
        seed=9,
        checkpoints=[10, 20],
    )
    assert document["policies"]["oful"]["rounds"] == [10, 20, 30]
    assert without_speed(document) == without_speed(json.loads(json.dumps(expected.summary())))


@dataclass(frozen=True, kw_only=True)
class Stormy(environments.Gaussian):
    """An environment that is not in the house."""

    id: ClassVar[str] = "stormy"
    gusts: float = setting(1.5, "how strong the gusts are, 100 % or more", "G", least=1)
    season: Literal["spring", "autumn"] = setting("spring", "when", "KIND")
    guests: int | None = setting(None, "who looks on", least=0, derived="nobody")
    dry: bool = setting(False, "without rain")


def test_a_new_environments_fields_are_flags_with_their_help(monkeypatch, capsys):
    monkeypatch.setitem(environments.REGISTRY, "stormy", Stormy)
    assert run("simulate", "--help") == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "--gusts G stormy only: how strong the gusts are, 100 % or more (default: 1.5)" in words
    assert "--guests N stormy only: who looks on (default: nobody)" in words
    assert "gaussian, bounded, ratings, stormy, or FILE.py:NAME" in words
    given = ["--environment", "stormy", "--gusts", "2.5", "--season", "autumn", "--guests", "3", "--dry"]
    assert run("simulate", *SMALL, *given, "--format", "json") == 0
    settings = json.loads(capsys.readouterr().out)["settings"]["environment"]
    assert (settings["gusts"], settings["season"], settings["guests"], settings["dry"]) == (2.5, "autumn", 3, True)
    for wrong, sentence in (
        (["--gusts", "0.5"], "expected gusts to be a finite number, 1 or more, got 0.5"),
        (["--season", "winter"], "expected season 'spring' or 'autumn', got 'winter'"),
        (["--guests", "-1"], "expected guests to be at least 0, got -1"),
        (["--guests", "many"], "--guests"),
    ):
        assert run("simulate", "--environment", "stormy", *wrong) == 2
        assert sentence in capsys.readouterr().err
    assert run("simulate", "--gusts", "2") == 2
    assert "the gaussian environment has no setting 'gusts'" in capsys.readouterr().err


def test_every_setting_of_every_environment_has_a_flag_unless_it_is_a_table(capsys):
    assert run("simulate", "--help") == 0
    words = capsys.readouterr().out
    for cls in environments.REGISTRY.values():
        for field in dataclasses.fields(cls):
            assert (f"--{field.name.replace('_', '-')} " in words) == (field.name not in ("means", "preferences"))


@pytest.mark.parametrize("protocol", ["random", "rotate", "all"])
def test_each_protocol_runs(protocol, capsys):
    assert run("simulate", *SMALL, "--protocol", protocol, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["settings"]["environment"]["protocol"] == protocol


def test_the_same_seed_gives_the_same_document(capsys):
    documents = []
    for threads in ("1", "2"):
        assert run("simulate", *SMALL, "--format", "json", "--threads", threads) == 0
        documents.append(without_speed(json.loads(capsys.readouterr().out)))
    assert documents[0] == documents[1]


def test_one_trial_has_no_spread(capsys):
    assert run("simulate", "--rounds", "10", "--trials", "1", "--format", "json") == 0
    document = strict(capsys.readouterr().out)
    final = document["policies"]["ucb"]["final_regret"]  # type: ignore[index]
    assert final["sd"] is final["low"] is final["high"] is None
    assert run("simulate", "--rounds", "10", "--trials", "1") == 0
    assert "one trial" in capsys.readouterr().out


# The table


def test_the_table_has_a_row_a_policy_the_best_first(capsys):
    names = ["prucb-hp:beta=0.5,radius=theory", "prucb-hp", "s-ucb", "greedy"]
    assert run("simulate", "--trials", "3", "--rounds", "300", *(x for n in names for x in ("--policy", n))) == 0
    out = capsys.readouterr().out
    lines = out.rstrip("\n").split("\n")
    assert lines[0].startswith("gaussian environment: 2 users, 10 arms (random), 3 objectives; 300 rounds, 3 trials")
    assert {line.split()[0] for line in lines[3:]} == set(names)
    regrets = [float(line.split()[1]) for line in lines[3:]]
    assert regrets == sorted(regrets)
    assert len({len(line) for line in lines[2:]}) == 1, "the columns are out of line"


def test_the_default_is_the_papers_policy_against_ucb(capsys):
    assert run("simulate", *SMALL) == 0
    out = capsys.readouterr().out
    assert "prucb-hp" in out
    assert "\nucb" in out


def test_show_prints_the_table_that_simulate_printed(tmp_path, capsys):
    kept = tmp_path / "result.parquet"
    assert run("simulate", *SMALL, "--output", str(kept)) == 0
    printed = capsys.readouterr()
    assert f"result: {kept}" in printed.err
    assert run("show", str(kept)) == 0
    assert capsys.readouterr().out == printed.out


def test_show_converts_and_draws(tmp_path, capsys):
    kept, exported, figure = (tmp_path / name for name in ("result.parquet", "result.json", "regret.svg"))
    assert run("simulate", *SMALL, "--output", str(kept), "--format", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert run("show", str(kept), "--output", str(exported), "--plot", str(figure), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == printed == json.loads(exported.read_text(encoding="utf-8"))
    assert figure.read_bytes().startswith(b"<?xml")


# The list of policies


def test_policies_lists_all_with_formula_feedback_and_reference(capsys):
    assert run("policies") == 0
    out = capsys.readouterr().out
    for cls in policies.REGISTRY.values():
        assert f"{cls.id}: {cls.summary}\n" in out
        assert cls.formula in out
        assert cls.reference in out


def test_policies_as_json_are_what_create_takes(capsys):
    assert run("policies", "--format", "json") == 0
    rows = strict(capsys.readouterr().out)
    assert isinstance(rows, list)
    assert [row["id"] for row in rows] == list(policies.available())
    for row in rows:
        assert policies.create(row["id"], **row["hyperparameters"]) == policies.create(row["id"])
        assert set(row["reads"]) <= {"reward", "overall", "stated preference", "true preference"}
        assert row["reads"]


# Bad input: one sentence on stderr that says what was expected and what came, exit code 2, no traceback

BAD: list[tuple[str, list[str]]] = [
    ("simulate --policy prucb-ph", ["unknown policy 'prucb-ph'", "did you mean", "'prucb-hp'"]),
    ("simulate --policy zzz", ["unknown policy 'zzz'", "Known: ", "prucb-hp"]),
    ("simulate --policy=", ["unknown policy ''"]),
    ("simulate --policy ucb --policy ucb", ["each policy once", "'ucb' 2 times"]),
    ("simulate --policy oful:epsilom=0.1", ["no hyperparameter 'epsilom'", "epsilon"]),
    ("simulate --policy oful:epsilon", ["name=value", "'epsilon'"]),
    ("simulate --policy oful:epsilon=nan", ["epsilon", "finite number", "nan"]),
    ("simulate --policy oful:epsilon=inf", ["epsilon", "finite number", "inf"]),
    ("simulate --policy oful:epsilon=1.5", ["epsilon between 0 and 1", "1.5"]),
    ("simulate --policy oful:epsilon=often", ["expected", "often"]),
    ("simulate --policy prucb-hp:alpha=0", ["alpha > 0", "0"]),
    ("simulate --policy prucb-hp:radius=small", ["experiments or theory", "small"]),
    ("simulate --users 0", ["users", "at least 1", "got 0"]),
    ("simulate --users -3", ["users", "at least 1", "got -3"]),
    ("simulate --users two", ["--users", "whole number", "'two'"]),
    ("simulate --users 2.5", ["--users", "whole number", "'2.5'"]),
    ("simulate --block-size 0", ["block_size", "at least 1"]),
    ("simulate --objectives 0", ["objectives", "at least 1"]),
    ("simulate --objectives -1", ["objectives", "at least 1"]),
    ("simulate --arms 0", ["arms", "at least 1"]),
    ("simulate --arms 3 --block-size 5", ["offer of 5 arms is larger than the 3 arms"]),
    ("simulate --arms 3 --block-size 5 --protocol all", ["offer of 5 arms is larger than the 3 arms"]),
    ("simulate --arms 12", ["fill blocks of 5", "12"]),
    ("simulate --arms 5 --users 2", ["at least 10 arms", "got 5"]),
    ("simulate --rounds 0", ["rounds", "at least 1", "got 0"]),
    ("simulate --rounds -5", ["rounds", "at least 1", "got -5"]),
    ("simulate --rounds 99999999999999999999", ["--rounds", "up to", "99999999999999999999"]),
    ("simulate --trials 0", ["trials", "at least 1"]),
    ("simulate --trials -1", ["trials", "at least 1"]),
    ("simulate --trials 1000000000000000", ["memory"]),
    ("simulate --first-trial -1", ["first_trial", "at least 0"]),
    ("simulate --first-trial 99999999999999999999", ["--first-trial", "up to"]),
    ("simulate --seed -1", ["seed", "from 0", "got -1"]),
    ("simulate --seed 99999999999999999999", ["--seed", "up to"]),
    ("simulate --seed one", ["--seed", "whole number", "'one'"]),
    ("simulate --threads 0", ["threads", "at least 1"]),
    ("simulate --checkpoints 0", ["checkpoints", "at least 1"]),
    ("simulate --checkpoints many", ["--checkpoints", "'many'"]),
    ("simulate --checkpoints 10,", ["--checkpoints", "'10,'"]),
    ("simulate --checkpoints 10,9000 --rounds 100", ["checkpoints from 1 to 100", "9000"]),
    ("simulate --checkpoints 0,10", ["checkpoints from 1", "0"]),
    ("simulate --reward-variance -1", ["reward_variance", "0 or more", "-1"]),
    ("simulate --reward-variance nan", ["reward_variance", "finite", "nan"]),
    ("simulate --reward-variance much", ["--reward-variance", "a number", "'much'"]),
    ("simulate --preference-variance inf", ["preference_variance", "finite", "inf"]),
    ("simulate --preference other", ["'predefined', 'random' or 'common'", "'other'"]),
    ("simulate --protocol circle", ["unknown protocol 'circle'", "random", "rotate", "all"]),
    ("simulate --environment gausian", ["unknown environment 'gausian'", "did you mean 'gaussian'"]),
    ("simulate --reward beta", ["gaussian environment has no setting 'reward'"]),
    ("simulate --environment bounded --reward coin", ["'beta' or 'bernoulli'", "'coin'"]),
    ("simulate --format xml", ["--format", "'xml'", "table"]),
    ("simulate --output result.txt", ["--output", ".parquet", "'result.txt'"]),
    ("simulate --output no/such/folder/result.parquet", ["--output", "existing folder"]),
    ("simulate --plot figure.bmp", ["--plot", ".svg", "'figure.bmp'"]),
    ("simulate --plot no/such/folder/figure.svg", ["--plot", "existing folder"]),
    ("simulate --turns 5", ["unrecognized arguments", "--turns"]),
    ("simulate --round 5", ["unrecognized arguments", "--round"]),
    ("simulate extra", ["unrecognized arguments", "extra"]),
    ("policies --format csv", ["--format", "'csv'"]),
    ("show", ["FILE"]),
    ("show no-such-file.parquet", ["no-such-file.parquet", "not a file"]),
    ("show .", ["not a file"]),
    ("simulat", ["simulat", "simulate"]),
]


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2(command, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pamo: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1, "more than one line"
    assert len(err) < 500
    for word in words:
        assert word in err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_file_to_write(tmp_path, capsys):
    for option, name in (("--output", "result.parquet"), ("--plot", "regret.svg")):
        folder = tmp_path / name
        folder.mkdir()
        assert run("simulate", *SMALL, option, str(folder)) == 2
        assert "got the folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("package", "option", "name", "extra"),
    [
        ("pyarrow", "--output", "result.parquet", "results"),
        ("matplotlib", "--plot", "regret.svg", "plot"),
    ],
)
def test_a_missing_extra_is_said_before_the_work(package, option, name, extra, tmp_path, capsys, monkeypatch):
    for module in [module for module in sys.modules if module.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(cli, "simulate", lambda **_: pytest.fail("the work was begun"))
    assert run("simulate", *SMALL, option, str(tmp_path / name)) == 2
    assert f"pip install 'pamo[{extra}]'" in capsys.readouterr().err


def test_a_result_file_that_was_cut_short_is_one_sentence(tmp_path, capsys):
    kept = tmp_path / "result.parquet"
    assert run("simulate", *SMALL, "--output", str(kept)) == 0
    kept.write_bytes(kept.read_bytes()[:-100])
    capsys.readouterr()
    assert run("show", str(kept)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pamo: ")
    assert err.count("\n") == 1
    assert "cut short" in err


# Help


def subcommands() -> dict[str, argparse.ArgumentParser]:
    parser = cli._parser()
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(action.choices)


@pytest.mark.parametrize("command", subcommands())
def test_help_explains_every_option(command, capsys):
    assert run(command, "--help") == 0
    text = capsys.readouterr().out
    assert f"usage: pamo {command}" in text
    for action in subcommands()[command]._actions:
        assert action.help, f"{action.dest} has no help"
        assert action.help != argparse.SUPPRESS
        for option in action.option_strings:
            assert option in text


def test_every_command_is_documented():
    root = Path(__file__).parent.parent
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (root / "README.md", *(root / "docs").rglob("*.md")))
    for command in subcommands():
        assert f"pamo {command}" in pages, f"`pamo {command}` is in neither the README nor the docs"
    guide = (root / "docs" / "simulate.md").read_text(encoding="utf-8")
    for action in subcommands()["simulate"]._actions:
        for option in action.option_strings:
            assert option in ("-h", "--help") or f"`{option}" in guide, f"docs/simulate.md leaves out {option}"


def test_no_command_prints_the_help(capsys):
    assert run() == 0
    text = capsys.readouterr().out
    for command in subcommands():
        assert command in text


def test_the_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"pamo {__version__}\n"


def test_the_version_for_bug_reports_tells_all_but_who_runs_it(capsys, monkeypatch):
    monkeypatch.setenv("PAMO_STORE", "postgresql://ann:secret@db/pamo")
    assert run("--version", "--verbose") == 0
    told = capsys.readouterr().out
    first, *rest = told.splitlines()
    assert first == f"pamo {__version__}"
    named = dict(line.split(": ", 1) for line in rest)
    assert list(named) == [
        "python", "processor", "packages", "extras", "of the extras", "compiled code", "variables set"
    ]  # fmt: skip
    assert "PAMO_STORE" in named["variables set"]
    assert "sqlite" in named["extras"]
    assert re.match(r"\d+ files of [\d.]+ MB together, ", named["compiled code"])
    for secret in (str(Path.home()), str(Path(cli.__file__).parents[3]), "ann", "secret"):
        assert secret not in told


# As a process: streams, signals, pipes


def test_stdout_is_one_document_and_progress_is_on_stderr():
    done = subprocess.run(
        [sys.executable, "-m", "pamo", "simulate", "--trials", "40", "--format", "json"],
        capture_output=True,
        check=True,
        env=subprocess_environment(),
        timeout=120,
    )
    text = done.stdout.decode("utf-8")
    assert text.count("\n") == 1
    assert "\r" not in text
    assert strict(text)
    assert b"Traceback" not in done.stderr
    assert b"%|" in done.stderr  # the bar


def test_an_interrupt_is_exit_code_130_and_leaves_nothing(tmp_path):
    kept = tmp_path / "result.parquet"
    # A shell's background jobs ignore SIGINT, and so would their children: take Python's handler explicitly.
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import pamo.cli; "
    program += "sys.exit(pamo.cli.main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", program, "simulate", "--rounds", "1000000", "--trials", "50", "--output", str(kept)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=subprocess_environment(),
    ) as process:
        assert isinstance(process.stderr, io.BufferedReader)
        seen = b""
        while b"%|" not in seen:
            seen += process.stderr.read1()
            assert process.poll() is None, seen
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert b"pamo: interrupted; nothing was written\n" in err
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_error_message():
    program = [sys.executable, "-m", "pamo", "policies"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


OWN = """
from dataclasses import dataclass

from pamo.environments import Gaussian
from pamo.policies import Feedback, Policy, kernel


@kernel
def score(scores, offered, t, arms, user, common, run, dims):
    for j in range(len(scores)):
        scores[j] = -1.0 * j * run.hyperparameters[0]


@dataclass(frozen=True, kw_only=True)
class First(Policy):
    id = "first"
    summary, formula, reference = "the first arm of the offer, or with another sign the last", "-j", "none"
    reads = (Feedback.REWARD,)
    kernel = score
    sign: float = 1.0

    def hyperparameters(self, shape):
        return (self.sign,)


class Calm(Gaussian):
    id = "calm"
"""


def test_a_policy_and_an_environment_of_ones_own_are_named_by_file_and_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(OWN, encoding="utf-8")
    (tmp_path / "broken.py").write_text("1 / 0", encoding="utf-8")
    line = ["simulate", "--rounds", "20", "--trials", "2", "--protocol", "all", "--format", "json"]
    assert main([*line, "--policy", f"{mine}:First", "--environment", f"{mine}:Calm"]) == 0
    assert list(json.loads(capsys.readouterr().out)["policies"]) == ["first"]
    assert main([*line, "--policy", f"{mine}:First:sign=-1", "--policy", "ucb"]) == 0
    assert list(json.loads(capsys.readouterr().out)["policies"]) == ["first", "ucb"]
    for name, expected in (
        (f"{mine}:Frist", "unknown policy in"),
        (f"{mine}:Frist", "did you mean 'First'?"),
        (f"{mine}:Calm", "Known: First"),
        (f"{tmp_path / 'none.py'}:First", "there is no file"),
        (f"{mine}:First:tail=1", "has no hyperparameter 'tail'"),
        (f"{tmp_path / 'broken.py'}:X", "could not be run: ZeroDivisionError"),
    ):
        assert main([*line, "--policy", name]) == 2
        assert expected in capsys.readouterr().err
