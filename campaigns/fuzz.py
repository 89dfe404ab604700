"""Ask the service whatever its description allows, and much that it does not, and see whether it ever breaks its word.

Schemathesis reads /openapi.json of a running application and makes requests from it: right ones, wrong ones, every
boundary that the schemas have, and chains in which the ids of one answer go into the next request (a decision, then its
feedback). Each answer is checked: no status of 500 or above, none that is not described, content type, body and headers
as described, wrong data refused, right data taken, methods that do not exist refused with those that do, and nothing
without a key.

    python -m campaigns.fuzz --cases 20000 --seed 1

The campaign goes round, on all cores: with a key of each role over a store in memory, and without keys over SQLite,
where new arms are accepted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.engine import Status, events, from_schema
from tqdm import tqdm

from pamo.engine import Engine
from pamo.service import create_app
from pamo.service.keys import Key, Role, digest_of
from pamo.service.settings import Settings
from pamo.service.warming import warm_all
from pamo.store.maintenance import verify

SECRET = "pamo_fuzz"
EXAMPLES = 50
"""Requests of each kind, for each operation, in a round."""

WHO = (Role.ADMIN, None, *(role for role in Role if role is not Role.ADMIN))
"""Whose turn it is, round after round; None: there are no keys."""

App = Any

CHECKS: dict[str, Any] = {
    # Here to delete an arm is to retire it, and to delete a user is to forget: both may be read afterwards, and later
    # feedback counts. The tests of the service say what must be so.
    "use_after_free": {"enabled": False},
    "ensure_resource_availability": {"enabled": False},
    "positive_data_acceptance": {"expected-statuses": ["2xx", "401", "404", "409"]},
    "negative_data_rejection": {"expected-statuses": ["400", "401", "404", "405", "415", "422"]},
    "missing_required_header": {"expected-statuses": ["401"]},
}

_FORBIDDEN: dict[Role | None, list[str]] = {role: ["403"] for role in WHO if role not in (Role.ADMIN, None)}
"""What else a role may be answered, whatever it asks for."""

# The description says which ids can be, and not which of them there are: 422 where an arm is unknown or retired, or was
# not chosen by the decision, or a feature was not declared, or otherwise; nor that an experiment may want a choice, or
# that its variants differ in name, are not more than everybody, and weigh what a policy reads. Nor does it say that the
# front's x and y go together.
_EXCUSED = re.compile(
    r"(?:(?:requests|feedback|arms)\[\d+\]\.)?(?:arms?|features|policy|choice)(?:\..*)?|[xy]"
    r"|variants(?:\[\d+\]\.(?:name|policy|preference))?",
    re.DOTALL,
)


@dataclass
class Row:
    """What came of one operation's requests."""

    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: int = 0


@dataclass
class Tally:
    """What the campaign has seen."""

    rows: dict[str, Row] = field(default_factory=dict)
    checks: Counter[str] = field(default_factory=Counter)
    excused: int = 0
    """Requests that were refused though their form was right, mostly for an arm that there is not."""
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """One example for each check and operation."""
    troubles: list[str] = field(default_factory=list)
    """What went wrong beside the checks: in the journal, or in the campaign itself."""

    def add(self, other: Tally) -> None:
        """Take in what another has seen."""
        for name, row in other.rows.items():
            mine = self.rows.setdefault(name, Row())
            mine.cases += row.cases
            mine.statuses += row.statuses
            mine.failures += row.failures
        self.checks += other.checks
        self.excused += other.excused
        self.failures = other.failures | self.failures
        self.troubles += other.troubles

    @property
    def cases(self) -> int:
        """How many requests were made."""
        return sum(row.cases for row in self.rows.values())

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.failures and not self.troubles

    def __str__(self) -> str:
        lines = [f"{'operation':36}{'cases':>8}{'2xx':>8}{'4xx':>8}{'5xx':>6}{'failures':>10}"]
        lines += [_line(name, row) for name, row in sorted(self.rows.items())]
        whole = Row(self.cases, failures=sum(row.failures for row in self.rows.values()))
        for row in self.rows.values():
            whole.statuses += row.statuses
        lines += [_line("all", whole), "", f"checks made: {sum(self.checks.values()):,}"]
        lines += [f"  {name:32}{count:>10,}" for name, count in sorted(self.checks.items())]
        lines.append(f"refused for what no form can say, such as an arm that there is not: {self.excused:,}")
        return "\n".join(lines)


def _line(name: str, row: Row) -> str:
    def count(first: int) -> int:
        return sum(number for status, number in row.statuses.items() if status // 100 == first)

    return f"{name:36}{row.cases:>8,}{count(2):>8,}{count(4):>8,}{count(5):>6,}{row.failures:>10,}"


@contextmanager
def service(role: Role | None = Role.ADMIN) -> Iterator[tuple[App, Engine]]:
    """Yield an application and its engine, with some arms, some decisions and some feedback. role: of the one key."""
    keys = role is not None
    with tempfile.TemporaryDirectory(prefix="pamo-fuzz-") as folder:
        store = "memory:" if keys else Path(folder) / "journal.db"
        objectives = ["price: 0..500, lower is better", "taste: 1..5"]
        with Engine(objectives, store=store, overall="overall: 1..5", seed=1, accept_new_arms=not keys) as engine:
            for arm in ("A", "B", "a/b", "ü"):
                engine.add_arm(arm)
            for user in ("ann", "bob", "ann"):
                engine.feedback(engine.decide(user).id, {"price": 20, "taste": 3}, overall=4)
            warm_all(engine)  # as `pamo serve` does: a request has ten seconds, and compiling may take longer
            known = () if role is None else (Key("fuzz", [role], digest_of(SECRET)),)
            app = create_app(engine, Settings(keys=known, max_batch=20))
            app.state.api.stream.longest = 0.0  # what it begins with is enough: nobody waits for more here
            yield app, engine


def load(app: App, seed: int, examples: int, phases: tuple[str, ...], role: Role | None = Role.ADMIN) -> Any:
    """Return the description of an application as Schemathesis has it, with what is to be done with it."""
    checks = {
        name: options | {"expected-statuses": options["expected-statuses"] + _FORBIDDEN.get(role, [])}
        if "expected-statuses" in options
        else options
        for name, options in CHECKS.items()
    }
    settings: dict[str, Any] = {
        "seed": seed,
        "base-url": "http://localhost",
        "continue-on-failure": True,
        "max-stream-events": 1,  # the first comes at once, and the next may take as long as it likes
        "auth": {"openapi": {"key": {"bearer": SECRET}}},
        "checks": checks,
        "generation": {"max-examples": examples, "no-shrink": True, "database": "none"},
        "phases": {name: {"enabled": name in phases} for name in ("examples", "coverage", "fuzzing", "stateful")},
    }
    config = schemathesis.Config.from_dict(settings)
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", app, config=config, headers={"authorization": f"Bearer {SECRET}", "host": "localhost"}
    )

    @schema.hook
    def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
        if type(failure).__name__ != "RejectedPositiveData" or response.status_code != 422:
            return True
        return not _EXCUSED.fullmatch(json.loads(response.content).get("field", ""))

    return schema


def fuzz(schema: Any, tally: Tally, most: int | None = None) -> None:
    """Run Schemathesis once, or until there were so many cases in all."""
    stream = from_schema(schema).execute()
    for event in stream:
        if isinstance(event, events.ScenarioFinished):
            _count(event.recorder, tally)
            if most is not None and tally.cases >= most:
                stream.stop()
        elif isinstance(event, events.NonFatalError):
            tally.troubles.append(f"{event.label}: {event.value}")
        elif isinstance(event, events.FatalError):
            tally.troubles.append(str(event.exception))


def _count(recorder: Any, tally: Tally) -> None:
    """Take what one scenario has seen into the tally."""
    for identity, interaction in recorder.interactions.items():
        row = tally.rows.setdefault(recorder.cases[identity].value.operation.label, Row())
        row.cases += 1
        if interaction.response is None:
            tally.troubles.append(f"no answer to {recorder.cases[identity].value.as_curl_command()}")
        else:
            row.statuses[interaction.response.status_code] += 1
    tally.excused += sum(recorder.filtered_failures.values())
    for identity, made in recorder.checks.items():
        case = recorder.cases[identity].value
        for check in made:
            tally.checks[check.name] += 1
            if check.status == Status.FAILURE:
                row = tally.rows.setdefault(case.operation.label, Row())
                row.failures += 1
                failure = check.failure_info.failure
                example = f"{failure.title}: {failure.message}\n{case.as_curl_command()}"
                tally.failures.setdefault((check.name, case.operation.label), example)


def one_round(number: int, seed: int, most: int) -> Tally:
    """Ask a service of its own, by whoever's turn it is, and see whether its store is sound afterwards."""
    tally, role = Tally(), WHO[number % len(WHO)]
    with service(role) as (app, engine):
        # The boundaries are the same in every round: once for each of them is enough.
        phases = ("coverage", "fuzzing", "stateful") if number < len(WHO) else ("fuzzing", "stateful")
        fuzz(load(app, seed + number, EXAMPLES, phases, role), tally, most)
        report = verify(engine.store)
        if not report.ok or engine.store.trouble() is not None:
            tally.troubles.append(f"round {number}: the store is not sound: {report} {engine.store.trouble()}")
    return tally


def campaign(cases: int, seed: int = 1, progress: Callable[[int], object] = lambda count: None) -> Tally:
    """Go round until there were so many cases."""
    tally, numbers = Tally(), itertools.count()
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        under_way = {pool.submit(one_round, next(numbers), seed, cases) for _ in range(os.cpu_count() or 1)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in done:
                tally.add(one.result())
                progress(one.result().cases)
                if tally.cases < cases and one.result().cases:
                    under_way.add(pool.submit(one_round, next(numbers), seed, cases - tally.cases))
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, and say what was found."""
    parser = argparse.ArgumentParser(description="Ask the service whatever its description allows.")
    parser.add_argument("--cases", type=int, default=20_000, help="requests (default 20,000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    with tqdm(total=options.cases, unit="case", disable=None) as bar:
        tally = campaign(options.cases, options.seed, bar.update)
    print(tally)
    print(f"{tally.cases:,} cases, seed {options.seed}, {time.perf_counter() - started:.0f} s")
    for (check, operation), example in tally.failures.items():
        print(f"\n{check} at {operation}\n{example}")
    for trouble in tally.troubles[:20]:
        print(f"\n{trouble}")
    print("As it should be: nothing was found." if tally.ok else "FAILED")
    return int(not tally.ok or tally.cases < options.cases)


if __name__ == "__main__":
    sys.exit(main())
