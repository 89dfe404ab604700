"""The service without a socket: the real application, asked by a real client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from pamo import Engine
from pamo.service import create_app
from pamo.service.keys import Key, digest_of
from pamo.service.settings import Settings

Result = TypeVar("Result")

OBJECTIVES = ("price: 0..500, lower is better", "taste: 1..5")
WEIGHTS = {"price": 0.25, "taste": 0.75}
SCORES = {"price": 120.0, "taste": 4.0}
SECRETS = {"decider": "pamo_decider", "listener": "pamo_listener", "boss": "pamo_boss"}
KEYS = (
    Key("decider", ["decide"], digest_of(SECRETS["decider"])),
    Key("listener", ["feedback"], digest_of(SECRETS["listener"])),
    Key("boss", ["admin"], digest_of(SECRETS["boss"])),
)


class Clock:
    """Tells a time that only the test moves; once it is let go, the real one."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at, self.real = at, False

    def __call__(self) -> float:
        return time.time() if self.real else self.at


class Service:
    """An engine behind HTTP. Each request runs the event loop until it is answered."""

    def __init__(
        self, engine: Engine, settings: Settings | None = None, projects: dict[str, Engine] | None = None
    ) -> None:
        self.engine, self.projects = engine, projects or {}
        self._closed = False
        self.app = create_app(engine, settings, self.projects)
        self._runner = asyncio.Runner()
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://localhost")

    def run(self, work: Awaitable[Result]) -> Result:
        """Run something in the service's event loop."""

        async def wait() -> Result:
            return await work

        return self._runner.run(wait())

    def ask(self, method: str, path: str, json: Any = None, **more: Any) -> httpx.Response:
        """Send a request, and return the answer."""
        if json is not None:
            more["json"] = json
        return self.run(self.client.request(method, path, **more))

    def send(self, method: str, path: str, body: Any, **headers: str) -> httpx.Response:
        """Send a body as it is."""
        named = {"content-type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        return self.run(self.client.request(method, path, content=body, headers=named))

    def decide(self, user: str = "ann", status: int = 201, key: str | None = None, **body: Any) -> dict[str, Any]:
        """Ask for a decision."""
        headers = {} if key is None else {"idempotency-key": key}
        return answer(self.ask("POST", "/v1/decisions", {"user": user, **body}, headers=headers), status)

    def feedback(self, decision: str, status: int = 200, **body: Any) -> dict[str, Any]:
        """Give feedback."""
        return answer(self.ask("POST", f"/v1/decisions/{quote(decision, safe='')}/feedback", body), status)

    def get(self, path: str, status: int = 200) -> dict[str, Any]:
        """Read something."""
        return answer(self.ask("GET", path), status)

    def journal(self) -> list[Any]:
        """Return everything that is recorded."""
        return list(self.engine.store.events())

    def close(self) -> None:
        """Let go of everything. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self.run(self.client.aclose())
        for api in self.app.state.apis:
            api.live.close()
        self._runner.close()
        for engine in (self.engine, *self.projects.values()):
            engine.close()
            engine.store.close()


Serve = Callable[..., Service]


def answer(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return an answer's body, once it has the status and the form that it should have."""
    assert response.status_code == status, response.text
    if status == 204:
        assert response.content == b""
        return {}
    found: dict[str, Any] = response.json()
    if status >= 400:
        check_problem(response)
    else:
        assert response.headers["content-type"] == "application/json"
    return found


def check_problem(response: httpx.Response, field: str | None = None) -> None:
    """See that an error is a problem as RFC 9457 has it, about that field."""
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert set(body) - {"field"} == {"type", "title", "status", "code", "detail"}
    assert body["status"] == response.status_code
    assert body["detail"]
    assert "Traceback" not in body["detail"]
    if field is not None:
        assert body["field"] == field


def engine_of(arms: str = "ABC", **options: Any) -> Engine:
    """Return an engine that knows some arms."""
    engine = Engine(options.pop("objectives", OBJECTIVES), **{"seed": 1, **options})
    for arm in arms:
        engine.add_arm(arm, f"Arm {arm}")
    return engine
