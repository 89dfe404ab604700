"""`--runner ray` on a real cluster of two workers: the local results, seed for seed, also when a worker is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.cluster import KillingHalfWay, kill_a_worker, spec_for
from pamo import compiling, environments, policies, simulate
from pamo.errors import MissingExtraError, PamoError
from pamo.experiments.cluster import cluster, require_ray
from pamo.experiments.compare import compare
from pamo.experiments.evaluation import by_chance, by_policy, by_weights, evaluate
from pamo.experiments.logs import objectives_in, read_log
from pamo.experiments.paper import STUDIES
from pamo.experiments.runner import run_studies
from pamo.experiments.sweep import document_of, sweep
from pamo.experiments.sweep_spec import read_spec
from pamo.experiments.tables import Table
from pamo.experiments.tasks import Began, Runner, Task, in_order
from pamo.progress import Progress, unseen

# What Ray leaves open when it is stopped is not ours to close.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Runner]:
    try:
        require_ray()
    except MissingExtraError as error:
        pytest.skip(str(error))
    with cluster(workers=2) as runner:
        yield runner


def test_a_worker_that_is_killed_half_way_changes_nothing(
    two_workers: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The short version of `python -m campaigns.cluster`: SIGKILL to a worker that is at a task."""
    spec = spec_for(40, rounds=2000)
    killer = KillingHalfWay(two_workers, kill_a_worker)
    found = document_of(sweep(spec, tmp_path, runner=killer))
    assert killer.killed
    assert capsys.readouterr().out == ""  # stdout is for results
    assert found == document_of(sweep(spec))
    assert document_of(sweep(spec, tmp_path, runner=nobody)) == found  # all of it is kept


def nobody(tasks: Sequence[Task], progress: Progress, began: Began) -> Iterator[tuple[int, Any]]:
    assert not tasks
    yield from ()


def test_the_other_commands_give_what_they_give_here(two_workers: Runner, tmp_path: Path) -> None:
    settings = {"two": environments.Gaussian(users=2), "newcomers": environments.Gaussian(users=3, newcomers=1)}
    both = [compare(["prucb-hp", "greedy"], settings, rounds=100, trials=4, **chosen) for chosen in ways(two_workers)]
    for name, column in both[0].columns.items():
        np.testing.assert_array_equal(column, both[1][name])

    for folder, chosen in zip(("here", "there"), ways(two_workers), strict=True):
        (record,) = run_studies([STUDIES["lr-toy"]], tmp_path / folder, quick=True, shown=False, **chosen)
        tables = [name for name in record["files"] if name.endswith(".parquet")]
        assert tables
    for file in tables:
        here, there = (Table.load(tmp_path / folder / "lr-toy" / file) for folder in ("here", "there"))
        for key in here.columns:
            np.testing.assert_array_equal(here[key], there[key])

    log = logged(tmp_path)
    targets = [by_weights({"objective 1": 1.0}), by_policy(policies.create("greedy")), by_chance]
    tasks = [Task("evaluate", evaluate, (log, target, 3)) for target in targets]
    for found, target in zip(in_order(two_workers, tasks, unseen), targets, strict=True):
        assert list(found.rows.rows()) == list(evaluate(log, target, seed=3).rows.rows())


def ways(runner: Runner) -> list[dict[str, Any]]:
    return [{}, {"runner": runner}]


def logged(folder: Path) -> Any:
    path = folder / "log.parquet"
    simulate(["prts"], environments.Gaussian(), rounds=40, trials=1, trajectory=path)
    return read_log(path, objectives_in(path))


def test_the_command_uses_a_cluster_that_exists(two_workers: Runner, tmp_path: Path) -> None:
    """With a policy in a file of one's own, which the workers have to run as well."""
    import ray

    own = Path(__file__).parent.parent / "examples" / "own_policy.py"
    spec = tmp_path / "spec.toml"
    spec.write_text(f'[sweep]\nrounds = 50\ntrials = 3\n[[policy]]\nid = "{own}:FallingEpsilon"\nscale = [5, 10]\n')
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "pamo", "sweep", str(spec), "--output", str(tmp_path / "out"), "--runner", "ray"]
    done = subprocess.run(
        [*command, "--address", address, "--format", "json"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=300,
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(document_of(sweep(read_spec(spec)))))


def test_what_goes_wrong_on_a_worker_is_said_here(two_workers: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("bad", by_weights, ({},))
    with pytest.raises(TypeError, match="positional argument"):
        in_order(two_workers, [task], unseen)
    log = Task("bad", evaluate, (None, by_policy(policies.create("prucb-kp")), 1))
    with pytest.raises(AttributeError, match="rewards"):
        in_order(two_workers, [log], unseen)
    monkeypatch.setattr(compiling, "kernel_stamp", lambda: "of another version")
    with pytest.raises(PamoError, match="has another pamo than this process"):
        in_order(two_workers, [task], unseen)


def test_progress_counts_all_workers(two_workers: Runner) -> None:
    seen: list[float] = []
    tasks = [Task("slow", slowly, (1.2,)) for _ in range(2)]
    assert in_order(two_workers, tasks, seen.append) == [1.2, 1.2]
    assert sum(seen) == pytest.approx(1.0)
    assert any(0.0 < share < 0.5 for share in seen)  # before any task was done


def slowly(seconds: float, progress: Progress) -> float:
    for _ in range(10):
        time.sleep(seconds / 10)
        progress(0.1)
    return seconds


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pamo\[ray\]'"), cluster():
        pass


def test_an_address_needs_the_runner(capsys: pytest.CaptureFixture[str]) -> None:
    from pamo.cli import main

    assert main(["compare", "--address", "here:1", "--setting", "users=2"]) == 2
    assert "expected --address together with --runner ray" in capsys.readouterr().err
