"""Compiled code for a service: there before it serves, or fetched beside while Python stands in for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from numba.core.event import Listener, install_listener

from pamo import interpreting
from pamo.contract.events import ArmChanged, TasteChanged
from pamo.contract.experiments import LIVE
from pamo.contract.forgetting import written
from pamo.engine import Engine, Lookout
from pamo.engine.changing import FEWEST
from pamo.errors import PamoError

COURTESY = 10
"""How much the process that compiles stands back behind those who serve, as `nice` counts it."""

UNCOMPILED = (
    "pamo serves uncompiled code, as it does the first time on a machine: another process compiles it, which takes "
    "half a minute to a minute, and the answers stay the same"
)
COMPILED = "pamo serves compiled code now"


class Need(NamedTuple):
    """What decides what is compiled for an engine."""

    objectives: int
    policy: str
    half_life: str

    @property
    def command(self) -> list[str]:
        """What compiles it, in a process of its own."""
        own = [str(self.objectives), "--policy", self.policy, "--half-life", self.half_life]
        return [sys.executable, "-m", "pamo", "warm", *own]


def needs_of(engine: Engine) -> list[Need]:
    """Return what an engine, and an experiment that it runs, need."""
    running = engine.store.running
    groups = () if running is None else running.groups()
    served = [one.policy for one in groups if not one.apart and one.policy != LIVE]
    objectives, lives = len(engine.objectives), written(engine.store.setup.half_life)
    own = engine.policy if isinstance(engine.policy, str) else engine.policy.label
    return [Need(objectives, policy, lives) for policy in dict.fromkeys([own, *served])]


def warm(need: Need) -> None:
    """Have the kernels compiled or loaded before the first user waits for them."""
    names = [f"objective {d}" for d in range(need.objectives)]
    with Engine(names, need.policy, half_life=need.half_life, seed=0) as rehearsal:
        rehearsal.add_arm("A")
        rehearsal.add_arm("B")
        weights, scores, overall = dict.fromkeys(names, 1.0), dict.fromkeys(names, 0.0), 0.0
        for preference in (None, weights, None):
            try:
                decision = rehearsal.decide("ann", preference=preference)
                rehearsal.feedback(decision.id, scores, overall, weights if preference is None else None)
                rehearsal.decide_many([{"user": "bob", "preference": preference, "k": 2}])
                # Once a score is missing, or known beforehand, the next decision goes another way.
                known = {arm: dict([*scores.items()][:1]) for arm in ("A", "B")}
                given = rehearsal.decide("cid", arms=known, preference=preference)
                rehearsal.feedback(given.id, {}, overall, weights if preference is None else None)
                rehearsal.decide("cid", preference=preference)
                # A taste that is tested, and what is learned again of a taste and of an arm that have changed.
                for _ in range(FEWEST):
                    decision = rehearsal.decide("dan", preference=preference)
                    rehearsal.feedback(decision.id, scores, overall)
                watch, at = rehearsal.core.decider.watch, time.time()
                watch.suspect("dan")
                watch.found()
                rehearsal.store.append(TasteChanged(decision.id, "dan", at, ((decision.arm, scores, overall),)))
                rehearsal.store.append(
                    ArmChanged(decision.arm, at, {name: (1.0, s, s * s) for name, s in scores.items()})
                )
            except PamoError:
                continue  # a policy that does not take a preference here, or needs one
        rehearsal.preference("ann")
        lookout = Lookout(rehearsal)
        lookout.front()
        for count in range(1, min(len(lookout.names), 3)):  # by one axis of a chart, and by two
            lookout.front(lookout.names[:count])
        rehearsal.store.find_users("a", 1)


def warm_all(engine: Engine) -> None:
    """Have all that an engine needs compiled or loaded."""
    for need in needs_of(engine):
        warm(need)
    if engine.store.running is not None:
        engine.core.decider.arrange(engine.store.running)


class Warming:
    """Has engines' code there: at once where the cache has it, else later, while Python stands in for it."""

    def __init__(self) -> None:
        self._engines: list[Engine] = []
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def begin(self, engines: Iterable[Engine]) -> None:
        """Load the code for these engines, or have it compiled beside where Python may stand in, or compile it."""
        self._engines = list(engines)
        try:
            with interpreting.from_cache() if interpreting.standing_in() else telling_of_compilation():
                self._load()
        except interpreting.NotCompiledError:
            self._thread = threading.Thread(target=self._fetch, name="pamo-warming")  # waited for: it may compile

    def follow(self) -> None:
        """Begin to fetch what is missing, now that it serves."""
        if self._thread is None:
            interpreting.compile_again()
            return
        _say(UNCOMPILED)
        self._thread.start()

    def stop(self) -> None:
        """Leave it at what is there."""
        self._stopped.set()
        child = self._child
        if child is not None:
            child.terminate()
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()
        interpreting.compile_again()

    def _load(self) -> None:
        for engine in self._engines:
            warm_all(engine)

    def _fetch(self) -> None:
        began = time.monotonic()
        for need in dict.fromkeys(need for engine in self._engines for need in needs_of(engine)):
            self._child = subprocess.Popen(need.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if self._stopped.is_set():  # meanwhile
                self._child.terminate()
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, self._child.pid, COURTESY)
            _, told = self._child.communicate()
            if self._stopped.is_set():
                return
            if self._child.returncode:
                _say(f"pamo compiles in the process that serves, since the other one failed: {told.strip()[-400:]}")
        with interpreting.compiling_here():
            self._load()
        interpreting.compile_again()
        _say(f"{COMPILED}, after {time.monotonic() - began:.0f} s; the answers stay the same")


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


class _Told(Listener):
    """Says that something is compiled, and not read from the cache; once in a process."""

    told = False

    def on_start(self, event: Any) -> None:
        if not _Told.told:
            _Told.told = True
            _say("pamo compiles what it needs, as it does the first time on a machine: half a minute to a minute")

    def on_end(self, event: Any) -> None:
        pass


def telling_of_compilation() -> AbstractContextManager[None]:
    """Have whoever waits told why, if there is anything to compile."""
    found: AbstractContextManager[None] = install_listener("numba:compile", _Told())
    return found
