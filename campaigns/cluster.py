"""Sweep 1,000 settings on a local Ray cluster of two workers, kill one half-way, and hold the table against ours.

    python -m campaigns.cluster                a worker, SIGKILL while it is at a task
    python -m campaigns.cluster --kill node    one of two nodes, with all that runs on it

Exit code 1 if the table is not that of the local runner, digit by digit. `--fault` changes one result in its last
digit, which has to be found.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pamo.experiments.cluster import cluster, require_ray
from pamo.experiments.sweep import document_of, sweep
from pamo.experiments.sweep_spec import Spec, spec_of
from pamo.experiments.tasks import Began, Runner, Task
from pamo.progress import Bar, Progress


def spec_for(runs: int, *, rounds: int = 500, trials: int = 10) -> Spec:
    """Return a spec of about so many runs: ten settings, and as many candidates as it takes."""
    each = max(runs // 10 - 1, 1)
    return spec_of(
        {
            "sweep": {"rounds": rounds, "trials": trials},
            "environment": {"users": [2, 3, 4, 5, 6], "reward_variance": [0.01, 0.1]},
            "policy": [{"id": "oful", "epsilon": [place / each for place in range(each)]}, {"id": "prucb-hp"}],
        }
    )


class KillingHalfWay:
    """A runner that has something killed when half of the tasks are done. kill: tells whether it did."""

    def __init__(self, runner: Runner, kill: Callable[[], bool]) -> None:
        self._runner, self._kill = runner, kill
        self.killed = False

    def __call__(self, tasks: Sequence[Task], progress: Progress, began: Began) -> Iterator[tuple[int, Any]]:
        """Run the tasks."""
        for done, one in enumerate(self._runner(tasks, progress, began), 1):
            if done >= len(tasks) // 2 and not self.killed:
                self.killed = self._kill()
            yield one


def kill_a_worker() -> bool:
    """Kill a worker of this process's cluster, with SIGKILL, if one is at a task: Ray names such processes by it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                at_a_task = (entry / "cmdline").read_bytes().startswith(b"ray::_play")
                if at_a_task and _parent(_parent(int(entry.name))) == os.getpid():
                    os.kill(int(entry.name), signal.SIGKILL)
                    return True
            except OSError:  # it has ended meanwhile
                continue
    return False


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


@contextmanager
def _two_nodes() -> Iterator[tuple[Runner, Callable[[], bool]]]:
    """Give a cluster of two nodes with one worker each, and what kills one of them."""
    require_ray()
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [machines.add_node(num_cpus=1) for _ in range(2)]

    def kill() -> bool:
        machines.remove_node(nodes[0], allow_graceful=False)
        return True

    try:
        with cluster(machines.address) as runner:
            yield runner, kill
    finally:
        machines.shutdown()


@contextmanager
def _two_workers() -> Iterator[tuple[Runner, Callable[[], bool]]]:
    with cluster(workers=2) as runner:
        yield runner, kill_a_worker


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="settings times candidates (default: 1000)")
    parser.add_argument("--rounds", type=int, default=500, help="of each (default: 500)")
    parser.add_argument("--trials", type=int, default=10, help="of each (default: 10)")
    parser.add_argument("--kill", choices=("worker", "node"), default="worker", help="what is killed (default: worker)")
    parser.add_argument("--fault", action="store_true", help="change one result, which has to be found")
    options = parser.parse_args(arguments)
    spec = spec_for(options.runs, rounds=options.rounds, trials=options.trials)
    runs = len(spec.settings) * len(spec.candidates)
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        with (
            (_two_workers if options.kill == "worker" else _two_nodes)() as (runner, kill),
            Bar("cluster") as bar,
        ):
            killer = KillingHalfWay(runner, kill)
            there = sweep(spec, Path(folder), runner=killer, progress=bar.advance, began=bar.rename)
        times["ray"] = time.perf_counter() - begun
    begun = time.perf_counter()
    with Bar("local") as bar:
        here = sweep(spec, progress=bar.advance)
    times["local"] = time.perf_counter() - begun
    found, wanted = document_of(there), document_of(here)
    if options.fault:
        found["rows"][0]["mean"] = float(np.nextafter(found["rows"][0]["mean"], np.inf))
    print(f"{runs:,} runs on two workers: {times['ray']:.0f} s; here: {times['local']:.0f} s")
    how = "killed by SIGKILL half-way" if killer.killed else "not killed: the runs were too short"
    print(f"a {options.kill} was {how}")
    print(f"the table is {'that of the local runner' if found == wanted else 'ANOTHER than that of the local runner'}")
    return int(not killer.killed or found != wanted)


if __name__ == "__main__":
    sys.exit(main())
