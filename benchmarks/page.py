"""How fast the page's views answer with 10,000 arms and 100,000 users, and what 500 decisions a second leave of it.

Usage: python -m benchmarks.page [--arms N] [--users N]
       python -m benchmarks.page --events 2000000 [--store postgresql]

The second asks for the views after a restart, of a store with a month of so many events behind it.

The service runs in this process, over HTTP on this machine. Each view's requests are asked for as a browser would, one
after another, and the slowest of three is shown. With PAMO_BROWSER set, a real Chromium then shows the overview while
decisions are made at the given pace: how often it is redrawn, and how long the longest of its tasks keeps a click
waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks import month
from benchmarks.load import store_at
from benchmarks.servers import served
from pamo import Engine
from pamo.service import create_app
from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, MemoryStore, Objective, Setup

NAMES = ("price", "taste", "service", "quiet", "view")


def views_of(names: Sequence[str], user: str) -> dict[str, list[tuple[str, Any]]]:
    """Return what each view asks for: paths, and bodies where there are any."""
    return {
        "/": [
            ("/v1/activity?resolution=minute&limit=1440", None),
            ("/v1/activity?resolution=quarter-hour&limit=96", None),
            ("/v1/activity?resolution=hour&limit=720", None),
            ("/v1/activity?resolution=day&limit=365", None),
            ("/v1/statistics", None),
            ("/v1/alerts", None),
            ("/v1/experiment", None),
        ],
        "/arms": [
            (f"/v1/front?x={names[0]}&y={names[1]}&limit=200", None),
            ("/v1/front?limit=200", None),
            ("/v1/leaderboard?limit=25", None),
            (f"/v1/leaderboard?objective={names[1]}&search=inn%2099&limit=25", None),
        ],
        "/users": [("/v1/users?limit=50", None), (f"/v1/users?query={user[:-2]}&limit=50", None)],
        "/users/ID": [
            (f"/v1/users/{user}/preference", None),
            (f"/v1/users/{user}/preference/history", None),
            (f"/v1/users/{user}/decisions?limit=10", None),
        ],
        "/what-if": [("/v1/rankings?limit=15", {"preference": dict.fromkeys(names, 1.0)})],
    }


def filled_store(arms: int, users: int) -> MemoryStore:
    """Return a store with so many arms and users, each arm with several feedbacks and each user with one or more."""
    numbers = np.random.default_rng(1)
    means = np.clip(0.5 + 0.12 * numbers.standard_normal((arms, len(NAMES))), 0.02, 0.98)
    rounds = np.concatenate([np.arange(users), np.repeat(np.arange(min(users, 1000)), 20)])
    chosen = np.concatenate([np.arange(len(rounds)) % arms])
    got = np.clip(means[chosen] + 0.1 * numbers.standard_normal((len(rounds), len(NAMES))), 0.0, 1.0).tolist()
    setup = Setup(tuple(Objective(name) for name in NAMES))

    def events() -> Iterator[tuple[int, Event]]:
        several: list[Event] = [setup]
        several += [ArmAdded(f"arm-{number:05d}", f"Inn {number}", at=0.0) for number in range(arms)]
        yield from enumerate(several, start=1)
        place = len(several)
        for number, (user, arm) in enumerate(zip(rounds.tolist(), chosen.tolist(), strict=True)):
            name, inn, at = f"user-{user:06d}", f"arm-{arm:05d}", float(number)
            yield place + 1, DecisionMade(f"d{number}", name, (inn,), 1.0, "greedy@0", at)
            rewards = dict(zip(NAMES, got[number], strict=True))
            overall = sum(got[number]) / len(NAMES)
            yield place + 2, FeedbackGiven(f"d{number}", rewards, at, overall, None, inn, name)
            place += 2

    store = MemoryStore(setup)
    store.load(events())
    return store


def time_views(address: str, app: Any, views: dict[str, list[tuple[str, Any]]]) -> bool:
    """Ask for all that each view shows, and print how long it took; tell whether all stayed under a second."""
    fine = True
    print(f"{'view':12}{'request':62}{'ms':>8}{'kB':>8}")
    with httpx.Client(base_url=address, timeout=60) as client:
        for view, requests in views.items():
            for path, body in requests:
                slowest, size = 0.0, 0
                for _ in range(3):
                    app.state.api.lookout._fronts.clear()  # as if something had changed since the last time
                    started = time.perf_counter()
                    answer = client.get(path) if body is None else client.post(path, json=body)
                    slowest = max(slowest, time.perf_counter() - started)
                    answer.raise_for_status()
                    size = len(answer.content)
                fine = fine and slowest < 1.0
                print(f"{view:12}{path:62}{1000 * slowest:8.1f}{size / 1000:8.1f}")
    return fine


async def keep_deciding(address: str, pace: float, seconds: float, arms: int) -> int:
    """Ask for so many decisions a second, with feedback to each, and return how many were made.

    They are sent by the dozen: it is the page that is measured here, and not a client in the server's own process.
    """
    count, started = 0, time.perf_counter()
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        while (passed := time.perf_counter() - started) < seconds:
            wanted = min(int(pace * passed) - count, 100)
            if wanted < pace / 40:
                await asyncio.sleep(0.005)
                continue
            requests = [
                {
                    "user": f"user-{number % 1000:06d}",
                    "arms": [f"arm-{(number * 7 + place) % arms:05d}" for place in range(10)],
                }
                for number in range(count, count + wanted)
            ]
            made = await client.post("/v1/decisions/batch", json={"requests": requests})
            made.raise_for_status()
            given = {"rewards": dict.fromkeys(NAMES, 0.5), "overall": 0.5}
            feedback = [{"id": one["id"], **given} for one in made.json()["decisions"]]
            (await client.post("/v1/feedback/batch", json={"feedback": feedback})).raise_for_status()
            count += wanted
    return count


def watch(address: str, pace: float, seconds: float, arms: int) -> None:
    """Show the overview in a browser while decisions are made."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["PAMO_BROWSER"], args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.wait_for_selector(".badge:has-text('live')")
        page.evaluate(
            """() => {
                window.longest = 0; window.updates = 0;
                new PerformanceObserver((list) => {
                    for (const one of list.getEntries()) window.longest = Math.max(window.longest, one.duration);
                }).observe({ entryTypes: ["longtask"] });
                new MutationObserver(() => { window.updates += 1; })
                    .observe(document.querySelector(".live tbody"), { childList: true });
            }"""
        )
        made: list[int] = []
        load = threading.Thread(target=lambda: made.append(asyncio.run(keep_deciding(address, pace, seconds, arms))))
        load.start()
        clicks = []
        while load.is_alive():
            started = time.perf_counter()
            page.get_by_role("button", name="Pause").or_(page.get_by_role("button", name="Go on")).click()
            clicks.append(time.perf_counter() - started)
            page.get_by_role("button", name="Pause").or_(page.get_by_role("button", name="Go on")).click()
            page.wait_for_timeout(200)
        load.join()
        longest, updates = page.evaluate("[window.longest, window.updates]")
        rows = page.locator(".live tbody tr").count()
        browser.close()
    print(
        f"{made[0] / seconds:.0f} decisions a second: {updates / seconds:.1f} updates a second, {rows} rows, longest "
        f"task {longest:.0f} ms, a click answered within {1000 * max(clicks):.0f} ms"
    )


def after_restart(events: int, wanted: str | None) -> bool:
    """Have a store with a month behind it counted, restart, and ask for the views; tell whether all was fast enough."""
    with tempfile.TemporaryDirectory(prefix="pamo-page-") as folder, store_at(wanted, Path(folder)) as address:
        if "://" in address or not Path(address).exists():
            started = time.perf_counter()
            month.fill(address, events, 20_000, time.time())
            print(f"{events:,} events, filled in {time.perf_counter() - started:.0f} s")
        with Engine(store=address, seed=1) as engine:
            counting, started = create_app(engine).state.api.history, time.perf_counter()
            while counting.advance():
                pass
            print(f"counted in {time.perf_counter() - started:.1f} s")
        with Engine(store=address, seed=1) as engine:
            app = create_app(engine)
            app.state.api.lookout.front()  # compiles what is not compiled yet
            engine.preference("user-7")
            with served(app) as url:
                found = httpx.get(f"{url}/v1/activity?resolution=hour&limit=720").json()["buckets"]
                print(f"{len(found)} hours with {sum(one['decisions'] for one in found):,} decisions")
                return time_views(url, app, views_of([one.name for one in month.SETUP.objectives], "user-7001"))


def main() -> int:
    """Measure, and return the exit code: 1 if a view took a second or more."""
    parser = argparse.ArgumentParser(description="How fast the page's views answer.")
    parser.add_argument("--arms", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--pace", type=float, default=500.0, help="decisions a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="for how long")
    parser.add_argument("--events", type=int, help="ask after a restart, with a month of so many events")
    parser.add_argument("--store", help="a SQLite file to begin, or go on with; `postgresql` starts a server")
    given = parser.parse_args()
    if given.events:
        return 0 if after_restart(given.events, given.store) else 1
    started = time.perf_counter()
    store = filled_store(given.arms, given.users)
    with Engine(store=store, seed=1) as engine:
        app = create_app(engine)
        app.state.api.lookout.front()  # compiles what is not compiled yet
        app.state.api.lookout.front(NAMES[:2])
        store.find_users("user", 1)
        engine.preference("user-000001")
        made = engine.decide("user-000001", arms=["arm-00001"])
        engine.feedback(made.id, dict.fromkeys(NAMES, 0.5), overall=0.5)
        print(f"{given.arms:,} arms, {given.users:,} users, ready after {time.perf_counter() - started:.0f} s")
        with served(app) as address:
            fine = time_views(address, app, views_of(NAMES, "user-000007"))
            if os.environ.get("PAMO_BROWSER"):
                watch(address, given.pace, given.seconds, given.arms)
    store.close()
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
