"""Race pamo against other libraries: `make race`, or `python -m benchmarks.race`.

Each peer runs in a virtual environment of its own under `.race/`, made at the first call. One that cannot be installed,
or fails, is named with its reason. Three parts, in one run on one machine:

- simulation: microseconds a decision in each library's own simulator, one thread;
- online: choose one of 10, 100 or 1,000 arms for somebody known by 5 or 10 numbers, and learn from what came of it;
- regret: each library's best policy on trials of the paper's problem, and ours on the same trials.

It writes race.json, race.svg and race.png into `reports/race`. `--short` takes some minutes, without it half an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine import median_microseconds
from benchmarks.simulator import best_of
from benchmarks.yardsticks import numpy_loop
from pamo import Engine, Player, environments, simulate
from pamo.environments import Environment
from pamo.experiments.figures import label, legend_above, note, panels, save_figure
from pamo.experiments.instances import instance_of
from pamo.plain import to_json
from pamo.progress import Bar
from pamo.simulation import summarize
from pamo.simulation.plot import BLUE, GREY

ROOT = Path(__file__).parents[2]
HOMES = ROOT / ".race"
ARMS, DIMS = (10, 100, 1000), (5, 10)
SETTINGS: Mapping[str, Environment] = {
    "2 users, 5 arms, D=3": environments.Gaussian(users=2, block_size=5, objectives=3),
    "10 users, 3 arms, D=5": environments.Gaussian(users=10, block_size=3, objectives=5),
}
OURS = ("recommended", "prucb-hp")
ALONE = "pamo's Player"
"""What does online what the others do; the engine, `pamo`, does more."""
TUNED = 2
"""Trials, of a fifth of the rounds, on which each of a peer's policies is tried; the best of them plays all."""
PARTS = ("simulation", "online", "regret")
LEAST = 3
"""Trials that each library's best policy plays, however slow it is: one trial tells nothing."""
LONGEST = 1800.0
"""Seconds that a peer may take for one answer."""


@dataclass(frozen=True)
class Peer:
    """A library: its name, the module that runs it, and what is installed for it."""

    name: str
    module: str
    needs: tuple[str, ...]
    python: str = ""


PEERS = (
    Peer("SMPyBandits", "smpybandits", ("SMPyBandits==0.9.7", "numpy<2", "scipy<1.12", "pandas<3", "setuptools<80")),
    Peer(
        "Open Bandit Pipeline",
        "open_bandit",
        ("obp==0.5.7", "numpy", "pandas", "scikit-learn", "matplotlib", "seaborn", "tqdm", "pyyaml"),
    ),
    Peer("coba", "coba_learners", ("coba==8.1.0", "numpy")),
    Peer("river", "river_bandits", ("river==0.26.1", "gymnasium")),
    Peer("MABWiser", "mabwiser_mab", ("mabwiser==2.7.4",)),
    Peer("Vowpal Wabbit", "vowpal_wabbit", ("vowpalwabbit==9.11.9", "numpy")),
    Peer("contextualbandits", "contextual_bandits", ("contextualbandits==0.3.30",)),
    Peer("bayesianbandits", "bayesian_bandits", ("bayesianbandits==1.5.0",)),
    Peer("ParetoBandit", "pareto_bandit_policy", ("paretobandit==0.1.1",)),
)
SAME = """\
What is and what is not the same work.
Simulation: the NumPy loop does what pamo does in the same sizes. The others play one user, ten arms and one number a
reward, pamo's `ucb` line likewise.
Online: all choose among the same arms for somebody, and learn from what came of it. The others are given D numbers of
that person and learn from one number, an arm's model each. pamo's Player does what they do, in process and in memory:
it is given the person's number, D scores and an overall one, and learns arms and people apart; its mean has in it what
it takes to fit anew, now and then, what people have in common. pamo's engine does more, and none of the others does it:
it takes names, checks both calls, records them, and says why. ParetoBandit runs without its router. Vowpal Wabbit's
file holds decisions that were made before: nothing is chosen.
Regret: all see the overall score, and who it is from. Only pamo can use the objectives' scores, and knows that people
weigh the same arms. The others' best policy is chosen on some of the trials that then count."""


class Failed(Exception):
    """A peer could not be installed or run; says why."""


def home_of(peer: Peer) -> Path:
    """Return the Python of a peer's environment, which is made where it is missing or other than wanted."""
    home = HOMES / peer.module
    ready, wanted = home / ".ready", "\n".join(peer.needs)
    python = home / "bin" / "python"
    if not (ready.is_file() and ready.read_text(encoding="utf-8") == wanted):
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if peer.module == "open_bandit":  # it asks for PyTorch, and for older versions of the rest than there are
            _run([*pip, "--no-deps", "--ignore-requires-python", peer.needs[0]])
            _run([*pip, *peer.needs[1:]])
        else:
            _run([*pip, *peer.needs])
        ready.write_text(wanted, encoding="utf-8")
    return python


def _run(command: Sequence[str], **options: Any) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, encoding="utf-8", errors="replace", cwd=ROOT, **options
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise Failed(lines[-1].strip()[:200] if lines else f"exit code {done.returncode}")
    return str(done.stdout)


def ask(peer: Peer, python: Path, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a peer's answer to a job."""
    # One thread for all, as for us: matrices this small gain nothing from more.
    alone = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | alone
    try:
        said = _run(
            [str(python), "-m", f"benchmarks.race.peers.{peer.module}"],
            input=json.dumps(job),
            timeout=LONGEST,
            env=environment | {"PYTHONPATH": str(ROOT)},
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{job['part']} took longer than {LONGEST:.0f} s") from None
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    return answer


def simulated() -> dict[str, dict[str, Any]]:
    """Return microseconds a decision of pamo's simulator and of the NumPy loop, one thread."""
    found = {}
    for policy, users, block, objectives in (("prucb-hp", 10, 5, 5), ("prucb-hp", 2, 5, 3), ("ucb", 1, 10, 1)):
        environment = environments.Gaussian(users=users, block_size=block, objectives=objectives)

        def run(policy: str = policy, environment: Environment = environment) -> int:
            trials = 1_000_000 // (2000 * environment.users)
            simulate([policy], environment, rounds=2000, trials=trials, threads=1)
            return 2000 * trials * environment.users

        run()  # the first call compiles
        what = f"{policy}, {users} user{'s' if users > 1 else ''}, {block} arms, D={objectives}"
        found[f"pamo: {what}"] = {"what": what, "microseconds": best_of(run) / 1000}
        if policy == "prucb-hp":

            def loop(users: int = users, block: int = block, objectives: int = objectives) -> int:
                rounds = 4000 // users
                numpy_loop(users=users, block=block, objectives=objectives, rounds=rounds, seed=1)
                return rounds * users

            found[f"NumPy loop: {what}"] = {"what": what, "microseconds": best_of(loop, repeats=2) / 1000}
    return found


def engine(arms: int, dims: int, count: int) -> float:
    """Return the median microseconds of a decision and its feedback in process, memory store."""
    draw, names = np.random.default_rng(1), [f"objective-{d}" for d in range(dims)]
    with Engine(names, seed=1) as shop:
        shop.add_arms([f"arm-{k}" for k in range(arms)])
        rewards = [dict(zip(names, row, strict=True)) for row in draw.random((500, dims)).tolist()]
        overall = draw.random(500).tolist()

        def both(number: int) -> None:
            decision = shop.decide(f"user-{number % 500}")
            shop.feedback(decision.id, rewards[number % 500], overall[number % 500])

        median_microseconds(both, 1000)  # compiles, and makes everybody known
        return median_microseconds(both, 10 * count)


def player(policy: str, arms: int, dims: int, count: int) -> tuple[float, float]:
    """Return the median microseconds of a choice and its learning by a policy alone, of users who come one by one.

    And the mean of all since the first of them, in time of the processor, with each time that what users have in common
    is fitted anew.
    """
    draw, alone = np.random.default_rng(1), Player.of(policy, users=500, arms=arms, objectives=dims)
    rewards, overall = draw.random((500, dims)), draw.random(500).tolist()

    def both(number: int) -> None:
        user = number % 500
        alone.learn(user, alone.choose(user), rewards[user], overall[user])

    both(0)  # compiles
    begun, calls = time.process_time(), 1000 + 20 * count
    for number in range(calls):
        both(number)
    mean = (time.process_time() - begun) / calls * 1e6
    return median_microseconds(both, 10 * count), mean


def regrets_of(peer: Peer, python: Path, rounds: int, trials: int, budget: float) -> dict[str, dict[str, Any]]:
    """Return, for each setting, the best of the peer's policies and its regrets: all are tried, and it plays all."""
    found = {}
    for setting, environment in SETTINGS.items():
        given = [instance_of(environment, 1, trial) for trial in range(trials)]
        told = [{"means": means.tolist(), "preferences": users.tolist()} for means, users in given]
        job: dict[str, Any] = {"part": "regret", "policies": None, "rounds": max(rounds // 5, 100)}
        tried = ask(peer, python, job | {"trials": told[:TUNED], "least": 1, "seconds": budget / 4})
        best = min(tried, key=lambda name: float(np.mean(tried[name])))
        whole = {"policies": [best], "rounds": rounds, "trials": told, "least": LEAST, "seconds": budget}
        found[setting] = {"policy": best, "regret": ask(peer, python, job | whole)[best], "tried": tried}
    return found


def race(
    *, count: int, rounds: int, trials: int, budget: float, only: Sequence[str], parts: Sequence[str] = PARTS
) -> dict[str, Any]:
    """Run it all and return what was found. Parts are by peer, so that no peer's figures are all of a busy minute."""
    peers = [peer for peer in PEERS if not only or peer.name in only]
    simulation: dict[str, Any] = {}
    speed: dict[str, Any] = {"pamo": {}}
    regret: dict[str, Any] = {}
    failed: dict[str, str] = {}
    online = [(arms, dims) for arms in ARMS for dims in DIMS] if "online" in parts else []
    with Bar("race", total=len(peers) + 1) as bar:
        bar.rename("pamo")
        if "simulation" in parts:
            simulation |= simulated()
        for arms, dims in online:
            speed["pamo"][f"{arms}, {dims}"] = engine(arms, dims, count)
            for policy in OURS:
                found = player(policy, arms, dims, count)
                for what, seen in zip(("", ", mean"), found, strict=True):
                    speed.setdefault(f"{ALONE}, {policy}{what}", {})[f"{arms}, {dims}"] = seen
        for policy in OURS if "regret" in parts else ():
            regret[f"pamo: {policy}"] = {
                setting: {
                    "policy": policy,
                    "regret": simulate([policy], environment, rounds=rounds, trials=trials, seed=1)[
                        "prucb-hp-v" if policy == "recommended" else policy
                    ].final_regret.tolist(),
                }
                for setting, environment in SETTINGS.items()
            }
        bar.advance(1)
        for peer in peers:
            try:
                bar.rename(f"{peer.name}, installing")
                python = home_of(peer)
                bar.rename(peer.name)
                if "simulation" in parts and (answer := ask(peer, python, {"part": "simulation"})):
                    simulation[peer.name] = answer
                for arms, dims in online:
                    fewer = max(count // max(arms // 50, 1), 3)
                    job = {"part": "online", "arms": arms, "dims": dims, "count": fewer}
                    if answer := ask(peer, python, job):
                        speed.setdefault(peer.name, {})[f"{arms}, {dims}"] = answer["microseconds"]
                        if "file" in answer:
                            speed.setdefault(f"{peer.name}, a file", {})[f"{arms}, {dims}"] = answer["file"]
                if "regret" in parts:
                    regret[peer.name] = regrets_of(peer, python, rounds, trials, budget)
            except Failed as error:
                failed[peer.name] = str(error)
            bar.advance(1)
    sizes = {"count": count, "rounds": rounds, "trials": trials, "parts": list(parts)}
    return {"sizes": sizes, "simulation": simulation, "online": speed, "regret": regret, "failed": failed}


def asked(found: Mapping[str, Any]) -> list[tuple[str, float, float, bool]]:
    """Return what is asked of pamo: what, what was seen, the limit, and whether it holds."""
    lines = []
    simulation, speed = found["simulation"], found["online"]
    slowest = max((one["microseconds"] for name, one in simulation.items() if name.startswith("pamo")), default=np.nan)
    for peer, least in (("SMPyBandits", 500.0), ("Open Bandit Pipeline", 100.0)):
        if peer in simulation:
            ratio = simulation[peer]["microseconds"] / slowest
            lines.append((f"times {peer}'s simulation, pamo's slowest line", ratio, least, ratio >= least))
    for peer in ("MABWiser", "Open Bandit Pipeline", "Vowpal Wabbit"):
        if peer in speed:
            for dims in DIMS:
                cell = f"10, {dims}"
                theirs = speed[peer][cell]
                alone, recorded = theirs / speed[f"{ALONE}, {OURS[0]}"][cell], theirs / speed["pamo"][cell]
                what = f"times {peer} online, 10 arms, D={dims} (the engine: {recorded:.3g} times)"
                lines.append((what, alone, 30.0, alone >= 30.0))
    for setting in SETTINGS if found["regret"] else ():
        ours = found["regret"]["pamo: recommended"]
        others = {name: one[setting] for name, one in found["regret"].items() if not name.startswith("pamo")}
        for name, one in others.items():
            same = ours[setting]["regret"][: len(one["regret"])]
            share = float(np.mean(same) / np.mean(one["regret"]))
            lines.append((f"share of the regret of {name}'s {one['policy']}: {setting}", share, 1.0, share < 1.0))
    return lines


def text_of(found: Mapping[str, Any]) -> str:
    """Return what was found as tables."""
    sizes = found["sizes"]
    lines = [f"{'simulation, one thread':<26}{'what':<66}{'µs a decision':>14}"]
    ordered = sorted(found["simulation"].items(), key=lambda item: float(item[1]["microseconds"]))
    for name, one in ordered:
        lines.append(f"{name.partition(':')[0]:<26}{one['what']:<66}{one['microseconds']:>14,.3f}")
    cells = [f"{arms}, {dims}" for arms in ARMS for dims in DIMS]
    heads = "".join(f"{f'{arms:,}, D={dims}':>13}" for arms in ARMS for dims in DIMS)
    lines += ["", f"{'online, µs: arms, D':<26}{heads}"]
    for name, row in sorted(found["online"].items(), key=lambda item: float(item[1].get(cells[0], 0))):
        lines.append(f"{name:<26}" + "".join(f"{row[cell]:>13,.1f}" if cell in row else f"{'–':>13}" for cell in cells))
    for setting in SETTINGS if found["regret"] else ():
        lines += ["", f"regret, {setting}; {sizes['rounds']} rounds"]
        rows = {name: one[setting] for name, one in found["regret"].items()}
        for name, row in sorted(rows.items(), key=lambda item: float(np.mean(item[1]["regret"]))):
            mean, _, low, high = summarize(row["regret"])
            policy = "" if name.startswith("pamo") else row["policy"]
            interval = f"({low:,.0f} … {high:,.0f}), " if len(row["regret"]) > 1 else ""
            lines.append(f"{name:<26}{policy:<34}{mean:>9,.0f}   {interval}{len(row['regret'])} trials")
    lines += ["", f"{'asked of pamo':<76}{'seen':>10}{'limit':>8}"]
    lines += [
        f"{what:<76}{seen:>10,.3g}{limit:>8,.4g}   {'yes' if holds else 'no'}"
        for what, seen, limit, holds in asked(found)
    ]
    lines += ["", *(f"not there: {name}: {reason}" for name, reason in found["failed"].items()), "", SAME]
    return "\n".join(lines)


def draw(found: Mapping[str, Any]) -> Any:
    """Draw the three parts, pamo in blue."""
    figure, axes = panels(2 + len(SETTINGS), columns=2, height=3.4, legend=0.3)
    ran = [(name.partition(":")[0], one) for name, one in found["simulation"].items()]
    whats = [one["what"] if name in ("pamo", "NumPy loop") else one["what"].split(", ", 1)[-1] for name, one in ran]
    _dots(axes[0], [(name, one["microseconds"], what) for (name, one), what in zip(ran, whats, strict=True)])
    label(axes[0], "simulation, one thread", "µs a decision")
    online = {name: [row.get(f"{arms}, {DIMS[0]}", np.nan) for arms in ARMS] for name, row in found["online"].items()}
    beneath = -np.inf
    for name, values in sorted(online.items(), key=lambda item: float(item[1][-1])):
        colour, width = (BLUE, 2.2) if name.startswith("pamo") else (GREY, 1.0)
        axes[1].plot(ARMS, values, marker="o", markersize=4, color=colour, linewidth=width)
        beneath = max(float(np.log10(values[-1])), beneath + 0.22)  # so that no name is on another
        axes[1].text(ARMS[-1] * 1.25, 10**beneath, name, fontsize=7, va="center", color=colour)
    axes[1].set(xscale="log", yscale="log")
    axes[1].set_xticks(ARMS, [f"{arms:,}" for arms in ARMS])
    axes[1].minorticks_off()
    axes[1].set_xlim(ARMS[0] * 0.8, ARMS[-1] * 25)
    label(axes[1], f"online: choose and learn, D={DIMS[0]}", "arms", "µs")
    for each, setting in zip(axes[2:], SETTINGS, strict=True):
        rows = [(name, one[setting]) for name, one in found["regret"].items()]
        _dots(each, [(name.partition(":")[0], float(np.mean(row["regret"])), row["policy"]) for name, row in rows])
        label(each, f"regret: {setting}", f"after {found['sizes']['rounds']:,} rounds")
    legend_above(figure, ["pamo", "others"], [(BLUE, "-"), (GREY, "-")])
    trials = f"up to {found['sizes']['trials']} trials, each library's best policy"
    note(figure, f"logarithmic axes; less is better; regret: {trials}")
    return figure


def _dots(axes: Any, rows: Sequence[tuple[str, float, str]]) -> None:
    """Draw a dot for each (library, value, what it ran), the least on top."""
    ordered = sorted(rows, key=lambda row: -row[1])
    for place, (name, value, what) in enumerate(ordered):
        colour = BLUE if name == "pamo" else GREY
        axes.plot([value], [place], "o", markersize=6, color=colour)
        number = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
        axes.annotate(
            f"{number}  {what}", (value, place), xytext=(7, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.set_yticks(range(len(ordered)), [name for name, _, _ in ordered], fontsize=7.5)
    axes.set_xscale("log")
    values = [value for _, value, _ in ordered]
    axes.set_xlim(min(values) / 2, max(values) * (max(values) / min(values)) ** 0.9)
    axes.grid(visible=False, axis="y")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the race; exit code 1 if anything that is asked does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="fewer calls, 1,000 rounds and 3 trials")
    parser.add_argument("--count", type=int, help="online calls at 10 arms (default: 400; short: 60)")
    parser.add_argument("--rounds", type=int, help="of the regret race (default: 5000; short: 1000)")
    parser.add_argument("--trials", type=int, help="of the regret race (default: 8; short: 3)")
    parser.add_argument(
        "--budget", type=float, help="seconds of a policy's trials, three at least (default: 90; short: 12)"
    )
    parser.add_argument("--peer", action="append", default=[], choices=[peer.name for peer in PEERS], help="only these")
    parser.add_argument("--part", action="append", default=[], choices=PARTS, help="only these; then nothing is drawn")
    parser.add_argument("--output", type=Path, default=ROOT / "reports" / "race", help="default: reports/race")
    options = parser.parse_args(arguments)
    found = race(
        count=options.count or (60 if options.short else 400),
        rounds=options.rounds or (1000 if options.short else 5000),
        trials=options.trials or (3 if options.short else 8),
        budget=options.budget or (12.0 if options.short else 90.0),
        only=options.peer,
        parts=options.part or PARTS,
    )
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "race.json").write_text(to_json(found, indent=1), encoding="utf-8")
    print(text_of(found))
    if not options.part:
        save_figure(draw(found), options.output / "race")
        print(f"\nfigure: {options.output / 'race.png'}", file=sys.stderr)
    return int(not all(holds for *_, holds in asked(found)))


if __name__ == "__main__":
    sys.exit(main())
