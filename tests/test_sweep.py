"""`pamo sweep`: the table is what `simulate` says, whatever was played before, and a bad file meets a sentence."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import environments, policies, simulate
from pamo.cli import main
from pamo.cli.sweep import _HELP
from pamo.errors import InputError
from pamo.experiments.sweep import KEPT, document_of, sweep, text_of, varied
from pamo.experiments.sweep_figure import draw_sweep
from pamo.experiments.sweep_spec import Spec, read_spec, spec_of
from pamo.experiments.tasks import Began, Task, local
from pamo.progress import Progress

OFUL = {"id": "oful", "epsilon": [0.0, 0.05, 0.5]}
SMALL: dict[str, Any] = {
    "sweep": {"rounds": 60, "trials": 4},
    "environment": {"users": [2, 3], "reward_variance": 0.1},
    "policy": [OFUL, {"id": "greedy"}],
}


class Counting:
    """The local runner, which stops after so many tasks, and says how many it was given."""

    def __init__(self, stop: int | None = None) -> None:
        self.given, self._stop, self._local = 0, stop, local

    def __call__(self, tasks: Sequence[Task], progress: Progress, began: Began) -> Iterator[tuple[int, Any]]:
        self.given += len(tasks)
        for done, (place, found) in enumerate(self._local(tasks, progress, began)):
            if done == self._stop:
                raise KeyboardInterrupt
            yield place, found


def test_the_rows_are_what_simulate_gives() -> None:
    found = sweep(spec_of(SMALL))
    assert len(found.rows) == 2 * 4
    for users in (2, 3):
        environment = environments.Gaussian(users=users, reward_variance=0.1)
        names = ["oful:epsilon=0.0", "oful", "oful:epsilon=0.5", "greedy"]
        result = simulate(list(map(policies.parse, names)), environment, rounds=60, trials=4, seed=1)
        rows = {row["policy"]: row for row in found.rows if row["setting"] == f"users={users}"}
        finals = {name: outcome.final_regret for name, outcome in zip(names, result.values(), strict=True)}
        best = min(finals, key=lambda name: finals[name].mean())
        assert next(iter(rows)) == best
        for name, values in finals.items():
            assert rows[name]["mean"] == values.mean()
            assert rows[name]["share"] == values.mean() / finals[best].mean()
            assert rows[name]["difference"] == pytest.approx((values - finals[best]).mean(), abs=1e-12)
    assert list(varied(found)) == [("environment", "users"), ("oful", "epsilon")]


def test_a_sweep_that_was_stopped_goes_on_and_has_the_same_table(tmp_path: Path) -> None:
    spec = spec_of(SMALL)
    whole = document_of(sweep(spec))
    with pytest.raises(KeyboardInterrupt):
        sweep(spec, tmp_path, runner=Counting(3))
    with (tmp_path / KEPT).open("a", encoding="utf-8") as stream:
        stream.write('{"key": "cut sh')
    rest = Counting()
    assert document_of(sweep(spec, tmp_path, runner=rest)) == whole
    assert rest.given == 8 - 3
    again = Counting()
    assert document_of(sweep(spec, tmp_path, runner=again)) == whole
    assert again.given == 0


def test_a_changed_file_plays_only_what_is_new(tmp_path: Path) -> None:
    sweep(spec_of(SMALL), tmp_path)
    wider = SMALL | {"policy": [OFUL | {"epsilon": [0.0, 0.05, 0.5, 0.7]}, {"id": "greedy"}]}
    new = Counting()
    found = sweep(spec_of(wider), tmp_path, runner=new)
    assert new.given == 2
    assert document_of(found) == document_of(sweep(spec_of(wider)))
    other = Counting()
    sweep(spec_of(SMALL | {"sweep": {"rounds": 60, "trials": 4, "seed": 2}}), tmp_path, runner=other)
    assert other.given == 8  # another seed is another run


def test_after_kill_9_the_command_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Killed by SIGKILL when some of it is on the disk: that is not played again, and the table is the same."""
    spec = tmp_path / "many.toml"
    values = ", ".join(f"{number / 40}" for number in range(40))
    spec.write_text(f'[sweep]\nrounds = 2000\ntrials = 8\n[[policy]]\nid = "oful"\nepsilon = [{values}]\n')
    kept = tmp_path / "kept" / KEPT
    command = [sys.executable, "-m", "pamo", "sweep", str(spec), "--output", str(kept.parent)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + 300
        while not kept.exists() or kept.read_bytes().count(b"\n") < 5:
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.002)
        os.kill(running.pid, signal.SIGKILL)
    before = kept.read_bytes().count(b"\n")
    assert 5 <= before < 40
    rest = Counting()
    found = sweep(read_spec(spec), kept.parent, runner=rest)
    assert rest.given == 40 - before
    assert document_of(found) == document_of(sweep(read_spec(spec)))
    assert main(["sweep", str(spec), "--output", str(kept.parent), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(document_of(found)))


def test_halving_drops_the_worse_and_compares_on_the_same_trials() -> None:
    many = {"id": "oful", "epsilon": {"from": 0.0, "to": 0.9, "steps": 8}}
    sizes = {"rounds": 60, "method": "halving", "trials": 16, "first_trials": 4, "keep": 0.5}
    played = Counting()
    found = sweep(spec_of({"sweep": sizes, "policy": [many]}), runner=played)
    assert found.spec.rungs == (4, 8, 16)
    assert played.given == 8 + 4 + 2
    assert sorted(row["trials"] for row in found.rows) == [4] * 4 + [8] * 2 + [16] * 2
    grid = sweep(spec_of({"sweep": {"rounds": 60, "trials": 16}, "policy": [many]}))
    means = {row["policy"]: row["mean"] for row in grid.rows}
    best = found.rows[0]["policy"]
    for row in found.rows:
        if row["trials"] == 16:
            assert row["mean"] == means[row["policy"]]
        else:  # against the best's first trials, not against all of them
            few = simulate(
                [policies.parse(row["policy"]), policies.parse(best)],
                environments.Gaussian(),
                rounds=60,
                trials=row["trials"],
            )
            ours, theirs = (outcome.final_regret.mean() for outcome in few.values())
            assert (row["mean"], row["share"]) == (ours, pytest.approx(ours / theirs))


def test_draws_are_the_seeds_and_stay_in_their_ranges() -> None:
    said: dict[str, Any] = {
        "sweep": {"method": "random", "candidates": 30, "settings": 4, "seed": 5},
        "environment": {"users": {"from": 2, "to": 20}, "reward_variance": {"from": 0.01, "to": 1, "scale": "log"}},
        "policy": [OFUL | {"epsilon": {"from": 0.001, "to": 1.0, "scale": "log"}}, {"id": "greedy"}],
    }

    def names(spec: Spec) -> list[list[str]]:
        return [list(spec.settings), list(spec.candidates)]

    spec = spec_of(said)
    assert names(spec) == names(spec_of(said))
    assert names(spec) != names(spec_of(said | {"sweep": said["sweep"] | {"seed": 6}}))
    assert (len(spec.settings), len(spec.candidates)) == (4, 30)
    assert all(2 <= each.users <= 20 for each in spec.settings.values())
    values = [policy.settings["epsilon"] for policy in spec.candidates.values() if policy.id == "oful"]
    assert 0.001 <= min(values) < 0.02
    assert 0.2 < max(values) <= 1.0
    few = spec_of(said | {"policy": [OFUL, {"id": "greedy"}]})
    assert len(few.candidates) == 4  # there are no more to be drawn


def test_the_files_and_the_text_say_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Path(__file__).parent.parent / "examples" / "own_policy.py"
    (tmp_path / "mine.py").write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
    spec = tmp_path / "spec.toml"
    spec.write_text(
        "[sweep]\nrounds = 50\ntrials = 3\n[environment]\nusers = [2, 3]\n"
        '[[policy]]\nid = "mine.py:FallingEpsilon"\nscale = [5, 10]\n[[policy]]\nid = "greedy"\n'
    )
    assert main(["sweep", str(spec), "--output", str(tmp_path / "out"), "--top", "2"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("grid: 2 settings × 3 candidates; regret after 50 rounds, 3 trials, seed 1\n")
    assert "… and 1 candidate more" in said.out
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6
    assert {row["falling-epsilon.scale"] for row in rows} == {"5", "10", ""}
    assert {row["environment.users"] for row in rows} == {"2", "3"}
    found = sweep(read_spec(spec), tmp_path / "out")
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in found.rows]
    assert text_of(found, top=2) == said.out.rstrip("\n")
    assert (tmp_path / "out" / "figure.svg").stat().st_size > 10_000
    panels = draw_sweep(found).axes
    assert [each.get_title(loc="left") for each in panels] == ["setting: users", "falling-epsilon: scale"]
    assert all(np.isfinite(line.get_ydata()).all() for line in panels[1].lines)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rounds = 5", "unknown table 'rounds'. Known: environment, policy, sweep"),
        ("[swep]", "unknown table 'swep'; did you mean 'sweep'?"),
        ("[sweep]\nround = 5", "unknown key of [sweep] 'round'; did you mean 'rounds'?"),
        ('[sweep]\nrounds = "many"', "sweep.rounds: expected a whole number, got 'many'"),
        ("[sweep]\ntrials = 1", "sweep.trials: expected a number at least 2, got 1"),
        ('[sweep]\nmethod = "grids"', "unknown sweep.method 'grids'; did you mean 'grid'?"),
        ("[sweep]\nkeep = 0.5", "sweep.keep: only the method halving takes it, not 'grid'"),
        ('[sweep]\nmethod = "halving"\nkeep = 1.5', "sweep.keep: expected a number between 0 and 1, got 1.5"),
        ('[sweep]\nmethod = "random"', "sweep.candidates: expected how many are to be drawn"),
        ('[sweep]\nmethod = "halving"\ntrials = 4\nfirst_trials = 5', "first_trials: expected at most the 4 trials"),
        ("[environment]\nusers = 2", "expected at least one [[policy]]"),
        ("[environment]\nuser = 2", "environment: the gaussian environment has no setting 'user'"),
        ('[environment]\nid = "gausian"', "environment: unknown environment 'gausian'; did you mean 'gaussian'?"),
        ('[environment]\nusers = "two"', "environment: expected users as a whole number, got 'two'"),
        ("[environment]\nusers = [2, 2.5]", "environment: expected users as a whole number, got 2.5"),
        ("[environment]\nusers = []", "environment.users: expected a list of values, got []"),
        ("[environment]\nusers = {from = 2}", "environment.users: expected a range {from = A, to = B}"),
        ("[environment]\nusers = {from = 2, to = 9, step = 1}", "unknown key of the range environment.users 'step'"),
        ("[environment]\nusers = {from = 2, to = 9}", "environment.users: expected steps in a range of a grid"),
        ("[environment]\nmissing = {from = 0, to = 1, steps = 3, scale = 'log'}", "a range above 0 for the scale log"),
        ('policy = "oful"', "expected [policy] to be a table, got 'oful'"),
        ("[[policy]]\nepsilon = 1", "policy.id: expected the id of a policy, got None"),
        ('[[policy]]\nid = "ofull"', "policy: unknown policy 'ofull'; did you mean 'oful'?"),
        ('[[policy]]\nid = "oful"\neps = 1', "policy: oful has no hyperparameter 'eps'; it takes: epsilon, ridge"),
        ('[[policy]]\nid = "greedy"\n[[policy]]\nid = "oful"\nepsilon = "x"', "policy 2: oful: expected epsilon to be"),
        ("[sweep", "is not TOML: "),
    ],
)
def test_a_bad_file_meets_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    spec = tmp_path / "bad.toml"
    spec.write_text(text if "policy" in text or "users = 2\n" in f"{text}\n" else f'{text}\n[[policy]]\nid = "oful"\n')
    with pytest.raises(InputError) as caught:
        read_spec(spec)
    assert str(caught.value).startswith(str(spec))
    assert sentence in str(caught.value)


def test_the_help_has_a_file_that_works() -> None:
    text = _HELP[_HELP.index("  [sweep]") : _HELP.index("Every policy")]
    spec = spec_of(tomllib.loads(text))
    assert (spec.method, len(spec.settings), len(spec.candidates)) == ("halving", 2, 30)


def test_an_interrupt_says_where_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('[sweep]\nrounds = 20\ntrials = 2\n[[policy]]\nid = "oful"\nepsilon = [0.1, 0.2, 0.3]\n')
    monkeypatch.setattr("pamo.experiments.tasks.local", Counting(2))
    assert main(["sweep", str(spec), "--output", str(tmp_path / "out")]) == 130
    assert "what is finished is in" in capsys.readouterr().err
    assert (tmp_path / "out" / KEPT).read_bytes().count(b"\n") == 2


def test_a_file_that_is_not_there_meets_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(tmp_path / "none.toml")]) == 2
    assert "none.toml cannot be read: No such file" in capsys.readouterr().err
